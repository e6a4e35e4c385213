package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// NotCached is the error for a repository that is not in the cache at the revision that is asked for.
type NotCached struct {
	Repo  Repo
	Cache string
}

// Error says how it gets there.
func (e *NotCached) Error() string {
	return fmt.Sprintf("%s is not in the cache %s: run %s", e.Repo, e.Cache, e.Repo.pull())
}

// Find returns the folder of a repository's files in a cache, as the last pull or huggingface_hub left them. If there is
// none, the error is a *NotCached.
func Find(cache string, r Repo) (string, error) {
	root := filepath.Join(cache, r.folder())
	commit := r.Revision
	if !commitPattern.MatchString(commit) {
		text, err := os.ReadFile(filepath.Join(root, "refs", filepath.FromSlash(r.Revision)))
		commit = strings.TrimSpace(string(text))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if !commitPattern.MatchString(commit) {
			return "", &NotCached{r, cache}
		}
	}
	dir := filepath.Join(root, "snapshots", commit)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", &NotCached{r, cache}
	}
	return dir, nil
}

// Scheme begins a model's path that is a name on the hub and nothing else.
const Scheme = "hub:"

// Model resolves a model's path. hub:ORG/NAME[@revision], and ORG/NAME[@revision] where no such file exists, is the folder that
// rubicon pull, or huggingface_hub, put into the cache; any other path is returned as it is. The environment says where the
// cache is.
func Model(path string, getenv func(string) string) (string, error) {
	name, meant := strings.CutPrefix(path, Scheme)
	r, err := ParseRepo(name)
	if meant && err != nil {
		return "", err
	}
	if _, there := os.Lstat(path); !meant && (err != nil || there == nil) {
		return path, nil
	}
	o, err := FromEnv(getenv)
	if err != nil {
		return "", err
	}
	dir, err := Find(o.Cache, r)
	if err == nil && !exists(filepath.Join(dir, configFile), unknownSize) {
		err = &NotCached{r, o.Cache}
	}
	if err != nil && !meant {
		err = fmt.Errorf("there is no file or folder %s; as a model, %w", path, err)
	}
	return dir, err
}

// locked calls do while no other process, of huggingface_hub's either, holds the lock of that name.
func (c *Client) locked(ctx context.Context, folder, name string, do func() error) error {
	dir := filepath.Join(c.o.Cache, ".locks", folder)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(dir, name+".lock"), flock.SetPermissions(0o664))
	held, err := lock.TryLock()
	if err == nil && !held {
		c.progress.note("another process downloads a file that is wanted: waiting for it")
		_, err = lock.TryLockContext(ctx, 200*time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	return errors.Join(do(), lock.Unlock())
}

// link makes a file of a snapshot: a relative link to its blob.
func link(root, commit string, f File) error {
	pointer := filepath.Join(root, "snapshots", commit, filepath.FromSlash(f.Path))
	blob := filepath.Join(root, "blobs", f.Digest.Hex)
	if err := os.MkdirAll(filepath.Dir(pointer), 0o777); err != nil {
		return err
	}
	to, err := filepath.Rel(filepath.Dir(pointer), blob)
	if err != nil {
		return err
	}
	if err := removeIfThere(pointer); err != nil { // a link to nothing, or to what is torn
		return err
	}
	if err := os.Symlink(to, pointer); err != nil {
		return fmt.Errorf("the cache needs a file system with symbolic links (on Windows: developer mode); HF_HUB_CACHE names another place: %w", err)
	}
	return nil
}

// writeRef records which commit a branch or tag is.
func writeRef(root, revision, commit string) error {
	path := filepath.Join(root, "refs", filepath.FromSlash(revision))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".ref-")
	if err != nil {
		return err
	}
	_, err = f.WriteString(commit)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(f.Name()))
	}
	return nil
}

// sizeOf is a file's size; 0: there is none.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
