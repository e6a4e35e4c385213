// Package oracle gives tests the answers of other programs.
package oracle

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Open opens the file name of the folder that the environment variable RUBICON_TEST_ORACLES names or, if it is not set,
// testdata/name.gz. So the same test can be run on more answers than the repository has.
func Open(t testing.TB, name string) io.Reader {
	t.Helper()
	folder := os.Getenv("RUBICON_TEST_ORACLES")
	path := filepath.Join(folder, name)
	if folder == "" {
		path = filepath.Join("testdata", name+".gz")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if folder != "" {
		return f
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// Rows decodes the lines of such a file.
func Rows[T any](t testing.TB, name string) []T {
	t.Helper()
	lines := bufio.NewScanner(Open(t, name))
	lines.Buffer(nil, 1<<20)
	var rows []T
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%s, row %d: %v", name, len(rows)+1, err)
		}
		rows = append(rows, row)
	}
	if lines.Err() != nil {
		t.Fatalf("%s: %v", name, lines.Err())
	}
	return rows
}
