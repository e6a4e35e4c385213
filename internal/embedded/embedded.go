// Package embedded holds the small model and its data that the binary carries, so that the first run needs no download.
package embedded

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/folder"
)

//go:embed quickstart
var files embed.FS

// Scheme begins the paths that Path resolves: embedded:quickstart is a model folder, embedded:quickstart/train.jsonl a
// file in it.
const Scheme = "embedded:"

// Path returns the path on disk of what is embedded under a path that begins with Scheme, and any other path as it is.
// Embedded folders are written to the user's cache once for each content.
func Path(path string) (string, error) {
	name, ok := strings.CutPrefix(path, Scheme)
	if !ok {
		return path, nil
	}
	if !fs.ValidPath(name) {
		return "", fmt.Errorf("%s: not a path; embedded are %s", path, names())
	}
	if _, err := fs.Stat(files, name); err != nil {
		return "", fmt.Errorf("%s is not in this binary; embedded are %s", path, names())
	}
	root, _, _ := strings.Cut(name, "/")
	dir, err := extract(root)
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", path, err)
	}
	return filepath.Join(filepath.Dir(dir), filepath.FromSlash(name)), nil
}

func names() string {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, e := range entries {
		out = append(out, Scheme+e.Name())
	}
	return strings.Join(out, ", ")
}

// extract writes the embedded folder root to CACHE/rubicon/HASH/root, where HASH is that of its content, and returns
// that path. What is there already has been renamed into place whole.
func extract(root string) (string, error) {
	sum, err := hash(root)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	home := filepath.Join(cache, "rubicon", sum)
	dir := filepath.Join(home, root)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	sub, err := fs.Sub(files, root)
	if err != nil {
		return "", err
	}
	err = folder.Build(home, func(partial string) error { return os.CopyFS(filepath.Join(partial, root), sub) })
	if _, done := os.Stat(dir); done == nil { // by us, or by a process that was first
		return dir, nil
	}
	return "", err
}

func hash(root string) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(files, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(files, path)
		fmt.Fprintf(h, "%s %d\n", path, len(b))
		h.Write(b)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:8]), err
}
