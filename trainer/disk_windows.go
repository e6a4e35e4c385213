package trainer

import "golang.org/x/sys/windows"

// diskFree is what the disk of dir has left for this user, bytes.
func diskFree(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(free), err
}
