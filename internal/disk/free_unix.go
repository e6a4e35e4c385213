//go:build linux || darwin || freebsd

// Package disk says how much room a disk has.
package disk

import "golang.org/x/sys/unix"

// Free is the room, in bytes, that is left to this user on the disk of a folder, which exists; false: it is not known.
func Free(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
