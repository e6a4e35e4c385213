package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) add(low, high byte) {
	for b := int(low); b <= int(high); b++ {
		s[b/64] |= 1 << (b % 64)
	}
}

func (s *byteSet) has(b byte) bool { return s[b/64]>>(b%64)&1 == 1 }

// setOf is the set of some bytes.
func setOf(bytes string) (s byteSet) {
	for i := range len(bytes) {
		s.add(bytes[i], bytes[i])
	}
	return s
}

// between is the set of the bytes from low to high.
func between(low, high byte) (s byteSet) {
	s.add(low, high)
	return s
}

type op uint8

const (
	opNone   op = iota // no text
	opEmpty            // the empty text
	opByte             // a byte of set
	opSeq              // a, then b
	opAlt              // one of alts
	opRepeat           // a, from min to max times
)

// unreachable is more bytes than any sample has. What needs that many is not counted exactly.
const unreachable = 1 << 30

// state is a regular expression over bytes, and so a state of the automaton that accepts its texts. Two states of one
// automaton with the same parts are the same. Of repeats, a is never nullable.
type state struct {
	op       op
	nullable bool // the empty text is one of its texts
	base     bool // part of the schema's own expression
	set      byteSet
	a, b     *state
	alts     []*state
	min, max int // max open: any number of times
	id       int
	least    int // bytes of the shortest text

	next  []*state      // derivatives by class of bytes; nil: not known yet
	masks map[int]*mask // by the tokens that are left; 0: enough
}

// shape is what tells states apart, but for opAlt.
type shape struct {
	op       op
	set      byteSet
	a, b     *state
	min, max int
}

// automaton makes states and keeps those it made.
type automaton struct {
	bytes       byteSet // that texts may hold
	none, empty *state
	shapes      map[shape]*state
	alts        map[string]*state // by the ids of the alternatives
	made        []*state          // all in shapes and alts, base first
	ids         int
	root        *state

	size    int  // of the schema's own expression, with the work on it
	fixed   int  // how many of made it is
	full    bool // it is larger than maxSize, or a state is
	class   [256]uint8
	samples []byte // a byte of each class
	rows    int    // states with next
	masks   int
}

// maxSize bounds the schema's own expression, in states and alternatives.
const maxSize = 1 << 17

// maxAlts bounds the alternatives of one state.
const maxAlts = 1 << 14

func newAutomaton(bytes byteSet) *automaton {
	a := &automaton{bytes: bytes, shapes: map[shape]*state{}, alts: map[string]*state{}}
	a.none = a.keep(&state{op: opNone, least: unreachable})
	a.empty = a.keep(&state{op: opEmpty, nullable: true})
	return a
}

// keep gives a new state its number.
func (a *automaton) keep(s *state) *state {
	a.ids++
	s.id, s.base = a.ids, a.root == nil
	a.made = append(a.made, s)
	if s.base {
		a.grow(1 + len(s.alts))
	}
	return s
}

// grow counts work on the schema's own expression.
func (a *automaton) grow(n int) {
	a.size += n
	a.full = a.full || a.size > maxSize
}

// intern is the one state of a shape.
func (a *automaton) intern(k shape, nullable bool, least int) *state {
	s := a.shapes[k]
	if s == nil {
		s = a.keep(&state{op: k.op, nullable: nullable, set: k.set, a: k.a, b: k.b, min: k.min, max: k.max, least: min(least, unreachable)})
		a.shapes[k] = s
	}
	return s
}

// one is a byte of a set, as far as texts may hold it.
func (a *automaton) one(set byteSet) *state {
	for i := range set {
		set[i] &= a.bytes[i]
	}
	if set == (byteSet{}) {
		return a.none
	}
	return a.intern(shape{op: opByte, set: set}, false, 1)
}

// seq is the states one after the other.
func (a *automaton) seq(parts ...*state) *state {
	out := a.empty
	for i := len(parts) - 1; i >= 0; i-- {
		switch x := parts[i]; {
		case x == a.none || out == a.none:
			out = a.none
		case out == a.empty:
			out = x
		case x != a.empty:
			out = a.intern(shape{op: opSeq, a: x, b: out}, x.nullable && out.nullable, x.least+out.least)
		}
	}
	return out
}

// repeat is x from least to most times.
func (a *automaton) repeat(x *state, least, most int) *state {
	switch {
	case most != open && most < least:
		return a.none
	case most == 0 || x == a.none && least == 0:
		return a.empty
	case x == a.none:
		return a.none
	case least == 1 && most == 1:
		return x
	}
	return a.intern(shape{op: opRepeat, a: x, min: least, max: most}, least == 0, times(least, x.least))
}

// times is n*m, cut.
func times(n, m int) int {
	if m > 0 && n > unreachable/m {
		return unreachable
	}
	return n * m
}

// alt is any of the states. Those that begin with the same state are joined behind it, so that alternatives that part
// late do not multiply.
func (a *automaton) alt(parts ...*state) *state {
	list := a.joined(a.flat(parts))
	switch len(list) {
	case 0:
		return a.none
	case 1:
		return list[0]
	}
	slices.SortFunc(list, func(x, y *state) int { return cmp.Compare(x.id, y.id) })
	key := make([]byte, 0, 4*len(list))
	for _, s := range list {
		key = binary.AppendUvarint(key, uint64(s.id))
	}
	s := a.alts[string(key)]
	if s == nil {
		s = &state{op: opAlt, alts: list, least: unreachable}
		for _, x := range list {
			s.nullable, s.least = s.nullable || x.nullable, min(s.least, x.least)
		}
		a.full = a.full || len(list) > maxAlts
		a.alts[string(key)] = a.keep(s)
	}
	return s
}

// flat is parts without none and with the members of alternatives in their place; single bytes are one set.
func (a *automaton) flat(parts []*state) []*state {
	var list []*state
	var set byteSet
	for _, p := range parts {
		members := []*state{p}
		if p.op == opAlt {
			members = p.alts
		}
		for _, s := range members {
			if s.op == opByte {
				for i := range set {
					set[i] |= s.set[i]
				}
			} else if s.op != opNone {
				list = append(list, s)
			}
		}
	}
	if set != (byteSet{}) {
		list = append(list, a.one(set))
	}
	return list
}

// joined is list without duplicates, in which every state begins with another.
func (a *automaton) joined(list []*state) []*state {
	slices.SortFunc(list, func(x, y *state) int { return cmp.Or(cmp.Compare(x.head().id, y.head().id), cmp.Compare(x.id, y.id)) })
	list = slices.Compact(list)
	var out []*state
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].head() == list[0].head() {
			n++
		}
		joint := list[0]
		if n > 1 {
			var tails []*state
			for _, s := range list[:n] {
				tails = append(tails, a.tail(s))
			}
			joint = a.seq(list[0].head(), a.alt(tails...))
		}
		out = append(out, joint)
		list = list[n:]
	}
	return out
}

// head is what s begins with.
func (s *state) head() *state {
	if s.op == opSeq {
		return s.a
	}
	return s
}

// tail is what follows the head of s.
func (a *automaton) tail(s *state) *state {
	if s.op == opSeq {
		return s.b
	}
	return a.empty
}
