package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Pull downloads what is missing of a repository's wanted files, and returns the folder that shows them. When it fails or is
// killed, what has come stays, and the next call goes on from there; the revision's name points to the new commit only when all
// of the wanted files are there. Offline it returns what the cache has.
func (c *Client) Pull(ctx context.Context, r Repo, want Selection) (string, error) {
	if c.o.Offline {
		dir, err := Find(c.o.Cache, r)
		if err != nil {
			return "", fmt.Errorf("%w; HF_HUB_OFFLINE is set", err)
		}
		return dir, nil
	}
	commit, all, err := c.Files(ctx, r)
	if err != nil {
		return "", err
	}
	files, err := want.choose(r, all)
	if err != nil {
		return "", err
	}
	if err := c.fill(ctx, r, commit, files); err != nil {
		return "", err
	}
	root := filepath.Join(c.o.Cache, r.folder())
	if r.Revision != commit {
		if err := writeRef(root, r.Revision, commit); err != nil {
			return "", err
		}
	}
	return filepath.Join(root, "snapshots", commit), nil
}

// fill brings files into the snapshot, several at a time.
func (c *Client) fill(ctx context.Context, r Repo, commit string, files []File) error {
	root := filepath.Join(c.o.Cache, r.folder())
	if err := os.MkdirAll(filepath.Join(root, "blobs"), 0o777); err != nil {
		return err
	}
	missing := c.missing(r, root, commit, files)
	if err := c.room(missing); err != nil {
		return err
	}
	c.progress.begin(missing)
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(c.o.Jobs)
	for _, f := range files {
		group.Go(func() error { return c.place(within, r, commit, f) })
	}
	return group.Wait()
}

// download describes how a file gets to its blob.
func (c *Client) download(r Repo, commit string, f File) Download {
	return Download{
		URL: r.fileURL(c.o.Endpoint, commit, f.Path), Name: f.Path, Size: f.Size, Digest: f.Digest, repo: &r,
		Path: filepath.Join(c.o.Cache, r.folder(), "blobs", f.Digest.Hex),
	}
}

// missing lists the downloads that files still need, each blob once.
func (c *Client) missing(r Repo, root, commit string, files []File) []Download {
	var list []Download
	seen := map[string]bool{}
	for _, f := range files {
		d := c.download(r, commit, f)
		if seen[d.Path] || exists(d.Path, f.Size) || exists(filepath.Join(root, "snapshots", commit, filepath.FromSlash(f.Path)), f.Size) {
			continue
		}
		seen[d.Path] = true
		list = append(list, d)
	}
	return list
}

// place brings one file into the snapshot, if it is not there.
func (c *Client) place(ctx context.Context, r Repo, commit string, f File) error {
	root := filepath.Join(c.o.Cache, r.folder())
	pointer := filepath.Join(root, "snapshots", commit, filepath.FromSlash(f.Path))
	if exists(pointer, f.Size) || ctx.Err() != nil {
		return ctx.Err()
	}
	return c.locked(ctx, r.folder(), f.Digest.Hex, func() error {
		if exists(pointer, f.Size) { // by now
			return nil
		}
		if d := c.download(r, commit, f); !exists(d.Path, f.Size) {
			if err := c.fetch(ctx, d); err != nil {
				return err
			}
		}
		return link(root, commit, f)
	})
}

// FetchAll downloads files that are no part of the cache, several at a time. It makes their folders; what is there already
// with the right size and bytes is left alone.
func (c *Client) FetchAll(ctx context.Context, list []Download) error {
	var missing []Download
	for _, d := range list {
		if err := CheckFile(d.Path, d.Size, d.Digest); err == nil {
			continue
		} else if !errors.Is(err, os.ErrNotExist) {
			c.progress.note("%s: %v; it is downloaded anew", d.Path, err)
		}
		if err := os.MkdirAll(filepath.Dir(d.Path), 0o777); err != nil {
			return err
		}
		missing = append(missing, d)
	}
	if err := c.room(missing); err != nil {
		return err
	}
	c.progress.begin(missing)
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(c.o.Jobs)
	for _, d := range missing {
		group.Go(func() error { return c.fetchAlone(within, d) })
	}
	return group.Wait()
}

// fetchAlone fetches a file outside of the cache, or finds that another process has done so.
func (c *Client) fetchAlone(ctx context.Context, d Download) error {
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(path))
	return c.locked(ctx, "files", hex.EncodeToString(sum[:]), func() error {
		if CheckFile(d.Path, d.Size, d.Digest) == nil {
			return nil
		}
		return c.fetch(ctx, d)
	})
}

// RepoFiles describes how the files of a repository that match the patterns get into dir, under their own names.
func (c *Client) RepoFiles(ctx context.Context, r Repo, patterns []string, dir string) (commit string, list []Download, err error) {
	commit, all, err := c.Files(ctx, r)
	if err != nil {
		return "", nil, err
	}
	files, err := Selection{Include: patterns}.choose(r, all)
	if err != nil {
		return "", nil, err
	}
	for _, f := range files {
		d := c.download(r, commit, f)
		d.Path = filepath.Join(dir, filepath.FromSlash(f.Path))
		list = append(list, d)
	}
	return commit, list, nil
}

// room returns an error if the disk has no room for what is missing.
func (c *Client) room(missing []Download) error {
	need := int64(0)
	for _, d := range missing {
		if d.Size > 0 {
			need += max(0, d.Size-sizeOf(d.Path+partialSuffix))
		}
	}
	if need == 0 {
		return nil
	}
	dir := filepath.Dir(missing[0].Path)
	free, known := c.o.Free(dir)
	if known && free < need {
		return fmt.Errorf("%s has %s free, the download needs %s: make room, or choose another disk (HF_HUB_CACHE, --out)", dir, Bytes(free), Bytes(need))
	}
	return nil
}

// hasSuffix tells whether some name ends so.
func hasSuffix(files []File, suffix string) bool {
	return slices.ContainsFunc(files, func(f File) bool { return strings.HasSuffix(f.Path, suffix) })
}
