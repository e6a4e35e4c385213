package ptxsim

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"sync"
)

// memory is the device's memory. Addresses are used once: whatever touches freed memory is found.
type memory struct {
	size, used int64
	next       uint64
	blocks     []*allocation // by address
	atomics    sync.Mutex    // held by atomic operations
}

// allocation is a block of memory; bytes is nil once it is freed.
type allocation struct {
	at    uint64
	size  int
	bytes []byte

	lock   sync.Mutex
	shadow []uint64 // who touched what, see race.go; made when it is needed, under the lock
}

const (
	firstAddress = 0x7f0000000000 // what a device gives is like it
	alignment    = 256
)

// alloc fills the new memory with what is NaN in every type of float.
func (m *memory) alloc(n int64) (uint64, error) {
	if n <= 0 {
		return 0, fmt.Errorf("an allocation of %d bytes", n)
	}
	if n > m.size-m.used {
		return 0, fmt.Errorf("out of memory: %d bytes, and %d of %d are in use", n, m.used, m.size)
	}
	if m.next == 0 {
		m.next = firstAddress
	}
	a := &allocation{at: m.next, size: int(n), bytes: bytes.Repeat([]byte{0xff}, int(n))}
	m.next += uint64(up(a.size, alignment) + alignment) // a gap
	m.used += n
	m.blocks = append(m.blocks, a)
	return a.at, nil
}

func (m *memory) free(at uint64) error {
	a := m.below(at)
	switch {
	case a == nil || a.at != at:
		return fmt.Errorf("free %#x: no allocation begins there%s", at, m.where(at))
	case a.bytes == nil:
		return fmt.Errorf("free %#x: it was freed before", at)
	}
	m.used -= int64(a.size)
	a.bytes, a.shadow = nil, nil
	return nil
}

// below is the last allocation that begins at or before an address.
func (m *memory) below(at uint64) *allocation {
	i := sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].at > at })
	if i == 0 {
		return nil
	}
	return m.blocks[i-1]
}

// find is the live allocation that has n bytes at an address, or nil.
func (m *memory) find(at uint64, n int) *allocation {
	if a := m.below(at); a != nil && a.has(at, n) {
		return a
	}
	return nil
}

func (a *allocation) has(at uint64, n int) bool {
	return at >= a.at && n <= len(a.bytes) && at-a.at <= uint64(len(a.bytes)-n)
}

// where says how an address lies that is in no live allocation.
func (m *memory) where(at uint64) string {
	a := m.below(at)
	switch {
	case a == nil:
		return ""
	case at < a.at+uint64(a.size) && a.bytes == nil:
		return fmt.Sprintf(" (byte %d of an allocation of %d bytes that was freed)", at-a.at, a.size)
	}
	return fmt.Sprintf(" (byte %d of an allocation of %d bytes)", at-a.at, a.size)
}

// bytes are n bytes at an address.
func (m *memory) bytes(at uint64, n int) ([]byte, error) {
	a := m.find(at, n)
	if a == nil {
		return nil, fmt.Errorf("%d bytes at %#x are in no allocation%s", n, at, m.where(at))
	}
	return a.bytes[at-a.at:][:n:n], nil
}

// leaks describes what is allocated.
func (m *memory) leaks() string {
	var parts []string
	for _, a := range m.blocks {
		if a.bytes != nil {
			parts = append(parts, fmt.Sprintf("%d bytes at %#x", a.size, a.at))
		}
	}
	return strings.Join(parts, ", ")
}
