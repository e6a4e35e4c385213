package cpu

import "golang.org/x/sys/unix"

// memoryLimit is the machine's memory in bytes; 0 if unknown.
func memoryLimit() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
