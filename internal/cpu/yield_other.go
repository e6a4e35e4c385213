//go:build !linux

package cpu

import "runtime"

// yield lets another goroutine run on this thread, if one waits for it.
func yield() { runtime.Gosched() }
