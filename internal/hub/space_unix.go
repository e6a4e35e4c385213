//go:build linux || darwin || freebsd

package hub

import "golang.org/x/sys/unix"

// freeSpace is the room that is left to this user on the disk of a folder, which exists.
func freeSpace(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
