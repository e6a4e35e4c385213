package ptxsim

import (
	"math"
	"math/bits"
)

// The word types, and the integers of them.
type (
	word    interface{ uint16 | uint32 | uint64 }
	integer interface {
		word | int16 | int32 | int64
	}
)

func (b *builder) add() exec { return b.arithmetic(addInt[uint16], addInt[uint32], addInt[uint64]) }
func (b *builder) sub() exec { return b.arithmetic(subInt[uint16], subInt[uint32], subInt[uint64]) }

// arithmetic is an instruction of two operands that is the same for signed and unsigned integers.
func (b *builder) arithmetic(of2, of4, of8 op2) exec {
	t := b.typ(0)
	if t.class == float {
		return b.float2(t)
	}
	if t.class == untyped {
		b.fail("the type has no arithmetic")
	}
	return b.binary(t.size, sized(t.size, of2, of4, of8))
}

func addInt[T word](d, a, b *lanes) {
	for l := range d {
		d[l] = uint64(T(a[l]) + T(b[l]))
	}
}

func subInt[T word](d, a, b *lanes) {
	for l := range d {
		d[l] = uint64(T(a[l]) - T(b[l]))
	}
}

func (b *builder) mul() exec {
	t := b.typ(0)
	if t.class == float {
		return b.float2(t)
	}
	switch b.one("lo", "hi", "wide") {
	case "lo":
		return b.binary(t.size, sized(t.size, mulInt[uint16], mulInt[uint32], mulInt[uint64]))
	case "hi":
		return b.binary(t.size, each2(high(t)))
	case "wide":
		b.count(3, 3)
		return b.map2(wide(t), b.dst(0, 2*t.size), b.src(1, t.size), b.src(2, t.size))
	}
	return nil
}

func mulInt[T word](d, a, b *lanes) {
	for l := range d {
		d[l] = uint64(T(a[l]) * T(b[l]))
	}
}

// wide multiplies to twice the size.
func wide(t dtype) op2 {
	switch t.name {
	case "s16":
		return mulWide[int16, int32, uint32]
	case "u16":
		return mulWide[uint16, uint32, uint32]
	case "s32":
		return mulWide[int32, int64, uint64]
	case "u32":
		return mulWide[uint32, uint64, uint64]
	}
	return nil
}

func mulWide[T, W integer, U word](d, a, b *lanes) {
	for l := range d {
		d[l] = uint64(U(W(T(a[l])) * W(T(b[l]))))
	}
}

// high is the upper half of a product.
func high(t dtype) func(x, y uint64) uint64 {
	n := t.size
	switch {
	case t.class == signed && n == 8:
		return func(x, y uint64) uint64 {
			h, _ := bits.Mul64(x, y)
			return h - x>>63*y - y>>63*x
		}
	case n == 8:
		return func(x, y uint64) uint64 {
			h, _ := bits.Mul64(x, y)
			return h
		}
	case t.class == signed:
		return func(x, y uint64) uint64 { return low(uint64(extend(x, n)*extend(y, n)>>(8*n)), n) }
	}
	return func(x, y uint64) uint64 { return x * y >> (8 * n) }
}

func (b *builder) mad() exec {
	t := b.typ(0)
	if t.class == float {
		return b.fma()
	}
	b.count(4, 4)
	n := t.size
	switch b.one("lo", "hi", "wide") {
	case "lo":
		return b.ternary(n, sized(n, madInt[uint16], madInt[uint32], madInt[uint64]))
	case "hi":
		h := high(t)
		return b.ternary(n, each3(func(x, y, z uint64) uint64 { return low(h(x, y)+z, n) }))
	case "wide":
		f := wide(t)
		if f == nil {
			return nil
		}
		sum := sized(2*n, op2(nil), addInt[uint32], addInt[uint64])
		return b.map3(func(d, x, y, z *lanes) {
			var product lanes
			f(&product, x, y)
			sum(d, &product, z)
		}, b.dst(0, 2*n), b.src(1, n), b.src(2, n), b.src(3, 2*n))
	}
	return nil
}

func madInt[T word](d, a, b, c *lanes) {
	for l := range d {
		d[l] = uint64(T(a[l])*T(b[l]) + T(c[l]))
	}
}

func (b *builder) div() exec {
	t := b.typ(0)
	if t.class == float {
		return b.float2(t)
	}
	n := t.size
	if t.class == signed {
		return b.binary(n, each2(func(x, y uint64) uint64 {
			if y == 0 {
				return low(math.MaxUint64, n)
			}
			return low(uint64(extend(x, n)/extend(y, n)), n)
		}))
	}
	return b.binary(n, each2(func(x, y uint64) uint64 {
		if y == 0 {
			return low(math.MaxUint64, n)
		}
		return x / y
	}))
}

func (b *builder) rem() exec {
	t := b.typ(0)
	n := t.size
	if t.class == signed {
		return b.binary(n, each2(func(x, y uint64) uint64 {
			if y == 0 {
				return x
			}
			return low(uint64(extend(x, n)%extend(y, n)), n)
		}))
	}
	return b.binary(n, each2(func(x, y uint64) uint64 {
		if y == 0 {
			return x
		}
		return x % y
	}))
}

func (b *builder) min() exec {
	switch t := b.typ(0); t.class {
	case float:
		return b.float2(t)
	case signed:
		return b.binary(t.size, sized(t.size, minInt[int16, uint16], minInt[int32, uint32], minInt[int64, uint64]))
	default:
		return b.binary(t.size, sized(t.size, minInt[uint16, uint16], minInt[uint32, uint32], minInt[uint64, uint64]))
	}
}

func (b *builder) max() exec {
	switch t := b.typ(0); t.class {
	case float:
		return b.float2(t)
	case signed:
		return b.binary(t.size, sized(t.size, maxInt[int16, uint16], maxInt[int32, uint32], maxInt[int64, uint64]))
	default:
		return b.binary(t.size, sized(t.size, maxInt[uint16, uint16], maxInt[uint32, uint32], maxInt[uint64, uint64]))
	}
}

func minInt[T integer, U word](d, a, b *lanes) {
	for l := range d {
		d[l] = uint64(U(min(T(a[l]), T(b[l]))))
	}
}

func maxInt[T integer, U word](d, a, b *lanes) {
	for l := range d {
		d[l] = uint64(U(max(T(a[l]), T(b[l]))))
	}
}

func (b *builder) neg() exec {
	t := b.typ(0)
	switch {
	case t.class == float:
		sign := signs(t)
		return b.unary(t.size, each1(func(x uint64) uint64 { return x ^ sign }))
	case t.class != signed:
		b.fail("neg needs a signed type")
	}
	return b.unary(t.size, each1(func(x uint64) uint64 { return low(-x, t.size) }))
}

func (b *builder) abs() exec {
	t := b.typ(0)
	b.allow("ftz")
	switch {
	case t.class == float:
		sign := signs(t)
		return b.unary(t.size, each1(func(x uint64) uint64 { return x &^ sign }))
	case t.class != signed:
		b.fail("abs needs a signed type")
	}
	return b.unary(t.size, each1(func(x uint64) uint64 {
		if extend(x, t.size) < 0 {
			return low(-x, t.size)
		}
		return x
	}))
}

// signs are the sign bits of a float, or of a pair.
func signs(t dtype) uint64 {
	if t.pair {
		return 0x80008000
	}
	return 1 << (8*t.size - 1)
}
