package token

import (
	"hash/maphash"
	"sync/atomic"
)

// wordCache remembers the tokens of words that were met before. It is of fixed size and needs no lock: a word has two
// places, and the last to come keeps the one that it takes.
type wordCache struct {
	seed  maphash.Seed // which words share a place differs from run to run; what is returned does not
	slots []atomic.Pointer[cached]
}

// cached holds no pointers, so that the garbage collector has nothing to follow.
type cached struct {
	length, count uint8
	word          [longestCached]byte
	ids           [mostCached]int32
}

const (
	cacheSlots    = 1 << 16
	longestCached = 40 // bytes; longer words hardly come twice
	mostCached    = 12 // tokens
)

func newWordCache() *wordCache {
	return &wordCache{maphash.MakeSeed(), make([]atomic.Pointer[cached], cacheSlots)}
}

// get returns the tokens of word, or nil; hash is for put.
func (c *wordCache) get(word string) (ids []int32, hash uint64) {
	hash = maphash.String(c.seed, word)
	if e := c.slots[hash%cacheSlots].Load(); e != nil && string(e.word[:e.length]) == word {
		return e.ids[:e.count], hash
	}
	if e := c.slots[hash>>32%cacheSlots].Load(); e != nil && string(e.word[:e.length]) == word {
		return e.ids[:e.count], hash
	}
	return nil, hash
}

// put keeps a copy of ids for word, unless there are too many.
func (c *wordCache) put(word string, hash uint64, ids []int32) {
	if len(ids) > mostCached {
		return
	}
	e := &cached{length: uint8(len(word)), count: uint8(len(ids))}
	copy(e.word[:], word)
	copy(e.ids[:], ids)
	slot := &c.slots[hash%cacheSlots]
	if slot.Load() != nil {
		slot = &c.slots[hash>>32%cacheSlots]
	}
	slot.Store(e)
}
