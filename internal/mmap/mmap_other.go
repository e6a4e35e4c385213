//go:build !unix

package mmap

import (
	"fmt"
	"io"
	"os"
)

func load(f *os.File, size int) (*File, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return &File{Data: data}, nil
}

// Close forgets the content. Closing twice is harmless.
func (f *File) Close() error {
	f.Data = nil
	return nil
}
