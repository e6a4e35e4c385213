//go:build gorgonia_cu && cgo

package main

import (
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/gorgonia"
	"github.com/rubicon-rl/rubicon/cuda/native"
)

// openDriver opens a device by gorgonia.org/cu.
func openDriver(_ *native.CUDA, d native.Device) (driver.Driver, error) {
	if err := d.Refusal(); err != nil {
		return nil, err
	}
	return gorgonia.Open(d.Ordinal)
}
