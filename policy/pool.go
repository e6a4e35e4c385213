package policy

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// idlePasses is how many passes a block may go unused before its memory goes back to the device.
const idlePasses = 8

// pool keeps the device memory of finished passes for the next ones: batches differ in size from step to step, and a
// device gives out zeroed memory, which costs a sweep over it.
type pool struct {
	dev  device.Device
	idle []block
	pass int // counts the passes begun
}

type block struct {
	mem  device.Mem
	used int // the pass that gave it back
}

// roundUp rounds n up so that sizes which differ by less than an eighth mostly share a block.
func roundUp(n int) int {
	step := 1
	for step*16 <= n {
		step *= 2
	}
	return (n + step - 1) / step * step
}

// get returns memory of at least n elements with arbitrary contents.
func (p *pool) get(k device.Kind, n int) (device.Mem, error) {
	n = roundUp(max(n, 1))
	best := -1
	for i, b := range p.idle {
		if b.mem.Kind() != k || b.mem.Len() < n || b.mem.Len() > 2*n {
			continue
		}
		if best < 0 || b.mem.Len() < p.idle[best].mem.Len() {
			best = i
		}
	}
	if best >= 0 {
		mem := p.idle[best].mem
		p.idle = append(p.idle[:best], p.idle[best+1:]...)
		return mem, nil
	}
	mem, err := p.dev.Alloc(k, n)
	if err != nil && len(p.idle) > 0 {
		p.drop(func(block) bool { return true })
		mem, err = p.dev.Alloc(k, n)
	}
	if err != nil {
		return nil, fmt.Errorf("policy: no device memory for a pass (smaller micro-batches need less): %w", err)
	}
	return mem, nil
}

func (p *pool) put(m device.Mem) { p.idle = append(p.idle, block{m, p.pass}) }

// drop frees the idle blocks for which old is true.
func (p *pool) drop(old func(block) bool) {
	kept := p.idle[:0]
	for _, b := range p.idle {
		if old(b) {
			p.dev.Free(b.mem)
		} else {
			kept = append(kept, b)
		}
	}
	clear(p.idle[len(kept):])
	p.idle = kept
}

// scope begins a pass.
func (p *pool) scope() *scope {
	p.pass++
	p.drop(func(b block) bool { return p.pass-b.used > idlePasses })
	return &scope{pool: p}
}

// scope is the memory of one pass, given back all at once. It keeps the first failure, so that a pass asks for all it
// needs and checks err once before it computes. Without a pool it takes nothing and only counts.
type scope struct {
	pool    *pool
	taken   []device.Mem
	err     error
	counted [device.I32 + 1]int // elements of each kind that were asked for
}

func (s *scope) mem(k device.Kind, n int) device.Mem {
	s.counted[k] += roundUp(max(n, 1))
	if s.err != nil || s.pool == nil {
		return nil
	}
	m, err := s.pool.get(k, n)
	if err != nil {
		s.err = err
		return nil
	}
	s.taken = append(s.taken, m)
	return m
}

// mat returns a [rows, cols] matrix with arbitrary contents.
func (s *scope) mat(k device.Kind, rows, cols int) device.Mat {
	return device.View(s.mem(k, rows*cols), rows, cols)
}

// ints returns memory that begins with v.
func (s *scope) ints(v []int32) device.Mem {
	m := s.mem(device.I32, len(v))
	if m != nil && len(v) > 0 {
		s.pool.dev.UploadInts(m, 0, v)
	}
	return m
}

func (s *scope) release() {
	for _, m := range s.taken {
		s.pool.put(m)
	}
	s.taken = nil
}
