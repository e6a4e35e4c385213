package ptxsim

import "math/bits"

// logical is and, or, xor and not, of registers or predicates.
func (b *builder) logical() exec {
	t := b.typ(0)
	if t.class == predicate {
		return b.logicalPredicate()
	}
	if t.class != untyped {
		b.fail("%s needs a type without sign", b.op)
	}
	switch b.op {
	case "and":
		return b.binary(t.size, andBits)
	case "or":
		return b.binary(t.size, orBits)
	case "xor":
		return b.binary(t.size, xorBits)
	}
	return b.unary(t.size, each1(func(x uint64) uint64 { return low(^x, t.size) }))
}

func andBits(d, a, b *lanes) {
	for l := range d {
		d[l] = a[l] & b[l]
	}
}

func orBits(d, a, b *lanes) {
	for l := range d {
		d[l] = a[l] | b[l]
	}
}

func xorBits(d, a, b *lanes) {
	for l := range d {
		d[l] = a[l] ^ b[l]
	}
}

// shift is shl and shr; the amount is of 32 bits, and shifts beyond the width give zeros or signs.
func (b *builder) shift() exec {
	t := b.typ(0)
	b.count(3, 3)
	d, x, y := b.dst(0, t.size), b.src(1, t.size), b.src(2, 4)
	switch {
	case b.op == "shl":
		return b.map2(sized(t.size, shiftLeft[uint16], shiftLeft[uint32], shiftLeft[uint64]), d, x, y)
	case t.class == signed:
		return b.map2(sized(t.size, shiftRight[int16, uint16], shiftRight[int32, uint32], shiftRight[int64, uint64]), d, x, y)
	}
	return b.map2(sized(t.size, shiftRight[uint16, uint16], shiftRight[uint32, uint32], shiftRight[uint64, uint64]), d, x, y)
}

func shiftLeft[T word](d, a, b *lanes) {
	for l := range d {
		d[l] = uint64(T(a[l]) << uint32(b[l]))
	}
}

func shiftRight[T integer, U word](d, a, b *lanes) {
	for l := range d {
		d[l] = uint64(U(T(a[l]) >> uint32(b[l])))
	}
}

// funnel is shf: a shift of two registers as one of 64 bits.
func (b *builder) funnel() exec {
	if t := b.typ(0); t.name != "b32" {
		b.fail("shf needs the type b32")
	}
	left, wrap := b.one("l", "r") == "l", b.one("wrap", "clamp") == "wrap"
	return b.ternary(4, each3(func(x, y, n uint64) uint64 {
		if wrap {
			n &= 31
		}
		n = min(n, 32)
		if left {
			return low((y<<32|x)<<n>>32, 4)
		}
		return low((y<<32|x)>>n, 4)
	}))
}

// lookup is lop3: bit i of the table is the result for the bits of i in a (4), b (2) and c (1).
func (b *builder) lookup() exec {
	if t := b.typ(0); t.name != "b32" {
		b.fail("lop3 needs the type b32")
	}
	b.count(5, 5)
	table := b.number(4, 255)
	return b.map3(each3(func(x, y, z uint64) uint64 {
		var out uint64
		for i := range uint64(8) {
			if table>>i&1 != 0 {
				out |= (x ^ (i>>2&1 - 1)) & (y ^ (i>>1&1 - 1)) & (z ^ (i&1 - 1))
			}
		}
		return low(out, 4)
	}), b.dst(0, 4), b.src(1, 4), b.src(2, 4), b.src(3, 4))
}

// permute is prmt: each byte of the result is one of the eight of two registers, or its sign.
func (b *builder) permute() exec {
	if t := b.typ(0); t.name != "b32" {
		b.fail("prmt needs the type b32")
	}
	return b.ternary(4, each3(func(x, y, choice uint64) uint64 {
		var out uint64
		for i := 0; i < 32; i += 8 {
			c := choice >> (i / 2)
			v := (y<<32 | x) >> ((c & 7) * 8) & 255
			if c&8 != 0 {
				v = v >> 7 * 255
			}
			out |= v << i
		}
		return out
	}))
}

// extract is bfe: c bits of a from bit b on, with the sign of the last of them, or of a where a ends before.
func (b *builder) extract() exec {
	t := b.typ(0)
	b.count(4, 4)
	if t.size < 4 || t.class == untyped {
		b.fail("bfe needs an integer type of 32 or 64 bits")
	}
	width := uint64(8 * t.size)
	return b.map3(each3(func(x, from, n uint64) uint64 {
		from, n = from&255, n&255
		if n == 0 {
			return 0
		}
		if t.class == signed {
			n = min(n, 64)
			v := uint64(extend(x, t.size) >> min(from, 63))
			return low(uint64(int64(v<<(64-n))>>(64-n)), t.size)
		}
		v := x >> from
		if n < width {
			v &= 1<<n - 1
		}
		return v
	}), b.dst(0, t.size), b.src(1, t.size), b.src(2, 4), b.src(3, 4))
}

// insert is bfi: b with its bits from c on, d of them, replaced by those of a.
func (b *builder) insert() exec {
	t := b.typ(0)
	b.count(5, 5)
	if t.size < 4 || t.class != untyped {
		b.fail("bfi needs the type b32 or b64")
	}
	d, from, into := b.dst(0, t.size), b.src(1, t.size), b.src(2, t.size)
	start, count := b.src(3, 4), b.src(4, 4)
	return func(w *warp, active uint32) {
		r := w.registers
		for l := range w.aside {
			at, n := r[start][l]&255, r[count][l]&255
			mask := (uint64(1)<<n - 1) << at
			w.aside[l] = low(r[into][l]&^mask|r[from][l]<<at&mask, t.size)
		}
		w.merge(&r[d], active)
	}
}

// tally is popc, clz and brev.
func (b *builder) tally() exec {
	t := b.typ(0)
	n := 8 * t.size
	if t.size < 4 || t.class != untyped {
		b.fail("%s needs the type b32 or b64", b.op)
	}
	b.count(2, 2)
	switch b.op {
	case "brev":
		return b.unary(t.size, each1(func(x uint64) uint64 { return bits.Reverse64(x) >> (64 - n) }))
	case "popc":
		return b.map1(each1(func(x uint64) uint64 { return uint64(bits.OnesCount64(x)) }), b.dst(0, 4), b.src(1, t.size))
	}
	return b.map1(each1(func(x uint64) uint64 { return uint64(bits.LeadingZeros64(x) - (64 - n)) }), b.dst(0, 4), b.src(1, t.size))
}
