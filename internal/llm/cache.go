package llm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// cache keeps answers in a folder, by key. It holds segments: files that are only ever added to, each by one process, so that
// several processes may use the folder. What was written partly or was damaged since is never served. The oldest segment is
// removed when the folder would exceed its limit.
//
// A segment is its head and then entries: the key, the answer's length and a checksum (both uint32, little-endian), the answer.
type cache struct {
	dir   string
	limit int64

	mu       sync.Mutex
	segments []*segment // oldest first
	index    map[key]place
	active   *os.File // the segment being written is the last one; nil: none is
}

type segment struct {
	path string
	size int64
	last time.Time // when it was added to
}

// place is where an entry is.
type place struct {
	in *segment
	at int64
	n  int64 // bytes of the answer
}

const (
	segmentHead = "rubicon answers 1\n"
	entryHead   = len(key{}) + 8
	// segmentsPerLimit is how many segments fill the limit: what is removed at once is this part of it.
	segmentsPerLimit = 8
)

// openCache reads the folder's segments, and makes the folder if it is not there.
func openCache(dir string, limit int64) (*cache, error) {
	c := &cache{dir: dir, limit: limit, index: map[key]place{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the answer cache: %w", err)
	}
	return c, c.refresh()
}

// refresh takes note of what other processes have written or removed.
func (c *cache) refresh() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("reading the answer cache: %w", err)
	}
	known := map[string]*segment{}
	for _, s := range c.segments {
		known[s.path] = s
	}
	var added []*segment
	there := map[*segment]bool{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "answers-") || !strings.HasSuffix(e.Name(), ".segment") {
			continue
		}
		s := known[filepath.Join(c.dir, e.Name())]
		if s == nil {
			s = &segment{path: filepath.Join(c.dir, e.Name())}
			if err := c.scan(s); errors.Is(err, os.ErrNotExist) {
				continue // another process has just removed it
			} else if err != nil {
				return fmt.Errorf("reading the answer cache: %w", err)
			}
			added = append(added, s)
		}
		if info, err := e.Info(); err == nil {
			s.size, s.last, there[s] = info.Size(), info.ModTime(), true
		}
	}
	c.arrange(append(c.segments, added...), there)
	return nil
}

// arrange replaces the segments by those that are there. Our own stay in their order where a clock is too coarse to tell.
func (c *cache) arrange(all []*segment, there map[*segment]bool) {
	c.segments = nil
	for _, s := range all {
		if there[s] {
			c.segments = append(c.segments, s)
		} else {
			c.forget(s)
		}
	}
	slices.SortStableFunc(c.segments, func(a, b *segment) int { return a.last.Compare(b.last) })
}

// scan adds a segment's entries to the index, up to one that is not whole. Their checksums are left to get.
func (c *cache) scan(s *segment) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, len(segmentHead))
	if _, err := f.ReadAt(head, 0); err != nil || string(head) != segmentHead {
		return nil // not one of ours, or not even its head was written
	}
	var entry [entryHead]byte
	for at := int64(len(segmentHead)); ; {
		if _, err := f.ReadAt(entry[:], at); err != nil {
			return nil // the end
		}
		k, n := parseEntry(entry[:])
		if at+int64(entryHead)+n > info.Size() {
			return nil
		}
		c.index[k] = place{in: s, at: at, n: n}
		at += int64(entryHead) + n
	}
}

func parseEntry(head []byte) (k key, n int64) {
	copy(k[:], head)
	return k, int64(binary.LittleEndian.Uint32(head[len(k):]))
}

// checksum covers all of an entry but itself.
func checksum(entry []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, entry[:entryHead-4])
	return crc32.Update(sum, table, entry[entryHead:])
}

// get returns the answer for k, if it is there and undamaged. A nil cache has none.
func (c *cache) get(k key) (string, bool) {
	if c == nil {
		return "", false
	}
	c.mu.Lock()
	p, ok := c.index[k]
	c.mu.Unlock()
	if !ok {
		return "", false
	}
	entry, err := readEntry(p)
	if err == nil && bytes.Equal(entry[:len(k)], k[:]) && binary.LittleEndian.Uint32(entry[entryHead-4:]) == checksum(entry) {
		return string(entry[entryHead:]), true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index[k] == p {
		delete(c.index, k)
	}
	return "", false
}

func readEntry(p place) ([]byte, error) {
	f, err := os.Open(p.in.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entry := make([]byte, int64(entryHead)+p.n)
	_, err = io.ReadFull(io.NewSectionReader(f, p.at, int64(len(entry))), entry)
	return entry, err
}

// put keeps an answer. One that is larger than a segment is not kept; nor does a nil cache keep any.
func (c *cache) put(k key, answer string) error {
	if c == nil || int64(entryHead+len(answer)+len(segmentHead)) > c.limit/segmentsPerLimit {
		return nil
	}
	entry := make([]byte, entryHead, entryHead+len(answer))
	copy(entry, k[:])
	binary.LittleEndian.PutUint32(entry[len(k):], uint32(len(answer)))
	entry = append(entry, answer...)
	binary.LittleEndian.PutUint32(entry[entryHead-4:], checksum(entry))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.add(k, entry); err != nil {
		return fmt.Errorf("writing the answer cache (judge.cache): %w", err)
	}
	return nil
}

// add writes an entry into the active segment, or into a new one if that is full.
func (c *cache) add(k key, entry []byte) error {
	if c.active != nil && c.segments[len(c.segments)-1].size+int64(len(entry)) > c.limit/segmentsPerLimit {
		if err := c.seal(); err != nil {
			return err
		}
	}
	if c.active == nil {
		if err := c.begin(); err != nil {
			return err
		}
	}
	s := c.segments[len(c.segments)-1]
	if _, err := c.active.Write(entry); err != nil {
		return errors.Join(err, c.seal()) // nothing may follow half an entry
	}
	c.index[k] = place{in: s, at: s.size, n: int64(len(entry) - entryHead)}
	s.size += int64(len(entry))
	return nil
}

// begin makes room for a new segment and begins it.
func (c *cache) begin() error {
	if err := c.refresh(); err != nil {
		return err
	}
	c.evict()
	f, err := os.CreateTemp(c.dir, "answers-*.segment")
	if err != nil {
		return err
	}
	c.active = f
	c.segments = append(c.segments, &segment{path: f.Name(), size: int64(len(segmentHead))})
	if _, err := f.WriteString(segmentHead); err != nil {
		return errors.Join(err, c.seal())
	}
	return nil
}

// evict removes the oldest segments until a full one more keeps to the limit.
func (c *cache) evict() {
	size := c.limit / segmentsPerLimit
	for _, s := range c.segments {
		size += s.size
	}
	for len(c.segments) > 0 && size > c.limit {
		oldest := c.segments[0]
		c.segments = c.segments[1:]
		c.forget(oldest)
		size -= oldest.size
		_ = os.Remove(oldest.path) // another process may have been first; what stays is seen again by the next refresh
	}
}

// forget takes a segment's entries out of the index.
func (c *cache) forget(s *segment) {
	for k, p := range c.index {
		if p.in == s {
			delete(c.index, k)
		}
	}
}

// seal ends the active segment.
func (c *cache) seal() error {
	f := c.active
	c.active = nil
	return f.Close()
}

// Close ends the active segment.
func (c *cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active == nil {
		return nil
	}
	return c.seal()
}
