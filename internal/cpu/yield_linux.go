package cpu

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// yield lets another goroutine run on this thread, or another thread on this processor, if one waits for it.
func yield() {
	runtime.Gosched()
	_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
