package grammar

import (
	"maps"
	"slices"
)

// Bounds of what is kept of the states that are made in use; what exceeds them is forgotten and made again.
const (
	maxMade  = 1 << 15
	maxRows  = 1 << 14
	maxBytes = 1 << 24 // of masks
)

// derive is the texts of s that begin with b, without it. It asks of for the derivatives of the parts of s.
func (a *automaton) derive(s *state, b byte, of func(*state, byte) *state) *state {
	switch s.op {
	case opByte:
		if s.set.has(b) {
			return a.empty
		}
	case opSeq:
		first := a.seq(of(s.a, b), s.b)
		if s.a.nullable {
			return a.alt(first, of(s.b, b))
		}
		return first
	case opAlt:
		var list []*state
		for _, x := range s.alts {
			if d := of(x, b); d != a.none {
				list = append(list, d)
			}
		}
		return a.alt(list...)
	case opRepeat:
		if x := of(s.a, b); x != a.none {
			return a.seq(x, a.repeat(s.a, max(s.min-1, 0), less(s.max)))
		}
	}
	return a.none
}

// less is a count that once more of open leaves open.
func less(n int) int {
	if n == open {
		return open
	}
	return n - 1
}

// fresh is derive before there are classes.
func (a *automaton) fresh(s *state, b byte) *state { return a.derive(s, b, a.fresh) }

// start makes root the automaton's and ends the building of its expression.
func (a *automaton) start(root *state) {
	a.root, a.fixed = root, len(a.made)
	sets := map[byteSet]bool{}
	for _, s := range a.made {
		if s.op == opByte {
			sets[s.set] = true
		}
	}
	list := slices.Collect(maps.Keys(sets))
	classes := map[string]uint8{}
	for b := range 256 {
		member := make([]byte, len(list))
		for i, set := range list {
			if set.has(byte(b)) {
				member[i] = 1
			}
		}
		c, ok := classes[string(member)]
		if !ok {
			c = uint8(len(classes))
			classes[string(member)] = c
			a.samples = append(a.samples, byte(b))
		}
		a.class[b] = c
	}
}

// step is the state behind b.
func (a *automaton) step(s *state, b byte) *state {
	if s.next != nil {
		if t := s.next[a.class[b]]; t != nil {
			return t
		}
	}
	return a.follow(s, a.class[b])
}

// follow makes the state behind a byte of class c.
func (a *automaton) follow(s *state, c uint8) *state {
	if s.next == nil {
		s.next = make([]*state, len(a.samples))
		a.rows++
	}
	t := a.derive(s, a.samples[c], a.step)
	s.next[c] = t
	return t
}

// near is a state that no text of up to length bytes tells from s: counts that so few bytes cannot use up are open in it.
// Its shortest text is as long.
func (a *automaton) near(s *state, length int) *state {
	switch {
	case s.base:
		return s
	case s.op == opSeq:
		return a.seq(a.near(s.a, length), a.near(s.b, length))
	case s.op == opRepeat && s.max != open && times(s.max, s.a.least) > length:
		return a.repeat(s.a, s.min, open)
	case s.op == opAlt:
		list := make([]*state, len(s.alts))
		for i, x := range s.alts {
			list[i] = a.near(x, length)
		}
		return a.alt(list...)
	}
	return s
}

// trim forgets the states that were made in use and all that is known of states, if that has become much. States that
// are held elsewhere stay good.
func (a *automaton) trim(words int) {
	if a.rows <= maxRows && len(a.made)-a.fixed <= maxMade && a.masks*words*8 <= maxBytes {
		return
	}
	for _, s := range a.made {
		s.next, s.masks = nil, nil
	}
	clear(a.made[a.fixed:])
	a.made = a.made[:a.fixed]
	maps.DeleteFunc(a.shapes, func(_ shape, s *state) bool { return !s.base })
	maps.DeleteFunc(a.alts, func(_ string, s *state) bool { return !s.base })
	a.rows, a.masks = 0, 0
}
