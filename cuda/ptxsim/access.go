package ptxsim

import "math/bits"

// access is how an instruction touches memory: size bytes of each lane, at a register's value plus an offset.
type access struct {
	space   space
	address int
	offset  uint64
	size    int
	kind    touch
	mask    uint64 // of addresses: those in registers of 32 bits wrap around
}

// touch is what an access does to memory.
type touch int

const (
	reads touch = iota
	writes
	updates // atomically
	polls   // reads what others may update
)

// verbs are the kinds of access in errors.
var verbs = [...]string{reads: "reads", writes: "writes", updates: "updates", polls: "reads"}

// access describes operand i of the instruction, with elements of so many bytes, so many of them.
func (b *builder) access(i int, space space, size, count int, kind touch) access {
	register, offset := b.address(i, space)
	if size*count > 16 {
		b.fail("%d bytes are more than an access may have", size*count)
	}
	if space != parameter && space != constant && space != local {
		b.body.kernel.grain = min(b.body.kernel.grain, bits.TrailingZeros(uint(size*count)))
	}
	mask := ^uint64(0)
	if b.arg(i).size == 4 {
		mask >>= 32
	}
	return access{space, register, offset, size * count, kind, mask}
}

// place finds the memory of the first active lane and of all others that lie in the same: it returns that memory and these
// lanes, whose offsets in it are w.where then. If there is an error, there are no lanes.
func (w *warp) place(a *access, active uint32) (mem []byte, lanes uint32) {
	address := &w.registers[a.address]
	first := firstLane(active)
	at := address[first] + a.offset
	switch s, base := spaceOf(a.space, at); s {
	case global:
		return w.placeGlobal(a, address, active, first)
	case shared:
		return w.placeShared(a, address, active, base)
	case local:
		return w.placeLocal(a, address, active, base)
	case parameter:
		return w.placeFixed(a, w.block.params, address, active)
	default:
		return w.placeFixed(a, w.block.kernel.consts, address, active)
	}
}

// spaceOf resolves a generic address; base is what has to be subtracted from it.
func spaceOf(s space, at uint64) (space, uint64) {
	switch {
	case s != generic:
		return s, 0
	case at&sharedWindow != 0:
		return shared, sharedWindow
	case at&localWindow != 0:
		return local, localWindow
	}
	return global, 0
}

func (w *warp) placeGlobal(a *access, address *lanes, active uint32, first int) ([]byte, uint32) {
	if !w.hold(first, address[first]+a.offset, a.size) {
		return nil, 0
	}
	start, end := w.last.at, uint64(len(w.last.bytes)-a.size)
	var found uint32
	var odd uint64
	for l := range address {
		if active>>l&1 == 0 {
			continue
		}
		if o := address[l] + a.offset - start; o <= end {
			w.where[l] = int(o)
			odd |= o
			found |= 1 << l
		}
	}
	if odd&uint64(a.size-1) != 0 {
		return w.misaligned(a, address, found, start)
	}
	if w.block.launch.races && !w.raceGlobal(a, found) {
		return nil, 0
	}
	return w.last.bytes, found
}

// hold makes w.last the allocation that has n bytes at an address that a lane accesses, or fails.
func (w *warp) hold(lane int, at uint64, n int) bool {
	if w.last != nil && w.last.has(at, n) {
		return true
	}
	m := w.block.launch.memory
	if w.last = m.find(at, n); w.last == nil {
		w.fail(lane, "%d bytes at %#x are in no allocation%s", n, at, m.where(at))
		return false
	}
	if w.block.launch.races {
		w.shadow = w.last.traces(w.block.kernel.grain)
	}
	return true
}

func (w *warp) placeShared(a *access, address *lanes, active uint32, base uint64) ([]byte, uint32) {
	mem := w.block.shared
	end := uint64(len(mem)) - uint64(a.size)
	var found uint32
	var odd uint64
	for l := range address {
		if active>>l&1 == 0 {
			continue
		}
		o := (address[l] + a.offset - base) & a.mask
		if o > end || a.size > len(mem) {
			if base != 0 && address[l]&sharedWindow == 0 {
				continue // another space
			}
			w.fail(l, "%d bytes at %#x are outside of the %d bytes of shared memory", a.size, o, len(mem))
			return nil, 0
		}
		w.where[l] = int(o)
		odd |= o
		found |= 1 << l
	}
	if odd&uint64(a.size-1) != 0 {
		return w.misaligned(a, address, found, base)
	}
	if !w.raceShared(a, found) {
		return nil, 0
	}
	return mem, found
}

// placeLocal finds local memory, of which each lane has its own.
func (w *warp) placeLocal(a *access, address *lanes, active uint32, base uint64) ([]byte, uint32) {
	n := uint64(w.block.kernel.local)
	var found uint32
	for l := range address {
		if active>>l&1 == 0 {
			continue
		}
		o := address[l] + a.offset - base
		switch {
		case n < uint64(a.size) || o > n-uint64(a.size):
			if base != 0 && address[l]&localWindow == 0 {
				continue
			}
			w.fail(l, "%d bytes at %#x are outside of the %d bytes of local memory", a.size, o, n)
			return nil, 0
		case o&uint64(a.size-1) != 0:
			return w.misaligned(a, address, 1<<l, base)
		}
		w.where[l] = l*int(n) + int(o)
		found |= 1 << l
	}
	return w.local, found
}

// placeFixed finds parameters and constants.
func (w *warp) placeFixed(a *access, mem []byte, address *lanes, active uint32) ([]byte, uint32) {
	for l := range address {
		if active>>l&1 == 0 {
			continue
		}
		o := address[l] + a.offset
		if a.size > len(mem) || o > uint64(len(mem)-a.size) {
			w.fail(l, "%d bytes at %#x are outside of the %d bytes of %s memory", a.size, o, len(mem), a.space)
			return nil, 0
		}
		if o&uint64(a.size-1) != 0 {
			return w.misaligned(a, address, 1<<l, 0)
		}
		w.where[l] = int(o)
	}
	return mem, active
}

// misaligned fails for the first of the lanes whose address is no multiple of the access's size.
func (w *warp) misaligned(a *access, address *lanes, active uint32, base uint64) ([]byte, uint32) {
	for l := range address {
		at := address[l] + a.offset
		if active>>l&1 != 0 && (at-base)&uint64(a.size-1) != 0 {
			w.fail(l, "%d bytes at %#x, which is no multiple of %d", a.size, at, a.size)
			break
		}
	}
	return nil, 0
}
