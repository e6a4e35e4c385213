package mmap

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	want := bytes.Repeat([]byte("0123456789"), 1000)
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.Data, want) {
		t.Fatal("content differs")
	}
	// A file replaced by renaming does not change what is mapped.
	if err := os.WriteFile(path+".new", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.Data, want) {
		t.Fatal("content changed under the mapping")
	}
	for range 2 {
		if err := f.Close(); err != nil || f.Data != nil {
			t.Fatalf("close: %v, %d bytes left", err, len(f.Data))
		}
	}
}

func TestOpenOdd(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil {
		t.Error("a directory was opened")
	}
	if _, err := Open(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("missing file: %v", err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(empty)
	if err != nil || len(f.Data) != 0 || f.Close() != nil {
		t.Errorf("empty file: %v, %v", f, err)
	}
}
