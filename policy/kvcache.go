package policy

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// pageLen is how many tokens share a page of the cache.
const pageLen = 32

func pagesFor(tokens int) int { return (tokens + pageLen - 1) / pageLen }

// cache keeps keys and values of generation, by layer, in pages that nodes take and give back.
type cache struct {
	mem   device.Mem
	k, v  []device.Mat // per layer [pages·pageLen, KV·hd]
	pages int
	taken []bool
	free  int // pages not taken
}

// actBytes is the size of an activation where memory is planned; a GPU's are smaller.
const actBytes = 4

// kvBytes is what some tokens take in the cache.
func (c Config) kvBytes(tokens int) int64 {
	return 2 * actBytes * int64(c.Layers) * int64(c.KVHeads) * int64(c.HeadDim) * int64(tokens)
}

// bytes is the size of the cache, 0 of none.
func (c *cache) bytes() int64 {
	if c == nil {
		return 0
	}
	return actBytes * int64(c.mem.Len())
}

// needCache makes the model's cache hold at least pages pages, all free.
func (m *Model) needCache(pages int) (*cache, error) {
	if m.kv != nil && m.kv.pages >= pages {
		clear(m.kv.taken)
		m.kv.free = m.kv.pages
		return m.kv, nil
	}
	m.FreeCache()
	rows, width := pages*pageLen, m.dims.kvWidth
	mem, err := m.dev.Alloc(device.Act, 2*m.cfg.Layers*rows*width)
	if err != nil {
		return nil, fmt.Errorf("policy: no memory for the keys and values of %d tokens (set a smaller batch or KV cache): %w", rows, err)
	}
	c := &cache{mem: mem, pages: pages, taken: make([]bool, pages), free: pages}
	for l := range m.cfg.Layers {
		k, v := device.View(mem, rows, width), device.View(mem, rows, width)
		k.Off, v.Off = 2*l*rows*width, (2*l+1)*rows*width
		c.k, c.v = append(c.k, k), append(c.v, v)
	}
	m.kv = c
	return c, nil
}

// FreeCache gives the memory of keys and values, which Generate keeps for its next call, back to the device.
func (m *Model) FreeCache() {
	if m.kv != nil {
		m.dev.Free(m.kv.mem)
		m.kv = nil
	}
}

// node is a segment of the forest in the cache: a prompt but for its last token, or that token and what one sample adds.
type node struct {
	parent *node // nil for a prompt
	tokens []int32
	fed    int // tokens whose keys and values are in the cache
	users  int // nodes below that are being generated
	pages  []int
	path   []device.Span // keys from the root: the ancestors' tokens, then this node's pages

	// In a tree of prefixes:
	whole    []int32 // of a request's prompt: all its tokens, of which the ancestors have the first
	children []*node
	cached   int  // of these, how many were computed when it was begun first
	active   int  // of the node and those below, how many are in use
	kept     bool // nobody's prompt any more
	last     int  // when it was used last
}

// start is the path position of the node's first token.
func (n *node) start() int {
	if n.parent == nil {
		return 0
	}
	return n.parent.start() + len(n.parent.tokens)
}

// row is where the cache keeps token i of the node.
func (n *node) row(i int) int { return n.pages[i/pageLen]*pageLen + i%pageLen }

// hold takes pages for the node's first count tokens; false if there are too few free ones.
func (c *cache) hold(n *node, count int) bool {
	missing := pagesFor(count) - len(n.pages)
	if missing > c.free {
		return false
	}
	if len(n.pages) == 0 {
		n.path = n.path[:0]
		if n.parent != nil {
			n.path = appendClipped(n.path, n.parent.path, n.start())
		}
	}
	for at := c.run(missing); missing > 0; at++ {
		if c.taken[at] {
			continue
		}
		c.taken[at] = true
		c.free--
		missing--
		n.pages = append(n.pages, at)
		n.path = appendSpan(n.path, device.Span{Row: at * pageLen, N: pageLen})
	}
	return true
}

// run is the first page of the first run of n free pages, or the first page if there is none.
func (c *cache) run(n int) int {
	length := 0
	for at, taken := range c.taken {
		if length++; taken {
			length = 0
		}
		if length == n {
			return at + 1 - n
		}
	}
	return 0
}

// drop gives the node's pages back.
func (c *cache) drop(n *node) {
	for _, at := range n.pages {
		c.taken[at] = false
	}
	c.free += len(n.pages)
	n.pages, n.fed = n.pages[:0], 0
}

// appendSpan appends s, joining it to the last span if that ends where s begins.
func appendSpan(spans []device.Span, s device.Span) []device.Span {
	if n := len(spans); n > 0 && spans[n-1].Row+spans[n-1].N == s.Row {
		spans[n-1].N += s.N
		return spans
	}
	return append(spans, s)
}

// appendClipped appends the first tokens positions of a path.
func appendClipped(spans, path []device.Span, tokens int) []device.Span {
	for _, s := range path {
		if s.N = min(s.N, tokens); s.N == 0 {
			break
		}
		spans = append(spans, s)
		tokens -= s.N
	}
	return spans
}

// cacheRows says where a pass's rows lie in the cache.
type cacheRows struct {
	cache *cache
	at    device.Mem // [T] I32
}

// store writes the rows' keys and values of layer l, and returns all of the layer's.
func (r *cacheRows) store(dev device.Device, l int, k, v device.Mat) (allK, allV device.Mat) {
	dev.ScatterRows(r.cache.k[l], k, r.at)
	dev.ScatterRows(r.cache.v[l], v, r.at)
	return r.cache.k[l], r.cache.v[l]
}
