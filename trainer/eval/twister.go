package eval

import "math/bits"

// twister is Python's random.Random: the Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), seeded with a whole number as
// CPython does it.
type twister struct {
	state [624]uint32
	next  int
}

// newTwister is random.Random(seed) for a seed below 2^32.
func newTwister(seed uint32) *twister {
	t := &twister{}
	s := &t.state
	s[0] = 19650218
	for i := 1; i < len(s); i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	i := 1
	turn := func() {
		if i++; i == len(s) {
			s[0], i = s[len(s)-1], 1
		}
	}
	for range len(s) { // init_by_array with a key of one word
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1664525) + seed
		turn()
	}
	for range len(s) - 1 {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1566083941) - uint32(i)
		turn()
	}
	s[0] = 1 << 31
	t.next = len(s)
	return t
}

// word is the next 32 bits.
func (t *twister) word() uint32 {
	s := &t.state
	if t.next == len(s) {
		for i := range s {
			y := s[i]&(1<<31) | s[(i+1)%len(s)]&(1<<31-1)
			s[i] = s[(i+397)%len(s)] ^ y>>1 ^ (y&1)*0x9908b0df
		}
		t.next = 0
	}
	y := s[t.next]
	t.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// below is randbelow: a whole number below n, from as many of a word's highest bits as n has.
func (t *twister) below(n int) int {
	k := bits.Len(uint(n))
	for {
		if r := int(t.word() >> (32 - k)); r < n {
			return r
		}
	}
}

// permutation is sample(range(n), n) for few n.
func (t *twister) permutation(n int) []int {
	pool, out := make([]int, n), make([]int, n)
	for i := range pool {
		pool[i] = i
	}
	for i := range out {
		j := t.below(n - i)
		out[i] = pool[j]
		pool[j] = pool[n-i-1]
	}
	return out
}
