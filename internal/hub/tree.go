package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// File is one of a repository's.
type File struct {
	Path   string // with slashes
	Size   int64
	Digest Digest
}

// maxAPI is the longest answer of the API that is read, bytes; maxPages is how many of them list one repository.
const (
	maxAPI   = 64 << 20
	maxPages = 10_000
)

// Files lists the files of a repository at its revision, which is the commit that is returned.
func (c *Client) Files(ctx context.Context, r Repo) (commit string, files []File, err error) {
	if c.o.Offline {
		return "", nil, errOffline
	}
	if commit, err = c.commit(ctx, r); err != nil {
		return "", nil, err
	}
	next := r.apiURL(c.o.Endpoint, "tree", commit) + "?recursive=true&expand=false"
	for range maxPages {
		var page []treeEntry
		if next, err = c.api(ctx, r, next, &page); err != nil {
			return "", nil, fmt.Errorf("list the files of %s: %w", r, err)
		}
		for _, e := range page {
			if e.Type != "file" {
				continue
			}
			f, err := e.file()
			if err != nil {
				return "", nil, fmt.Errorf("list the files of %s: %w", r, err)
			}
			files = append(files, f)
		}
		if next == "" {
			return commit, files, nil
		}
	}
	return "", nil, fmt.Errorf("list the files of %s: the list does not end", r)
}

// commit resolves a repository's revision.
func (c *Client) commit(ctx context.Context, r Repo) (string, error) {
	if commitPattern.MatchString(r.Revision) {
		return r.Revision, nil
	}
	var info struct{ SHA string }
	if _, err := c.api(ctx, r, r.apiURL(c.o.Endpoint, "revision", r.Revision), &info); err != nil {
		return "", fmt.Errorf("look up %s: %w", r, err)
	}
	if !commitPattern.MatchString(info.SHA) {
		return "", fmt.Errorf("look up %s: the hub names %q as its commit, which is none", r, info.SHA)
	}
	return info.SHA, nil
}

// treeEntry is an item of the API's listing.
type treeEntry struct {
	Type string
	Path string
	Size int64
	OID  string
	LFS  *struct {
		OID  string
		Size int64
	}
}

// file checks an entry: its name and its hash become paths.
func (e treeEntry) file() (File, error) {
	f := File{Path: e.Path, Size: e.Size, Digest: Digest{gitBlob, e.OID}}
	if e.LFS != nil {
		f.Size, f.Digest = e.LFS.Size, Digest{SHA256, e.LFS.OID}
	}
	if !fs.ValidPath(e.Path) || e.Path == "." || strings.ContainsAny(e.Path, "\\:\x00") {
		return f, fmt.Errorf("%q is no name of a file below the repository: nothing is downloaded", e.Path)
	}
	if f.Size < 0 {
		return f, fmt.Errorf("%s has %d bytes, says the hub", e.Path, f.Size)
	}
	if err := f.Digest.check(); err != nil {
		return f, fmt.Errorf("%s: %w", e.Path, err)
	}
	return f, nil
}

var nextLink = regexp.MustCompile(`<([^>]+)>\s*;\s*rel="?next"?`)

// api decodes the answer to a call about r, and returns the address of the next page if there is one.
func (c *Client) api(ctx context.Context, r Repo, address string, into any) (next string, err error) {
	err = c.again(ctx, address, func() (bool, error) {
		within, cancel := context.WithTimeout(ctx, c.o.Stall)
		defer cancel()
		next, err = c.ask(within, r, address, into)
		return false, err
	})
	return next, err
}

func (c *Client) ask(ctx context.Context, r Repo, address string, into any) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", refusal{err}
	}
	c.authorize(req)
	resp, err := c.send(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", c.explain(resp, &r)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAPI+1))
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return "", refusal{fmt.Errorf("%s is no hub: its answer is not the JSON that was asked for (%w)", c.o.Endpoint, err)}
	}
	m := nextLink.FindStringSubmatch(resp.Header.Get("Link"))
	if m == nil {
		return "", nil
	}
	to, err := resp.Request.URL.Parse(m[1])
	if err != nil || !sameHost(to, resp.Request.URL) {
		return "", refusal{fmt.Errorf("the list goes on at %q, which is not this hub", m[1])}
	}
	return to.String(), nil
}

func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
