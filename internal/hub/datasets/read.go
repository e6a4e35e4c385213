package datasets

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/trainer/data"
)

// memberColumn is where a row out of an archive of single rows has its place in the archive.
const memberColumn = "(member)"

// maxMember is the largest single row of an archive, bytes.
const maxMember = 16 << 20

// read calls use for every row of an official file, or of what is meant in an archive.
func read(file, member string, use func(map[string]any) error) error {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".zip":
		return readZip(file, member, use)
	case ".tar":
		return readTar(file, member, use)
	case ".json":
		begins, err := beginning(file)
		if err != nil {
			return err
		}
		if begins != "" {
			return readJSON(file, begins == "[", use)
		}
	}
	return readRows(file, use)
}

// readRows reads lines and Parquet.
func readRows(file string, use func(map[string]any) error) error {
	return data.Rows(file, "auto", use)
}

// beginning tells how a JSON file begins: "[" as a list, "{" as one object of objects, "" as lines.
func beginning(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	dec := json.NewDecoder(bufio.NewReader(f))
	first, _ := dec.Token() // what else it may be, its reader will say
	if first == json.Delim('[') {
		return "[", nil
	}
	_, _ = dec.Token() // a key
	if second, _ := dec.Token(); first == json.Delim('{') && second == json.Delim('{') {
		return "{", nil
	}
	return "", nil
}

// readJSON reads the objects in a list, or in an object, in their order and one at a time.
func readJSON(file string, list bool, use func(map[string]any) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	dec := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		return err
	}
	for n := 1; dec.More(); n++ {
		if !list {
			if _, err := dec.Token(); err != nil { // its key
				return err
			}
		}
		var v map[string]any
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("item %d: %w", n, err)
		}
		if err := use(v); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// readZip unpacks the one member that is meant and reads it.
func readZip(file, member string, use func(map[string]any) error) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, m := range z.File {
		if !meant(m.Name, member) {
			continue
		}
		in, err := m.Open()
		if err != nil {
			return err
		}
		defer in.Close()
		tmp, err := os.MkdirTemp(filepath.Dir(file), ".unpacked-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		out := filepath.Join(tmp, path.Base(member))
		if err := save(out, in); err != nil {
			return err
		}
		return read(out, "", use)
	}
	return fmt.Errorf("it has no %s inside", member)
}

func save(path string, in io.Reader) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// readTar reads an archive in which every file that is meant is a row.
func readTar(file, member string, use func(map[string]any) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	t := tar.NewReader(bufio.NewReader(f))
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !meant(h.Name, member) {
			continue
		}
		content, err := io.ReadAll(io.LimitReader(t, maxMember))
		if err != nil {
			return err
		}
		var v map[string]any
		if err := json.NewDecoder(bytes.NewReader(content)).Decode(&v); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		v[memberColumn] = lastParts(h.Name, strings.Count(member, "/")+1)
		if err := use(v); err != nil {
			return err
		}
	}
}

// meant tells whether the last parts of a member's path match a pattern with as many parts. Files that a Mac adds beside the
// real ones are never meant.
func meant(name, pattern string) bool {
	if strings.HasPrefix(path.Base(name), ".") || strings.Contains(name, "__MACOSX") {
		return false
	}
	ok, err := path.Match(pattern, lastParts(name, strings.Count(pattern, "/")+1))
	return ok && err == nil
}

// lastParts are the last n parts of a path.
func lastParts(name string, n int) string {
	parts := strings.Split(path.Clean(name), "/")
	return strings.Join(parts[max(0, len(parts)-n):], "/")
}
