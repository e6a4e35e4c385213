package langdetect

import (
	"math"
	"math/bits"
)

// The size of the Mersenne Twister's state and the distance of the words that it mixes.
const (
	words    = 624
	distance = 397
)

// random is Python's random.Random: the Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), seeded and read as
// CPython does.
type random struct {
	state [words]uint32
	next  int
	spare float64 // second of a pair of normal numbers, if paired
	pair  bool
}

// newRandom is random.Random(seed).
func newRandom(seed uint32) *random {
	r := &random{next: words}
	s := &r.state
	s[0] = 19650218
	for i := 1; i < words; i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	i := 1
	step := func(factor, add uint32) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*factor) + add
		if i++; i == words {
			s[0], i = s[words-1], 1
		}
	}
	for range words {
		step(1664525, seed)
	}
	for range words - 1 {
		step(1566083941, -uint32(i))
	}
	s[0] = 1 << 31
	return r
}

// word is the next 32 bits.
func (r *random) word() uint32 {
	if r.next == words {
		r.twist()
	}
	y := r.state[r.next]
	r.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (r *random) twist() {
	s := &r.state
	for i := range s {
		y := s[i]&(1<<31) | s[(i+1)%words]&^(1<<31)
		s[i] = s[(i+distance)%words] ^ y>>1 ^ (y&1)*0x9908b0df
	}
	r.next = 0
}

// float is random().
func (r *random) float() float64 {
	a, b := r.word()>>5, r.word()>>6
	return (float64(a)*(1<<26) + float64(b)) / (1 << 53)
}

// below is the index that choice draws from n > 0 elements.
func (r *random) below(n int) int {
	for {
		if v := int(r.word() >> (32 - bits.Len(uint(n)))); v < n {
			return v
		}
	}
}

// gauss is gauss(0, 1).
func (r *random) gauss() float64 {
	if r.pair {
		r.pair = false
		return r.spare
	}
	angle := r.float() * 2 * math.Pi
	radius := math.Sqrt(-2 * math.Log(1-r.float()))
	r.spare, r.pair = math.Sin(angle)*radius, true
	return math.Cos(angle) * radius
}
