package grammar

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/rubicon-rl/rubicon/policy"
)

// Constraint holds samples of one vocabulary to a grammar. It is safe for concurrent use; what it learns on the way
// serves all samples and is kept in bounded memory.
type Constraint struct {
	v  *Vocab
	mu sync.Mutex
	a  *automaton
	// path are the states behind the bytes of a node of the trie, while a mask is made.
	path []*state
}

var _ policy.Constraint = (*Constraint)(nil)

// mask is the ids that may follow a state, if enough tokens are left.
type mask struct {
	ids   []uint64
	least int // the most bytes that are needed behind one of the ids
}

// For makes the constraint that holds samples of v to g. Bytes of which v has no token do not occur.
func (g *Grammar) For(v *Vocab) (*Constraint, error) {
	a, err := g.automaton(v.bytes)
	if err != nil {
		return nil, err
	}
	return &Constraint{v: v, a: a, path: make([]*state, v.longest+1)}, nil
}

// Least implements policy.Constraint: the shortest text in bytes, and an end of sequence.
func (c *Constraint) Least() int { return c.a.root.least + 1 }

// Begin implements policy.Constraint.
func (c *Constraint) Begin() policy.Matcher { return &matcher{c: c, at: c.a.root} }

// matcher is where one sample is.
type matcher struct {
	c     *Constraint
	at    *state
	ended bool // an end of sequence was accepted
}

// Mask implements policy.Matcher. It counts with a token for every byte that is still needed, and one for the end.
func (m *matcher) Mask(allowed []uint64, remaining int) error {
	c := m.c
	switch {
	case m.ended:
		return errors.New("the sample goes on behind its end of sequence: give Generate the ids that the vocabulary was made with as EOS")
	case len(allowed) != c.v.words():
		return fmt.Errorf("the mask has %d words, the vocabulary has %d ids: make it with the model's size", len(allowed), c.v.size)
	case m.at.least >= remaining:
		return fmt.Errorf("%d tokens are left, the sample needs %d", remaining, m.at.least+1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.a.trim(c.v.words())
	copy(allowed, c.ids(c.a.near(m.at, c.v.longest), remaining))
	if c.a.full {
		return fmt.Errorf("json schema: at one place more than %d alternatives are possible: tell them apart earlier", maxAlts)
	}
	return nil
}

// ids are the tokens that may follow s if remaining are left.
func (c *Constraint) ids(s *state, remaining int) []uint64 {
	free := c.mask(s, 0, math.MaxInt)
	if free.least <= remaining-2 { // this token, and the end
		return free.ids
	}
	return c.mask(s, remaining, remaining-2).ids
}

// mask is the one that s keeps under a key: the ids behind which most bytes suffice.
func (c *Constraint) mask(s *state, key, most int) *mask {
	m := s.masks[key]
	if m == nil {
		m = c.walk(s, most)
		if s.masks == nil {
			s.masks = map[int]*mask{}
		}
		s.masks[key] = m
		c.a.masks++
	}
	return m
}

// walk tries all tokens.
func (c *Constraint) walk(s *state, most int) *mask {
	a, v := c.a, c.v
	m := &mask{ids: make([]uint64, v.words())}
	if s.nullable {
		for _, id := range v.eos {
			m.ids[id/64] |= 1 << (id % 64)
		}
	}
	c.path[0] = s
	for i := 0; i < len(v.nodes); {
		n := &v.nodes[i]
		t := a.step(c.path[n.depth-1], n.last)
		if t == a.none {
			i = int(n.end)
			continue
		}
		i++
		c.path[n.depth] = t
		if n.count == 0 || t.least > most {
			continue
		}
		m.least = max(m.least, t.least)
		for _, id := range v.ids[n.first : n.first+int32(n.count)] {
			m.ids[id/64] |= 1 << (id % 64)
		}
	}
	return m
}

// Accept implements policy.Matcher.
func (m *matcher) Accept(id int32) {
	c := m.c
	if slices.Contains(c.v.eos, id) {
		m.ended = true
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.v.text[id] {
		m.at = c.a.step(m.at, b)
	}
}
