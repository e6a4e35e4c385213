// Package disk says how much room a disk has.
package disk

import "golang.org/x/sys/windows"

// Free is the room, in bytes, that is left to this user on the disk of a folder, which exists; false: it is not known.
func Free(dir string) (int64, bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(free), err == nil
}
