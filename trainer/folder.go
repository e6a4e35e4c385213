package trainer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	manifestName = "MANIFEST"
	tmpPrefix    = ".tmp-"
	stepPrefix   = "step-"
)

// commitFolder makes the folder dst whole or not at all: write fills a temporary folder beside it, every file is
// flushed to disk, MANIFEST (SHA-256, size, name of each) is written last, and a rename puts it in place. A folder
// that already stands at dst is replaced.
func commitFolder(dst string, write func(dir string) error) (err error) {
	parent, base := filepath.Split(dst)
	tmp, old := filepath.Join(parent, tmpPrefix+base), filepath.Join(parent, tmpPrefix+"old-"+base)
	if err := errors.Join(os.RemoveAll(tmp), os.RemoveAll(old)); err != nil {
		return err
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := write(tmp); err != nil {
		return err
	}
	if err := seal(tmp); err != nil {
		return err
	}
	if err := os.Rename(dst, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(tmp, dst); err != nil {
		return err
	}
	return errors.Join(syncDir(parent), os.RemoveAll(old))
}

// seal flushes every file under dir and writes the manifest.
func seal(dir string) error {
	var manifest bytes.Buffer
	dirs := []string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, path)
			return nil
		}
		sum, size, err := hashFile(path, true)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(&manifest, "%s %d %s\n", sum, size, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, manifestName)
	if err := os.WriteFile(path, manifest.Bytes(), 0o644); err != nil {
		return err
	}
	if _, _, err := hashFile(path, true); err != nil {
		return err
	}
	for _, d := range slices.Backward(dirs) {
		if err := syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// checkFolder returns an error unless dir holds exactly what its manifest says.
func checkFolder(dir string) error {
	f, err := os.Open(filepath.Join(dir, manifestName))
	if err != nil {
		return fmt.Errorf("%s is not a whole checkpoint: %w", dir, err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	n := 0
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 3)
		if len(fields) != 3 {
			return fmt.Errorf("%s: line %d of %s is damaged", dir, n+1, manifestName)
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || !filepath.IsLocal(fields[2]) {
			return fmt.Errorf("%s: line %d of %s is damaged", dir, n+1, manifestName)
		}
		sum, got, err := hashFile(filepath.Join(dir, filepath.FromSlash(fields[2])), false)
		if err != nil {
			return fmt.Errorf("%s is not whole: %w", dir, err)
		}
		if sum != fields[0] || got != size {
			return fmt.Errorf("%s is not whole: %s has changed since it was written", dir, fields[2])
		}
		n++
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("%s is not whole: %s is empty", dir, manifestName)
	}
	return nil
}

func hashFile(path string, flush bool) (sum string, size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if flush {
		if err := f.Sync(); err != nil {
			return "", 0, err
		}
	}
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

func syncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// stepFolders returns the step numbers of the folders step-N in dir, ascending. A missing dir holds none.
func stepFolders(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []int
	for _, e := range entries {
		if n, err := strconv.Atoi(strings.TrimPrefix(e.Name(), stepPrefix)); err == nil && e.IsDir() && strings.HasPrefix(e.Name(), stepPrefix) {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// removeHalves removes the temporary folders of checkpoints in dir, which nobody is writing.
func removeHalves(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), tmpPrefix); ok && strings.Contains(rest, stepPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

func stepFolder(dir string, step int) string { return filepath.Join(dir, fmt.Sprint(stepPrefix, step)) }

// newestWhole returns the newest whole checkpoint in dir, or "" if there is none, and says of each broken one that
// it passed over what is wrong with it.
func newestWhole(dir string) (path string, broken []error, err error) {
	steps, err := stepFolders(dir)
	if err != nil {
		return "", nil, err
	}
	for _, s := range slices.Backward(steps) {
		path := stepFolder(dir, s)
		if err := checkFolder(path); err != nil {
			broken = append(broken, err)
			continue
		}
		return path, broken, nil
	}
	return "", broken, nil
}
