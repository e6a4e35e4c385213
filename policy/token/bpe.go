package token

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// none is the rank of a pair that does not merge.
const none = ^uint64(0)

// bpe is the model: which pairs of tokens merge, in which order, into what.
type bpe struct {
	single [256]int32 // token of each byte, or -1
	bytes  []uint64   // pair value of two bytes' tokens
	pairs  pairTable
	merges int              // number of merges, and of ranks
	whole  map[string]int32 // words that are tokens as they are, before any merge (ignore_merges); nil otherwise
	unk    int32            // stands for bytes that have no token; -1: they are dropped
	fuse   bool             // one unk for a run of such bytes
}

// pairTable is an open hash table from pairs of tokens to rank<<32 | merged token.
type pairTable struct {
	slots []pairSlot
	shift uint
}

type pairSlot struct{ key, value uint64 }

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

func newPairTable(n int) pairTable {
	size := bits.Len(uint(2*n + 1)) // at most half full
	t := pairTable{slots: make([]pairSlot, 1<<size), shift: uint(64 - size)}
	for i := range t.slots {
		t.slots[i].value = none
	}
	return t
}

// slot is the place of key, empty (value none) if it is not there.
func (t *pairTable) slot(key uint64) *pairSlot {
	for i := key * 0x9e3779b97f4a7c15 >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		s := &t.slots[i]
		if s.value == none || s.key == key {
			return s
		}
	}
}

func (t *pairTable) get(left, right int32) uint64 { return t.slot(pairKey(left, right)).value }

// newBPE builds the model from its vocabulary and its merges in order.
func newBPE(vocab map[string]int32, merges [][2]string) (*bpe, error) {
	m := &bpe{pairs: newPairTable(len(merges)), merges: len(merges), unk: -1}
	for b := range m.single {
		m.single[b] = -1
		if id, ok := vocab[string(byteLevel().char[b])]; ok {
			m.single[b] = id
		}
	}
	for rank, pair := range merges {
		left, ok := vocab[pair[0]]
		right, ok2 := vocab[pair[1]]
		to, ok3 := vocab[pair[0]+pair[1]]
		if !ok || !ok2 || !ok3 {
			return nil, fmt.Errorf("merge %d joins %q and %q: one of them or the result is not in the vocabulary", rank, pair[0], pair[1])
		}
		s := m.pairs.slot(pairKey(left, right))
		if s.value != none {
			return nil, fmt.Errorf("merge %d joins %q and %q, as an earlier one does", rank, pair[0], pair[1])
		}
		*s = pairSlot{pairKey(left, right), uint64(rank)<<32 | uint64(to)}
	}
	m.bytes = make([]uint64, 1<<16)
	for i := range m.bytes {
		m.bytes[i] = none
		if left, right := m.single[i>>8], m.single[i&0xff]; left >= 0 && right >= 0 {
			m.bytes[i] = m.pairs.get(left, right)
		}
	}
	if len(merges) >= 1<<31 {
		return nil, errors.New("too many merges")
	}
	return m, nil
}

// word appends the tokens of a word. scratch is reused by later calls.
func (m *bpe) word(dst []int32, w string, scratch *scratch) []int32 {
	if id, ok := m.whole[w]; ok {
		return append(dst, id)
	}
	ids, values := scratch.start(m, w)
	if len(ids) <= shortWord {
		return append(dst, mergeShort(&m.pairs, ids, values)...)
	}
	return scratch.mergeLong(dst, m, ids, values)
}

// shortWord is the length in tokens up to which looking at all pairs for the lowest rank beats a queue.
const shortWord = 96

// scratch is memory that merging needs.
type scratch struct {
	ids        []int32
	values     []uint64
	next, prev []int32
	queue      rankQueue
}

// start sets out the bytes of w as tokens with the values of their pairs: values[i] is that of ids[i] and ids[i+1].
func (s *scratch) start(m *bpe, w string) ([]int32, []uint64) {
	s.ids, s.values = slices.Grow(s.ids[:0], len(w)), slices.Grow(s.values[:0], len(w))
	plain := true
	for i := range len(w) {
		id := m.single[w[i]]
		plain = plain && id >= 0
		s.ids = append(s.ids, id)
	}
	if !plain {
		s.replaceUnknown(m)
	}
	for i := 0; i+1 < len(s.ids); i++ {
		if plain {
			s.values = append(s.values, m.bytes[int(w[i])<<8|int(w[i+1])])
		} else {
			s.values = append(s.values, m.pairs.get(s.ids[i], s.ids[i+1]))
		}
	}
	return s.ids, append(s.values, none)
}

// replaceUnknown puts the unknown token in the place of bytes that have none, or drops them.
func (s *scratch) replaceUnknown(m *bpe) {
	out, unknown := s.ids[:0], false
	for _, id := range s.ids {
		if id < 0 && m.unk >= 0 && !(unknown && m.fuse) {
			out = append(out, m.unk)
		} else if id >= 0 {
			out = append(out, id)
		}
		unknown = id < 0
	}
	s.ids = out
}

