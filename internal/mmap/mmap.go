// Package mmap gives the bytes of a file without copying them, where the system can.
package mmap

import (
	"fmt"
	"math"
	"os"
)

// File is the content of a file as it was opened. Do not write to Data: it may be mapped read-only. On systems without
// memory mapping Data is a copy. A mapped file must not be truncated while it is in use: replace files by renaming.
type File struct{ Data []byte }

// Open maps the named file. The caller calls Close when no slice of Data is in use any more.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch size := info.Size(); {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open %s: not a regular file", path)
	case size == 0:
		return &File{}, nil
	case size > math.MaxInt:
		return nil, fmt.Errorf("open %s: %d bytes do not fit this machine's address space", path, size)
	default:
		return load(f, int(size))
	}
}
