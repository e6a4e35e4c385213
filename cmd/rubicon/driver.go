//go:build !gorgonia_cu || !cgo

package main

import (
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/native"
)

// openDriver opens a device by the libraries that are found at run time.
func openDriver(lib *native.CUDA, d native.Device) (driver.Driver, error) { return lib.Open(d) }
