package folder

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func touch(dir string) error { return os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644) }

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestBuild(t *testing.T) {
	root := t.TempDir()
	empty := filepath.Join(root, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(root, "new", "model"), empty} {
		if err := Build(dir, touch); err != nil {
			t.Fatal(err)
		}
		if got := names(t, dir); len(got) != 1 || got[0] != "f" {
			t.Errorf("%s holds %v", dir, got)
		}
		if err := Build(dir, touch); err == nil {
			t.Error("a folder with files was overwritten")
		}
	}
	if got := names(t, root); len(got) != 2 {
		t.Errorf("left over: %v", got)
	}
}

func TestBuildFails(t *testing.T) {
	root, wrong := t.TempDir(), errors.New("disk full")
	err := Build(filepath.Join(root, "model"), func(dir string) error { return errors.Join(touch(dir), wrong) })
	if !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
	if got := names(t, root); len(got) != 0 {
		t.Errorf("a failed build left %v", got)
	}
}
