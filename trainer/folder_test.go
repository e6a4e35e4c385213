package trainer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func commit(t *testing.T, dst, text string) {
	t.Helper()
	err := commitFolder(dst, func(dir string) error {
		writeFile(t, filepath.Join(dir, "a"), text)
		writeFile(t, filepath.Join(dir, "sub", "b c"), text+text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCommitFolderIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	dst := filepath.Join(dir, "step-5")
	commit(t, dst, "one")
	if err := checkFolder(dst); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	if err := commitFolder(dst, func(string) error { return full }); !errors.Is(err, full) {
		t.Fatalf("commitFolder = %v, want %v", err, full)
	}
	if got, _ := os.ReadFile(filepath.Join(dst, "a")); string(got) != "one" {
		t.Errorf("after a failed write the folder holds %q, want the old content", got)
	}
	commit(t, dst, "two")
	if got, _ := os.ReadFile(filepath.Join(dst, "sub", "b c")); string(got) != "twotwo" {
		t.Errorf("after a second commit the folder holds %q", got)
	}
	if rest, _ := filepath.Glob(filepath.Join(dir, tmpPrefix+"*")); len(rest) != 0 {
		t.Errorf("left behind: %v", rest)
	}
}

func TestCheckFolderFindsDamage(t *testing.T) {
	damage := map[string]func(dir string) error{
		"changed byte": func(d string) error { return os.WriteFile(filepath.Join(d, "a"), []byte("onf"), 0o644) },
		"cut file":     func(d string) error { return os.Truncate(filepath.Join(d, "sub", "b c"), 2) },
		"missing file": func(d string) error { return os.Remove(filepath.Join(d, "a")) },
		"no manifest":  func(d string) error { return os.Remove(filepath.Join(d, manifestName)) },
		"cut manifest": func(d string) error { return os.Truncate(filepath.Join(d, manifestName), 70) },
		"no lines":     func(d string) error { return os.Truncate(filepath.Join(d, manifestName), 0) },
		"path escaping": func(d string) error {
			return os.WriteFile(filepath.Join(d, manifestName), []byte("aa 3 ../x\n"), 0o644)
		},
	}
	for name, hurt := range damage {
		t.Run(name, func(t *testing.T) {
			dst := filepath.Join(t.TempDir(), "step-5")
			commit(t, dst, "one")
			if err := hurt(dst); err != nil {
				t.Fatal(err)
			}
			if err := checkFolder(dst); err == nil {
				t.Error("checkFolder = nil, want an error")
			}
		})
	}
}

func TestNewestWholePassesOverBrokenOnes(t *testing.T) {
	dir := t.TempDir()
	for _, s := range []string{"step-5", "step-10", "step-100"} {
		commit(t, filepath.Join(dir, s), s)
	}
	writeFile(t, filepath.Join(dir, ".tmp-step-150", "a"), "half")
	if err := os.Truncate(filepath.Join(dir, "step-100", "a"), 1); err != nil {
		t.Fatal(err)
	}
	path, broken, err := newestWhole(dir)
	if err != nil || filepath.Base(path) != "step-10" {
		t.Fatalf("newestWhole = %q, %v, want step-10", path, err)
	}
	if len(broken) != 1 || !strings.Contains(broken[0].Error(), "step-100") {
		t.Errorf("broken = %v, want step-100 named", broken)
	}
}

// FuzzManifest: a manifest that is accepted names files below the folder, and they are what it says.
func FuzzManifest(f *testing.F) {
	dir := f.TempDir()
	dst := filepath.Join(dir, "step-1")
	if err := commitFolder(dst, func(dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "a"), []byte("one"), 0o644), os.WriteFile(filepath.Join(dir, "b"), nil, 0o644))
	}); err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(dst, manifestName)
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(strings.ReplaceAll(string(good), " a\n", " ../step-1/a\n")))
	f.Add([]byte(strings.ReplaceAll(string(good), " 3 ", " -3 ")))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		if err := os.WriteFile(path, manifest, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := checkFolder(dst); err != nil {
			return
		}
		for line := range strings.Lines(string(manifest)) {
			if !strings.Contains(string(good), strings.TrimRight(line, "\r\n")) {
				t.Errorf("the line %q is accepted", line)
			}
		}
	})
}
