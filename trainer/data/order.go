package data

import "math/bits"

// Cursor is a place in the endless sequence of prompts that a run goes through: epoch after epoch, each in its own order. It
// may be saved and read back.
type Cursor struct {
	Rows    int    `json:"rows"`
	Shuffle bool   `json:"shuffle"`
	Seed    uint64 `json:"seed"`
	Epoch   int    `json:"epoch"`
	Index   int    `json:"index"` // rows of this epoch that are used up
}

// NewCursor is the beginning for data of so many rows.
func NewCursor(rows int, shuffle bool, seed uint64) Cursor {
	return Cursor{Rows: rows, Shuffle: shuffle, Seed: seed}
}

// Len is the number of rows.
func (c *Cursor) Len() int { return c.Rows }

// Next returns the indices of the next p rows, all different, and moves on. At the end of an epoch rows that do not fill p are
// left out, as in TRL's sampler. nil if the data never has p rows.
func (c *Cursor) Next(p int) []int {
	if p < 1 || p > c.Rows {
		return nil
	}
	if c.Index+p > c.Rows {
		c.Epoch, c.Index = c.Epoch+1, 0
	}
	next := make([]int, p)
	if c.Shuffle {
		copy(next, Order(c.Rows, c.Seed, c.Epoch)[c.Index:])
	} else {
		for i := range next {
			next[i] = c.Index + i
		}
	}
	c.Index += p
	return next
}

// Order is the permutation of n rows in an epoch, a function of its arguments alone (Fisher and Yates' shuffle).
func Order(n int, seed uint64, epoch int) []int {
	state := mix(mix(seed) + uint64(epoch))
	order := make([]int, n)
	for i := range order {
		state += golden
		j, _ := bits.Mul64(mix(state), uint64(i+1)) // in [0, i]
		order[i] = order[j]
		order[j] = i
	}
	return order
}

const golden = 0x9E3779B97F4A7C15

// mix is the finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
