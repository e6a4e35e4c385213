// Package packed reads tables that are embedded in compressed form.
package packed

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
)

// Read unpacks the gzip file name of files. It panics if there is none, which only a wrong build can cause.
func Read(files embed.FS, name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	if data, err = io.ReadAll(z); err != nil {
		panic(err)
	}
	return data
}
