package policy

import (
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func newTestCache(pages int) *cache {
	return &cache{pages: pages, taken: make([]bool, pages), free: pages}
}

// Pages are taken as one run where there is one, joined with what they follow, and cut to the prompt's length below it.
func TestCachePages(t *testing.T) {
	c := newTestCache(8)
	prompt := &node{tokens: make([]int32, 2*pageLen)}
	below := &node{parent: prompt, tokens: make([]int32, 1)}
	if !c.hold(prompt, 2*pageLen) || !c.hold(below, pageLen+1) {
		t.Fatal("no pages")
	}
	if want := []device.Span{{Row: 0, N: 4 * pageLen}}; !slices.Equal(below.path, want) {
		t.Errorf("path %v, want %v", below.path, want)
	}
	c.drop(prompt)
	if c.free != 6 {
		t.Errorf("%d pages free, want 6", c.free)
	}

	short := &node{tokens: make([]int32, pageLen+5)}
	other := &node{parent: short}
	long := &node{tokens: make([]int32, 3*pageLen)}
	if !c.hold(short, len(short.tokens)) || !c.hold(other, 1) || !c.hold(long, len(long.tokens)) {
		t.Fatal("no pages")
	}
	if want := []device.Span{{Row: 0, N: pageLen + 5}, {Row: 4 * pageLen, N: pageLen}}; !slices.Equal(other.path, want) {
		t.Errorf("path %v, want %v", other.path, want)
	}
	if c.hold(other, pageLen+1) || c.free != 0 || len(other.pages) != 1 {
		t.Errorf("a full cache gave a page: %d free, pages %v", c.free, other.pages)
	}
	if got := long.row(pageLen + 3); got != 6*pageLen+3 {
		t.Errorf("token %d lies in row %d", pageLen+3, got)
	}
	c.drop(below)
	if !c.hold(other, 2*pageLen) {
		t.Fatal("no page after one was given back")
	}
	if want := []device.Span{{Row: 0, N: pageLen + 5}, {Row: 4 * pageLen, N: pageLen}, {Row: 2 * pageLen, N: pageLen}}; !slices.Equal(other.path, want) {
		t.Errorf("path %v, want %v", other.path, want)
	}
}

// When the cache is full, the samples begun last give their pages back and wait in their old order; the oldest always
// goes on, and a prompt that nobody uses leaves the cache.
func TestFullCacheMakesSamplesWait(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	reqs := []Request{{Prompt: sequenceOf(pageLen+1, 1), N: 2}, {Prompt: sequenceOf(3, 2), N: 2}}
	o := GenerateOptions{SamplingParams: plain(2*pageLen + 3), MaxBatch: 3, KVTokens: 6 * pageLen, PrefillChunk: 16}
	q, err := m.queue(reqs, &o)
	must(t, err)
	s := m.pool.scope()
	defer s.release()
	d := m.decoder(s, &o)
	must(t, s.err)
	must(t, m.needPositions(q.positions))
	d.net, d.queue = m.net(netOptions{}), q

	waited, order := 0, []int(nil)
	for steps := 0; len(q.running)+len(q.waiting) > 0; steps++ {
		if steps > 1000 {
			t.Fatal("generation does not end")
		}
		before := slices.Clone(q.running)
		finished, err := d.step(t.Context())
		must(t, err)
		for _, s := range finished {
			order = append(order, 2*s.request+s.sample)
		}
		if len(q.waiting) > 0 && len(q.waiting[0].tokens) > 1 && slices.Contains(before, q.waiting[0]) {
			waited++
		}
		if len(before) > 0 && slices.Contains(q.waiting, before[0]) {
			t.Fatal("the oldest sample was made to wait")
		}
		if !slices.IsSortedFunc(q.waiting, func(a, b *sequence) int { return 2*(a.request-b.request) + a.sample - b.sample }) {
			t.Fatal("the waiting samples are out of order")
		}
		checkPages(t, q)
	}
	if waited == 0 {
		t.Error("no sample had to wait: the test shows nothing")
	}
	if !slices.Equal(order, []int{0, 1, 2, 3}) {
		t.Errorf("samples finished in order %v", order)
	}
	if q.cache.free != q.cache.pages {
		t.Errorf("%d of %d pages are free at the end", q.cache.free, q.cache.pages)
	}
}

// checkPages fails if a page belongs to two nodes, or the free ones are miscounted.
func checkPages(t *testing.T, q *queue) {
	t.Helper()
	owner := map[int]*node{}
	for _, s := range slices.Concat(q.running, q.waiting) {
		for _, n := range []*node{&s.node, s.parent} {
			for _, page := range n.pages {
				if o := owner[page]; o != nil && o != n {
					t.Fatalf("page %d belongs to two nodes", page)
				}
				owner[page] = n
			}
		}
	}
	if q.cache.free+len(owner) != q.cache.pages {
		t.Fatalf("%d pages free and %d owned of %d", q.cache.free, len(owner), q.cache.pages)
	}
}
