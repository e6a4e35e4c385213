package ptxsim

import "encoding/binary"

// The modifiers of loads and stores that only advise, or order accesses of other blocks.
var hints = []string{"nc", "ca", "cg", "cs", "cv", "lu", "wb", "wt", "L1::evict_last", "L1::evict_first", "L1::no_allocate",
	"L2::64B", "L2::128B", "L2::256B", "weak", "cta", "gpu", "sys"}

// elements is the number of elements that .v2 or .v4 says.
func (b *builder) elements() int {
	switch b.one("v2", "v4") {
	case "v2":
		return 2
	case "v4":
		return 4
	}
	return 1
}

// touch is the kind of a load or a store, plain or one that expects others at the same time.
func (b *builder) touch(plain, ordered touch) touch {
	if b.one("volatile", "relaxed", "acquire", "release") != "" {
		return ordered
	}
	return plain
}

func (b *builder) load() exec {
	t, s, n := b.typ(0), b.space(), b.elements()
	b.allow(hints...)
	b.count(2, 2)
	if t.class == predicate {
		return nil
	}
	a := b.access(1, s, t.size, n, b.touch(reads, polls))
	into := b.list(0, func(o operand) int { return b.target(o, t.size, 8) })
	if len(into) != n {
		b.fail("%d elements, %d registers", n, len(into))
	}
	get := getter(t, width(b.arg(0), t.size))
	if s == parameter && b.arg(1).register < 0 {
		return b.loadParameter(a, into, get)
	}
	return func(w *warp, active uint32) {
		for active != 0 {
			mem, found := w.place(&a, active)
			if found == 0 {
				return
			}
			for i, d := range into {
				get(&w.registers[d], mem[i*t.size:], &w.where, found)
			}
			active &^= found
		}
	}
}

// loadParameter reads a parameter by its name.
func (b *builder) loadParameter(a access, into []int, get getterFunc) exec {
	if a.offset+uint64(a.size) > uint64(b.body.kernel.paramSize) || a.offset&uint64(a.size-1) != 0 {
		b.fail("%d bytes at %d of the %d bytes of parameters", a.size, a.offset, b.body.kernel.paramSize)
	}
	step, at := a.size/len(into), new(offsets)
	return func(w *warp, active uint32) {
		for i, d := range into {
			get(&w.registers[d], w.block.params[int(a.offset)+i*step:], at, active)
		}
	}
}

// width is the bytes of the registers of an operand.
func width(o operand, otherwise int) int {
	if o.kind == vectorOperand {
		o = o.list[0]
	}
	return max(o.size, otherwise)
}

// getter reads an element into a register of so many bytes.
func getter(t dtype, width int) getterFunc {
	narrow := t.class == signed && t.size < width
	switch {
	case t.size == 4 && !narrow:
		return get4
	case t.size == 2 && !narrow:
		return get2
	}
	return func(d *lanes, mem []byte, at *offsets, active uint32) {
		for l := range d {
			if active>>l&1 == 0 {
				continue
			}
			d[l] = fetch(mem[at[l]:], t.size)
			if narrow {
				d[l] = low(uint64(extend(d[l], t.size)), width)
			}
		}
	}
}

// getterFunc reads an element of each active lane.
type getterFunc func(d *lanes, mem []byte, at *offsets, active uint32)

// offsets are where the lanes' accesses lie in a memory.
type offsets [32]int

func get4(d *lanes, mem []byte, at *offsets, active uint32) {
	for l := range d {
		if active>>l&1 != 0 {
			d[l] = uint64(binary.LittleEndian.Uint32(mem[at[l]:]))
		}
	}
}

func get2(d *lanes, mem []byte, at *offsets, active uint32) {
	for l := range d {
		if active>>l&1 != 0 {
			d[l] = uint64(binary.LittleEndian.Uint16(mem[at[l]:]))
		}
	}
}

func (b *builder) store() exec {
	t, s, n := b.typ(0), b.space(), b.elements()
	b.allow(hints...)
	b.count(2, 2)
	if t.class == predicate || s == parameter || s == constant {
		return nil
	}
	a := b.access(0, s, t.size, n, b.touch(writes, updates))
	from := b.list(1, func(o operand) int { return b.source(o, t.size, 8) })
	if len(from) != n {
		b.fail("%d elements, %d registers", n, len(from))
	}
	return func(w *warp, active uint32) {
		for active != 0 {
			mem, found := w.place(&a, active)
			if found == 0 {
				return
			}
			for i, v := range from {
				spill(&w.registers[v], mem[i*t.size:], &w.where, found, t.size)
			}
			active &^= found
		}
	}
}

func spill(v *lanes, mem []byte, at *offsets, active uint32, size int) {
	for l := range v {
		if active>>l&1 != 0 {
			store(mem[at[l]:], v[l], size)
		}
	}
}
