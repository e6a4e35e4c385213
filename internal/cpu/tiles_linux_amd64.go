//go:build !purego

package cpu

import "golang.org/x/sys/unix"

// tilesAllowed asks the system for the matrix unit's registers, which a process has to do once.
func tilesAllowed() bool {
	const requestPermission, tileData = 0x1023, 18
	_, _, errno := unix.Syscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
