//go:build !linux || !(amd64 || arm64) || nocuda || nodl

package native

import (
	"fmt"
	"runtime"
)

func open(string) (uintptr, error) {
	return 0, fmt.Errorf("this program opens NVIDIA's libraries on linux/amd64 and linux/arm64 only, built without the tags nocuda and nodl; it is for %s/%s",
		runtime.GOOS, runtime.GOARCH)
}

// Nothing is ever open, so these are never called.

func symbol(uintptr, string) (uintptr, error) { panic("native: no library is open") }
func invoke(uintptr, ...uintptr) uintptr      { panic("native: no library is open") }
func bind(any, uintptr)                       { panic("native: no library is open") }
