//go:build unix

package mmap

import (
	"fmt"
	"os"
	"syscall"
)

func load(f *os.File, size int) (*File, error) {
	data, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return &File{Data: data}, nil
}

// Close releases the mapping; every slice of Data is invalid afterwards. Closing twice is harmless.
func (f *File) Close() error {
	data := f.Data
	f.Data = nil
	if data == nil {
		return nil
	}
	return syscall.Munmap(data)
}
