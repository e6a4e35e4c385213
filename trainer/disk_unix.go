//go:build unix

package trainer

import "golang.org/x/sys/unix"

// diskFree is what the disk of dir has left for this user, bytes.
func diskFree(dir string) (int64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return int64(s.Bavail) * int64(s.Bsize), err
}
