package cpu

import (
	"unsafe"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// align is the alignment of memory in bytes, a cache line and the widest vector.
const align = 64

// slack is how many float32 past the end of a block a product may read (never use).
const slack = panel

// aligned returns n zeroed elements at an aligned address, with slack after them.
func aligned[T float32 | int32 | uint32](n int) []T {
	raw := make([]T, n+slack+align/4)
	skip := (align - int(uintptr(unsafe.Pointer(&raw[0]))%align)) % align / 4
	return raw[skip : skip+n : skip+n+slack]
}

// arena is scratch memory that is taken piece by piece and given back at once. It grows to what the largest
// operation needs and then allocates no more.
type arena struct {
	block []float32
	free  func()
	used  int
	extra int      // taken beyond block since the last reset
	freed []func() // frees that
}

// take returns n elements of any value at an aligned address, with slack after them.
func (a *arena) take(n int) []float32 {
	size := (n + slack + align/4 - 1) &^ (align/4 - 1)
	if a.used+size > len(a.block) {
		a.extra += size
		return a.beyond(n)
	}
	s := a.block[a.used : a.used+n : a.used+size]
	a.used += size
	return s
}

// beyond returns n elements outside the block.
func (a *arena) beyond(n int) []float32 {
	s, free, err := reserve[float32](n)
	if err != nil {
		return aligned[float32](n) // the process ends if there really is no memory
	}
	a.freed = append(a.freed, free)
	return s
}

// takeInts is take for int32.
func (a *arena) takeInts(n int) []int32 {
	if n == 0 {
		return nil
	}
	f := a.take(n)
	return unsafe.Slice((*int32)(unsafe.Pointer(&f[0])), n)
}

// reset gives everything back.
func (a *arena) reset() {
	if a.extra > 0 {
		a.grow(len(a.block) + a.extra)
	}
	a.used = 0
}

// grow replaces the block; the old one goes first. If the system has no memory, there is none until the next time.
func (a *arena) grow(n int) {
	a.release()
	if block, free, err := reserve[float32](n + n/8); err == nil {
		a.block, a.free = block, free
	}
}

// release frees everything.
func (a *arena) release() {
	if a.free != nil {
		a.free()
	}
	for _, free := range a.freed {
		free()
	}
	clear(a.freed)
	*a = arena{freed: a.freed[:0]}
}

// worker is what one worker has for itself.
type worker struct {
	arena
	runs    []device.Span // of the patches of a block of keys
	patches []patch
	places  []place // of the rows of a tile
}
