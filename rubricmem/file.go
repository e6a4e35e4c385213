package rubricmem

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// LogName is the name of the log in a memory's folder.
const LogName = "memory.log"

// file is what the log needs of an *os.File.
type file interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Truncate(size int64) error
	Sync() error
	Stat() (os.FileInfo, error)
}

// store is the log on disk, open for appending.
type store struct {
	file   file
	path   string
	size   int64
	broken error // why nothing can be added any more
}

// openStore opens the log in dir, or begins one.
func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	path := filepath.Join(dir, LogName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("memory: %w", err), f.Close())
	}
	return &store{file: f, path: path, size: info.Size()}, nil
}

// read reads the frames and cuts off what follows them; torn is how much that was.
func (s *store) read(visit func(payload []byte, end int64) error) (torn int64, err error) {
	whole, err := readFrames(io.NewSectionReader(s.file, 0, s.size), s.size, visit)
	if err != nil {
		return 0, at(s.path, err)
	}
	if torn = s.size - whole; torn > 0 {
		err = s.cut(whole)
	}
	return torn, err
}

// at completes a reader's error.
func at(path string, err error) error {
	if damage, ok := errors.AsType[*DamageError](err); ok {
		damage.Path = path
		return damage
	}
	return fmt.Errorf("memory log %s: %w", path, err)
}

// append has frames on disk before it returns. After an error the log is as it was.
func (s *store) append(frames []byte) error {
	if s.broken != nil {
		return s.broken
	}
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("memory log %s: %w", s.path, err)
	}
	if info.Size() != s.size {
		return fmt.Errorf("memory log %s has %d bytes instead of %d: something else writes to it: let one run at a time use its folder", s.path, info.Size(), s.size)
	}
	if _, err = s.file.Write(frames); err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		s.size += int64(len(frames))
		return nil
	}
	err = fmt.Errorf("memory log %s: nothing was added: %w", s.path, err)
	if fault := s.cut(s.size); fault != nil {
		s.broken = fmt.Errorf("%w; what was written of it could not be taken back (%w): make room, and open the memory again", err, fault)
		return s.broken
	}
	return err
}

// cut shortens the log.
func (s *store) cut(size int64) error {
	err := s.file.Truncate(size)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("memory log %s: cutting it to %d bytes: %w", s.path, size, err)
	}
	s.size = size
	return nil
}

// copyTo puts a copy of the log into dir, whole or not at all.
func (s *store) copyTo(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	partial, err := os.CreateTemp(dir, LogName+".partial-")
	if err != nil {
		return err
	}
	_, err = io.Copy(partial, io.NewSectionReader(s.file, 0, s.size))
	if err == nil {
		err = errors.Join(partial.Chmod(0o644), partial.Sync())
	}
	err = errors.Join(err, partial.Close())
	if err == nil {
		err = os.Rename(partial.Name(), filepath.Join(dir, LogName))
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial.Name()))
	}
	return syncDir(dir)
}

// syncDir has the names in a folder on disk. Windows has no call for it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
