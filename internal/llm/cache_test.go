package llm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func keyNumber(i int) (k key) {
	copy(k[:], fmt.Sprintf("key %d", i))
	return k
}

// text is the answer that belongs to a key.
func text(i int) string { return fmt.Sprintf("answer %d %s", i, strings.Repeat("x", i%50)) }

func cacheIn(t testing.TB, dir string, limit int64) *cache {
	t.Helper()
	c, err := openCache(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func putAll(t testing.TB, c *cache, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := c.put(keyNumber(i), text(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// kept counts the keys that the cache serves; a wrong answer is an error.
func kept(t testing.TB, c *cache, from, to int) (n int) {
	t.Helper()
	for i := from; i < to; i++ {
		if got, ok := c.get(keyNumber(i)); ok && got != text(i) {
			t.Errorf("key %d: %q, want %q", i, got, text(i))
		} else if ok {
			n++
		}
	}
	return n
}

func segmentsOf(t testing.TB, dir string) (list []string, size int64) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return list, size
}

func TestCacheSurvives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "cache")
	for round := range 3 { // each as a process that does not close what it wrote
		c := cacheIn(t, dir, 1<<20)
		if got := kept(t, c, 0, 300); got != 100*round {
			t.Errorf("round %d: %d answers", round, got)
		}
		putAll(t, c, 100*round, 100*round+100)
	}
	if c := (*cache)(nil); kept(t, c, 0, 10) != 0 || c.put(keyNumber(0), "x") != nil {
		t.Error("no cache is a cache")
	}
}

// Whatever a kill leaves of the last entry, it is not served, and those before it are.
func TestCacheTornEntry(t *testing.T) {
	dir := t.TempDir()
	c := cacheIn(t, dir, 1<<20)
	putAll(t, c, 0, 5)
	files, size := segmentsOf(t, dir)
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for cut := range int64(entryHead + len(text(4))) {
		if err := os.WriteFile(files[0], whole[:size-1-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		torn := cacheIn(t, dir, 1<<20)
		if got := kept(t, torn, 0, 5); got != 4 {
			t.Fatalf("%d bytes cut off: %d answers, want 4", cut+1, got)
		}
	}
}

// A damaged entry must be missing, not wrong, and must not take its neighbours along.
func TestCacheDamage(t *testing.T) {
	dir := t.TempDir()
	c := cacheIn(t, dir, 1<<20)
	putAll(t, c, 0, 3)
	files, _ := segmentsOf(t, dir)
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for at := range segmentHead { // another version, or another program's file
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x10
		if err := os.WriteFile(files[0], damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if n := kept(t, cacheIn(t, dir, 1<<20), 0, 3); n != 0 {
			t.Errorf("byte %d of the head damaged: %d answers", at, n)
		}
	}
	second := bytes.Index(whole, []byte("key 1"))
	for at := second; at < second+entryHead+len(text(1)); at++ {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x10
		if err := os.WriteFile(files[0], damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		again := cacheIn(t, dir, 1<<20)
		_, first := again.get(keyNumber(0))
		_, hit := again.get(keyNumber(1))
		inLength := at-second >= len(key{}) && at-second < len(key{})+4 // after which no entry can be found
		if got := kept(t, again, 0, 3); !first || hit || !inLength && got != 2 {
			t.Errorf("byte %d of an entry damaged: it is served: %v; %d answers", at-second, hit, got)
		}
	}
}

// A torn entry must not hide a whole one for its key in an older segment.
func TestCacheTornAgain(t *testing.T) {
	dir := t.TempDir()
	putAll(t, cacheIn(t, dir, 1<<20), 0, 1)
	files, size := segmentsOf(t, dir)
	whole, err := os.ReadFile(files[0])
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "answers-z.segment"), whole[:size-1], 0o600)
	}
	later := time.Now().Add(time.Hour)
	if err := errors.Join(err, os.Chtimes(filepath.Join(dir, "answers-z.segment"), later, later)); err != nil {
		t.Fatal(err)
	}
	if n := kept(t, cacheIn(t, dir, 1<<20), 0, 1); n != 1 {
		t.Error("the whole entry is not served")
	}
}

// After a failed write, which may have left half an entry, a new segment is begun.
func TestCacheFailedWrite(t *testing.T) {
	c := cacheIn(t, t.TempDir(), 1<<20)
	putAll(t, c, 0, 1)
	if err := c.active.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.put(keyNumber(1), text(1)); err == nil || !strings.Contains(err.Error(), "judge.cache") {
		t.Errorf("got %v", err)
	}
	putAll(t, c, 2, 3)
	if n := kept(t, c, 0, 3); n != 2 {
		t.Errorf("%d answers, want 2", n)
	}
}

// A segment that is replaced under our feet must not give another key's answer.
func TestCacheReplacedSegment(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	putAll(t, cacheIn(t, dir, 1<<20), 10, 13)
	putAll(t, cacheIn(t, other, 1<<20), 60, 63) // of the same lengths
	c := cacheIn(t, dir, 1<<20)
	ours, _ := segmentsOf(t, dir)
	theirs, _ := segmentsOf(t, other)
	if err := os.Rename(theirs[0], ours[0]); err != nil {
		t.Fatal(err)
	}
	if n := kept(t, c, 10, 13); n != 0 {
		t.Errorf("%d answers", n)
	}
}

func TestCacheBound(t *testing.T) {
	dir := t.TempDir()
	const limit = 16 << 10
	c := cacheIn(t, dir, limit)
	for i := range 2000 {
		putAll(t, c, i, i+1)
		if i%50 == 0 {
			if _, size := segmentsOf(t, dir); size > limit {
				t.Fatalf("%d bytes after %d answers", size, i+1)
			}
		}
	}
	// An entry has 77 bytes on average, so that seven full segments of 2048 hold about 180 of them.
	if n := kept(t, c, 1870, 2000); n != 130 {
		t.Errorf("%d of the last 130 answers are left", n)
	}
	if n := kept(t, c, 0, 1500); n != 0 {
		t.Errorf("%d of the first 1500 answers are left", n)
	}
	if n := len(c.index); n > 300 {
		t.Errorf("%d entries in the index", n)
	}
	if err := c.put(keyNumber(5000), strings.Repeat("x", limit)); err != nil {
		t.Error(err)
	}
	if _, ok := c.get(keyNumber(5000)); ok {
		t.Error("an answer as large as the cache was kept")
	}
	if again := cacheIn(t, dir, limit/4); again.put(keyNumber(1), text(1)) != nil {
		t.Error("a smaller limit")
	} else if _, size := segmentsOf(t, dir); size > limit/4 {
		t.Errorf("%d bytes under a smaller limit", size)
	}
}

func FuzzCacheSegment(f *testing.F) {
	dir := f.TempDir()
	c := cacheIn(f, dir, 1<<20)
	putAll(f, c, 0, 3)
	files, _ := segmentsOf(f, dir)
	whole, err := os.ReadFile(files[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(segmentHead))
	f.Fuzz(func(t *testing.T, segment []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "answers-1.segment"), segment, 0o600); err != nil {
			t.Fatal(err)
		}
		c := cacheIn(t, dir, 1<<20)
		for k := range c.index {
			// What is served must stand in the segment with its key.
			if answer, ok := c.get(k); ok && !bytes.Contains(segment, []byte(answer)) || ok && !bytes.Contains(segment, k[:]) {
				t.Errorf("serves %q", answer)
			}
		}
		putAll(t, c, 100, 101)
		if kept(t, c, 100, 101) != 1 {
			t.Error("cannot be added to")
		}
	})
}
