// Package folder makes a folder, or a file, appear whole or not at all.
package folder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Build calls fill with a new folder beside dir and renames it to dir when fill succeeds; otherwise it is removed. dir
// must not exist, or be empty.
func Build(dir string, fill func(partial string) error) error {
	dir = filepath.Clean(dir)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty; choose a new folder", dir)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".partial-")
	if err != nil {
		return err
	}
	if err = fill(partial); err == nil {
		err = place(partial, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return nil
}

// File calls write with a new file beside path and renames it to path when write succeeds; otherwise it is removed. With sync its
// contents are on the disk before it has its name.
func File(path string, sync bool, write func(w io.Writer) error) error {
	partial := path + ".partial"
	f, err := os.Create(partial)
	if err != nil {
		return err
	}
	if err = write(f); err == nil && sync {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	return nil
}

// Counter counts what passes through to W.
type Counter struct {
	W io.Writer
	N uint64 // bytes
}

func (c *Counter) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	c.N += uint64(n)
	return n, err
}

func place(partial, dir string) error {
	if err := os.Chmod(partial, 0o755); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) { // an empty folder, which not every system renames over
		return err
	}
	return os.Rename(partial, dir)
}
