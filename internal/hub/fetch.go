package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Download is one file that is to be fetched.
type Download struct {
	URL    string
	Name   string // for people
	Path   string // where it goes; its folder must exist
	Size   int64  // -1: not known
	Digest Digest

	repo *Repo // that it belongs to; nil: none
}

// Size of what has not been announced.
const unknownSize = -1

// fetch downloads a file, from where an earlier try left off, and gives it its name when it is whole and the one that was
// asked for.
func (c *Client) fetch(ctx context.Context, d Download) (err error) {
	if c.o.Offline {
		return errOffline
	}
	p, err := openPartial(&d)
	if err != nil {
		return err
	}
	defer p.close()
	most, spoiled := p.size, 0
	err = c.again(ctx, d.Name, func() (bool, error) {
		before := most
		err := c.attempt(ctx, &d, p)
		most = max(most, p.size)
		if err != nil {
			return most > before, err
		}
		if err := d.Digest.verify(p.sum); err != nil {
			if spoiled++; spoiled > 1 {
				return false, refusal{errors.Join(fmt.Errorf("what comes from %s is not the file: %w", d.URL, err), p.remove())}
			}
			// What was there before may have been spoiled, so it is fetched once more, as a whole.
			return false, errors.Join(err, p.reset())
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("download %s: %w", d.Name, err)
	}
	if err := p.finish(d.Path); err != nil {
		return fmt.Errorf("download %s: %w", d.Name, err)
	}
	c.progress.done(d.Name, p.size)
	return nil
}

// attempt fetches what is missing over one connection.
func (c *Client) attempt(ctx context.Context, d *Download, p *partial) error {
	if d.Size >= 0 && p.size == d.Size {
		return nil
	}
	if !p.continues() {
		if err := p.reset(); err != nil {
			return refusal{err}
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(c.o.Stall, func() { cancel(fmt.Errorf("nothing came for %s", c.o.Stall)) })
	defer stall.Stop()
	resp, err := c.request(ctx, d, p)
	if err != nil {
		return stalled(ctx, err)
	}
	defer resp.Body.Close()
	if err := c.accept(resp, d, p); err != nil {
		return err
	}
	err = c.receive(resp.Body, d, p, func() { stall.Reset(c.o.Stall) })
	return stalled(ctx, err)
}

// stalled is err, or why its context was ended.
func stalled(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

func (c *Client) request(ctx context.Context, d *Download, p *partial) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return nil, refusal{err}
	}
	c.authorize(req)
	req.Header.Set("Accept-Encoding", "identity") // a length is one of the file's bytes
	if p.size > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", p.size))
		if p.validator != "" {
			req.Header.Set("If-Range", p.validator)
		}
	}
	return c.send(req)
}

// accept looks at an answer before its bytes are taken, and brings p to the place at which they begin.
func (c *Client) accept(resp *http.Response, d *Download, p *partial) error {
	switch resp.StatusCode {
	case http.StatusOK:
		if err := p.reset(); err != nil {
			return refusal{err}
		}
		if p.want < 0 {
			d.Size = resp.ContentLength
		}
	case http.StatusPartialContent:
		begin, total := contentRange(resp.Header.Get("Content-Range"))
		if begin != p.size || total >= 0 && d.Size >= 0 && total != d.Size {
			return errors.Join(fmt.Errorf("the server sends %q, not what was asked for", resp.Header.Get("Content-Range")), p.reset())
		}
		if d.Size < 0 {
			d.Size = total
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return errors.Join(errors.New("the server has no more of it"), p.reset())
	default:
		return c.explain(resp, d.repo)
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return refusal{fmt.Errorf("the server sends it as %s, which was not asked for", e)}
	}
	if t := resp.Header.Get("Content-Type"); !d.Digest.known() && strings.HasPrefix(t, "text/html") && filepath.Ext(d.Name) != ".html" {
		return refusal{fmt.Errorf("%s is a web page, not the file: download the file with a browser", d.URL)}
	}
	return p.remember(resp.Header.Get("ETag"))
}

// contentRange reads "bytes 5-9/10"; -1: not said.
func contentRange(text string) (begin, total int64) {
	span, size, _ := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	from, _, _ := strings.Cut(span, "-")
	begin, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		begin = -1
	}
	if total, err = strconv.ParseInt(size, 10, 64); err != nil {
		total = unknownSize
	}
	return begin, total
}

// receive adds what comes to p, up to the size.
func (c *Client) receive(body io.Reader, d *Download, p *partial, alive func()) error {
	buf := make([]byte, 1<<18)
	for {
		n, err := body.Read(buf)
		alive()
		if d.Size >= 0 && p.size+int64(n) > d.Size {
			return errors.Join(fmt.Errorf("more than %d bytes came", d.Size), p.reset())
		}
		if e := p.write(buf[:n]); e != nil {
			return refusal{e}
		}
		c.progress.at(d.Name, p.size)
		switch {
		case err == io.EOF && p.size < d.Size:
			return fmt.Errorf("the connection ended after %d of %d bytes", p.size, d.Size)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// exists tells whether a file with these many bytes is there; -1: any number.
func exists(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (size < 0 || info.Size() == size)
}
