package hub

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// lineEvery is how far apart lines about the bytes are.
const lineEvery = 5 * time.Second

// progress writes lines about downloads. It is safe for concurrent use.
type progress struct {
	w   io.Writer
	now func() time.Time

	mu     sync.Mutex
	want   int64            // bytes of all files that are to be fetched; -1: not known of some
	sizes  map[string]int64 // what is there of each
	last   time.Time        // of the last line
	before int64            // what was there at that line
}

func newProgress(w io.Writer, now func() time.Time) *progress {
	return &progress{w: w, now: now, sizes: map[string]int64{}}
}

// begin tells of the files that are to be fetched, and how much of them is there.
func (p *progress) begin(files []Download) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want, p.before, p.last = 0, 0, p.now()
	clear(p.sizes)
	for _, d := range files {
		if d.Size < 0 || p.want < 0 {
			p.want = unknownSize
		} else {
			p.want += d.Size
		}
		if n := sizeOf(d.Path + partialSuffix); n > 0 {
			p.sizes[d.Name] = n
			p.before += n
		}
	}
}

// at tells how much of a file is there.
func (p *progress) at(name string, size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sizes[name] = size
	now := p.now()
	past := now.Sub(p.last)
	if past < lineEvery {
		return
	}
	total := int64(0)
	for _, n := range p.sizes {
		total += n
	}
	of := ""
	if p.want >= 0 {
		of = " of " + Bytes(p.want)
	}
	p.line("%s%s, %s/s", Bytes(total), of, Bytes(int64(float64(max(0, total-p.before))/past.Seconds())))
	p.last, p.before = now, total
}

// done tells that a file is whole.
func (p *progress) done(name string, size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sizes[name] = size
	p.line("%s: %s", name, Bytes(size))
}

// note says something.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(format, args...)
}

func (p *progress) line(format string, args ...any) {
	if p.w != nil {
		fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// Bytes writes a number of bytes as people do, in decimal units.
func Bytes(n int64) string {
	units := []string{"kB", "MB", "GB", "TB"}
	x, unit := float64(n), "B"
	for _, u := range units {
		if x < 999.5 {
			break
		}
		x, unit = x/1000, u
	}
	if unit == "B" || x >= 99.95 {
		return fmt.Sprintf("%.0f %s", x, unit)
	}
	return fmt.Sprintf("%.1f %s", x, unit)
}
