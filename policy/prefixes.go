package policy

import "slices"

// prefixes keeps the keys and values of prompts and answers that have ended, for requests of one adapter set that begin alike. They are
// a tree of nodes. A nil one keeps nothing.
type prefixes struct {
	*shelf
	root *node // without tokens
}

// shelf is all that is kept in a cache, of every adapter set. What nobody uses is given up when pages are needed, what was used longest
// ago first.
type shelf struct {
	cache *cache
	roots []*node
	idle  int // pages of nodes that nobody uses
	clock int
}

func (h *shelf) prefixes() *prefixes {
	t := &prefixes{h, &node{}}
	h.roots = append(h.roots, t.root)
	return t
}

// forget gives up a tree, which nobody uses.
func (t *prefixes) forget() {
	var drop func(n *node)
	drop = func(n *node) {
		for _, c := range n.children {
			drop(c)
		}
		t.idle -= len(n.pages)
		t.cache.drop(n)
	}
	drop(t.root)
	t.roots = slices.DeleteFunc(t.roots, func(r *node) bool { return r == t.root })
}

// spare is how many pages evict can free.
func (t *prefixes) spare() int {
	if t == nil {
		return 0
	}
	return t.idle
}

// place puts a prompt that nobody uses yet below the longest prefix of it that is in the tree, and in use.
func (t *prefixes) place(p *node) {
	if t == nil {
		return
	}
	first := p.whole == nil
	if first {
		p.whole = p.tokens
	}
	t.clock++
	at, rest := t.root, p.whole
	for {
		next, n := t.match(at, rest)
		if next == nil {
			break
		}
		at, rest = next, rest[n:]
		at.last = t.clock
	}
	p.parent, p.tokens, p.fed, p.kept, p.last = at, rest, 0, false, t.clock
	if first {
		p.cached = len(p.whole) - len(rest)
	}
	p.path = appendClipped(nil, at.path, p.start())
	at.children = append(at.children, p)
	t.use(p)
}

// match is the child of a node that tokens begin with, or the part of one, which is cut for it, and its length; nil: there is none.
// Only whole pages of a part can be shared, and only of a node that is computed.
func (t *prefixes) match(at *node, tokens []int32) (*node, int) {
	for _, c := range at.children {
		n := common(c.tokens, tokens)
		if n == len(c.tokens) && n > 0 {
			return c, n
		}
		if n = n / pageLen * pageLen; n > 0 && c.fed == len(c.tokens) {
			return t.cut(c, n), n
		}
	}
	return nil, 0
}

func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// cut makes the first n tokens of a node, whole pages, a node of their own above it, and returns that.
func (t *prefixes) cut(c *node, n int) *node {
	upper := &node{
		parent: c.parent, tokens: c.tokens[:n:n], fed: n, pages: c.pages[: n/pageLen : n/pageLen], path: slices.Clone(c.path),
		children: []*node{c}, active: c.active, kept: true, last: c.last,
	}
	c.parent.children[slices.Index(c.parent.children, c)] = upper
	c.parent, c.tokens, c.fed, c.pages = upper, c.tokens[n:], c.fed-n, c.pages[n/pageLen:]
	return upper
}

// use notes that a node and those above it are in use.
func (t *prefixes) use(n *node) {
	for a := n; a != t.root; a = a.parent {
		if a.active++; a.active == 1 && a.kept {
			t.idle -= len(a.pages)
		}
	}
}

// take takes a prompt that was placed, but not begun, out again.
func (t *prefixes) take(q *queue, p *node) {
	if t != nil {
		t.detach(p)
		t.unuse(q, p)
	}
}

func (t *prefixes) detach(n *node) {
	n.parent.children = slices.DeleteFunc(n.parent.children, func(c *node) bool { return c == n })
}

// unuse notes that a node is not in use any more, and those above it by so much less.
func (t *prefixes) unuse(q *queue, n *node) {
	for a := n; a != t.root; a = a.parent {
		if a.active--; a.active == 0 && a.kept {
			t.settle(q, a)
		}
	}
}

// settle leaves of a node that nobody uses what was computed.
func (t *prefixes) settle(q *queue, n *node) {
	if n.fed < len(n.tokens) {
		q.prompts = slices.DeleteFunc(q.prompts, func(p *node) bool { return p == n })
		n.tokens = n.tokens[:n.fed]
	}
	if n.fed > 0 {
		t.idle += len(n.pages)
		return
	}
	t.cache.drop(n)
	t.detach(n)
}

// retire is told that a prompt has no samples any more: a node of the tree takes its place, since the prompt may be begun again.
func (t *prefixes) retire(q *queue, p *node) {
	n := &node{parent: p.parent, tokens: p.tokens, fed: p.fed, pages: p.pages, path: p.path, children: p.children, active: p.active, kept: true, last: p.last}
	p.parent.children[slices.Index(p.parent.children, p)] = n
	for _, c := range n.children {
		c.parent = n
	}
	if i := slices.Index(q.prompts, p); i >= 0 {
		q.prompts[i] = n
	}
	*p = node{tokens: p.whole, whole: p.whole, cached: p.cached}
	t.unuse(q, n)
}

// keep makes what was computed of a sample a node below its prompt's.
func (t *prefixes) keep(s *sequence) {
	parent := s.parent
	if len(parent.tokens) == 0 {
		parent = parent.parent
	}
	if s.fed == 0 || slices.ContainsFunc(parent.children, func(c *node) bool { return common(c.tokens, s.tokens[:s.fed]) == s.fed }) {
		return
	}
	n := &node{parent: parent, tokens: s.tokens[:s.fed:s.fed], fed: s.fed, pages: s.pages, path: s.path, kept: true, last: t.clock}
	s.pages, s.path, s.fed = nil, nil, 0
	parent.children = append(parent.children, n)
	t.idle += len(n.pages)
}

// evict frees at least so many pages; false if it cannot.
func (t *prefixes) evict(pages int) bool {
	if t == nil || t.idle < pages {
		return false
	}
	for pages > 0 {
		var n *node
		for _, r := range t.roots {
			n = oldest(r, n)
		}
		if n == nil {
			return false
		}
		pages -= len(n.pages)
		t.idle -= len(n.pages)
		t.cache.drop(n)
		t.detach(n)
	}
	return true
}

// oldest is the node without children that nobody has used for longest.
func oldest(at, best *node) *node {
	for _, c := range at.children {
		if c.active > 0 || len(c.children) > 0 {
			best = oldest(c, best)
		} else if best == nil || c.last < best.last {
			best = c
		}
	}
	return best
}