// mergeShort merges in place, closing the gaps.
func mergeShort(pairs *pairTable, ids []int32, values []uint64) []int32 {
	for {
		at, best := -1, none
		for i, v := range values {
			if v < best {
				at, best = i, v
			}
		}
		if at < 0 {
			return ids
		}
		ids[at] = int32(uint32(best))
		ids = append(ids[:at+1], ids[at+2:]...)
		values = append(values[:at+1], values[at+2:]...)
		if at+1 < len(ids) {
			values[at] = pairs.get(ids[at], ids[at+1])
		} else {
			values[at] = none
		}
		if at > 0 {
			values[at-1] = pairs.get(ids[at-1], ids[at])
		}
	}
}

// mergeLong merges over a linked list, rank by rank and from left to right, in time about linear in the length.
func (s *scratch) mergeLong(dst []int32, m *bpe, ids []int32, values []uint64) []int32 {
	n, q := len(ids), &s.queue
	s.link(m, values)
	set := func(i int32) uint64 { // the pair at i has changed
		values[i] = none
		if j := int(s.next[i]); j < n {
			values[i] = m.pairs.get(ids[i], ids[j])
		}
		q.add(values[i]>>32, i)
		return values[i] >> 32
	}
	for rank, places := q.take(0); len(places) > 0; rank, places = q.take(rank) {
		for k, i := range places {
			if values[i]>>32 != rank { // merged away, or another pair by now
				continue
			}
			ids[i] = int32(uint32(values[i]))
			gone := s.next[i]
			values[gone], s.next[i] = none, s.next[gone]
			if int(s.next[i]) < n {
				s.prev[s.next[i]] = i
			}
			lowest := set(i)
			if s.prev[i] >= 0 {
				lowest = min(lowest, set(s.prev[i]))
			}
			if lowest <= rank { // not in models that were trained, where a token merges after it was made
				q.back(rank, places[k+1:])
				rank = lowest
				break
			}
		}
	}
	for i := int32(0); int(i) < n; i = s.next[i] {
		dst = append(dst, ids[i])
	}
	return dst
}

// link makes the list of all tokens, and queues the pairs that merge.
func (s *scratch) link(m *bpe, values []uint64) {
	n := len(values)
	s.next, s.prev = slices.Grow(s.next[:0], n)[:n], slices.Grow(s.prev[:0], n)[:n]
	s.queue.reset(m.merges)
	for i := n - 1; i >= 0; i-- {
		s.next[i], s.prev[i] = int32(i)+1, int32(i)-1
		s.queue.add(values[i]>>32, int32(i))
	}
}

// rankQueue gives out places by rank, lowest first.
type rankQueue struct {
	last    []int32  // last entry of each rank, or -1
	some    []uint64 // bit r%64 of some[r/64]: rank r has entries
	entries []queued
	places  []int32
}

type queued struct{ place, before int32 }

// reset empties the queue, for ranks below n.
func (q *rankQueue) reset(n int) {
	q.entries = q.entries[:0]
	if len(q.last) != n { // otherwise all entries were taken
		q.last, q.some = make([]int32, n), make([]uint64, n/64+1)
		for i := range q.last {
			q.last[i] = -1
		}
	}
}

// add puts a place into the queue; the rank of none is no rank.
func (q *rankQueue) add(rank uint64, place int32) {
	if rank == none>>32 {
		return
	}
	q.entries = append(q.entries, queued{place, q.last[rank]})
	q.last[rank] = int32(len(q.entries) - 1)
	q.some[rank/64] |= 1 << (rank % 64)
}

// back returns places that were taken.
func (q *rankQueue) back(rank uint64, places []int32) {
	for _, p := range places {
		q.add(rank, p)
	}
}

// take removes all places of the lowest rank from the given one on, and returns them in order. They are valid until
// the next call.
func (q *rankQueue) take(from uint64) (rank uint64, places []int32) {
	if len(q.last) == 0 {
		return 0, nil
	}
	w := from / 64
	left := q.some[w] >> (from % 64) << (from % 64)
	for left == 0 {
		if w++; w == uint64(len(q.some)) {
			return 0, nil
		}
		left = q.some[w]
	}
	rank = w*64 + uint64(bits.TrailingZeros64(left))
	q.places = q.places[:0]
	for e := q.last[rank]; e >= 0; e = q.entries[e].before {
		q.places = append(q.places, q.entries[e].place)
	}
	q.last[rank] = -1
	q.some[w] &^= 1 << (rank % 64)
	slices.Sort(q.places)
	return rank, q.places
}

// trim lets go of what a very long word needed.
func (s *scratch) trim() {
	if cap(s.ids) > 1<<16 {
		*s = scratch{queue: rankQueue{last: s.queue.last, some: s.queue.some}}
	}
}
