//go:build !linux || !(amd64 || arm64) || nocuda || nodl

package dist

import (
	"fmt"
	"runtime"
)

func openMPI(func(string) string) (*abi, string, error) {
	return nil, "", fmt.Errorf("this program opens MPI's library on linux/amd64 and linux/arm64 only, built without the tags nocuda and nodl; it is for %s/%s: set dist.backend to tcp",
		runtime.GOOS, runtime.GOARCH)
}

func keepSignals() (restore func()) { return func() {} }

// Nothing is ever open, so this is never called.

func invoke(uintptr, ...uintptr) uintptr { panic("dist: no library is open") }
