package hub

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
)

// partial is a file that is being downloaded: PATH.incomplete, with the hash of what is there. If nothing is known of the file,
// PATH.incomplete.etag holds what the server called its version, so that another process can go on with it.
type partial struct {
	f         *os.File
	size      int64
	sum       hash.Hash
	digest    Digest
	want      int64
	validator string // a strong ETag; "": none
}

const (
	partialSuffix = ".incomplete"
	etagSuffix    = ".etag"
)

// openPartial takes up what an earlier try left, as far as it can be part of the file.
func openPartial(d *Download) (*partial, error) {
	f, err := os.OpenFile(d.Path+partialSuffix, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	p := &partial{f: f, digest: d.Digest, want: d.Size}
	if !d.Digest.known() {
		text, err := os.ReadFile(p.etagFile())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(err, f.Close())
		}
		p.validator = string(text)
	}
	p.sum = d.Digest.start(d.Size)
	p.size, err = io.Copy(p.sum, f)
	if err == nil && d.Size >= 0 && p.size > d.Size {
		err = p.reset()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take up %s: %w", f.Name(), err), f.Close())
	}
	return p, nil
}

// continues tells whether more bytes can be added to what is there: something will show if they do not belong to it.
func (p *partial) continues() bool { return p.size == 0 || p.digest.known() || p.validator != "" }

func (p *partial) etagFile() string { return p.f.Name() + etagSuffix }

// remember keeps the server's name of the version that it sends.
func (p *partial) remember(etag string) error {
	if strings.HasPrefix(etag, "W/") || !strings.HasPrefix(etag, `"`) { // a weak one says nothing of bytes
		etag = ""
	}
	p.validator = etag
	if p.digest.known() {
		return nil
	}
	if etag == "" {
		return removeIfThere(p.etagFile())
	}
	return os.WriteFile(p.etagFile(), []byte(etag), 0o666)
}

// reset throws away what is there.
func (p *partial) reset() error {
	p.size, p.validator, p.sum = 0, "", p.digest.start(p.want)
	if err := p.f.Truncate(0); err != nil {
		return err
	}
	_, err := p.f.Seek(0, io.SeekStart)
	return errors.Join(err, removeIfThere(p.etagFile()))
}

func (p *partial) write(b []byte) error {
	n, err := p.f.Write(b)
	p.sum.Write(b[:n])
	p.size += int64(n)
	return err
}

// remove deletes the file.
func (p *partial) remove() error {
	return errors.Join(os.Remove(p.f.Name()), removeIfThere(p.etagFile()))
}

// finish gives the file its name once its bytes are on disk.
func (p *partial) finish(path string) error {
	if err := p.f.Sync(); err != nil {
		return err
	}
	if err := p.f.Close(); err != nil {
		return err
	}
	if err := os.Rename(p.f.Name(), path); err != nil {
		return err
	}
	return removeIfThere(p.etagFile())
}

// close ends the use of the file; after finish it does nothing.
func (p *partial) close() { _ = p.f.Close() } // what was written stays, and is hashed again when it is taken up

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
