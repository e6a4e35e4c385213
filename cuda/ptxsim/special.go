package ptxsim

import "math"

// function is an instruction of one float: roots, reciprocals, logarithms. A device approximates most of them; here they are
// computed in float64 and rounded.
func (b *builder) function() exec {
	t := b.typ(0)
	f := functions[b.op]
	flush, approx := b.has("ftz"), b.has("approx")
	b.allow("rn")
	switch {
	case t.name == "f64" && approx: // a device gives the upper half
		return b.unary(8, each1(func(x uint64) uint64 { return bits64(f(f64(x))) &^ math.MaxUint32 }))
	case t.name == "f64":
		return b.unary(8, each1(func(x uint64) uint64 { return bits64(f(f64(x))) }))
	case t.name == "f32":
		return b.unary(4, each1(func(x uint64) uint64 {
			return bits32(flushed(float32(f(float64(flushed(f32(x), flush)))), flush))
		}))
	case t.half != nil && !t.pair:
		c := t.half
		return b.unary(2, each1(func(x uint64) uint64 { return c.encode(float32(f(float64(c.decode(x))))) }))
	case t.half != nil:
		c := t.half
		one := func(x uint64) uint64 { return c.encode(float32(f(float64(c.decode(x))))) }
		return b.unary(4, each1(func(x uint64) uint64 { return pairOf(one(x), one(x>>16)) }))
	}
	return nil
}

var functions = map[string]func(float64) float64{
	"rcp":   func(x float64) float64 { return 1 / x },
	"sqrt":  math.Sqrt,
	"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"ex2":   math.Exp2,
	"lg2":   math.Log2,
	"sin":   math.Sin,
	"cos":   math.Cos,
	"tanh":  math.Tanh,
}

// copysign is copysign: b with the sign of a.
func (b *builder) copysign() exec {
	t := b.typ(0)
	if t.class != float || t.half != nil {
		b.fail("copysign needs the type f32 or f64")
	}
	sign := signs(t)
	return b.binary(t.size, each2(func(x, y uint64) uint64 { return x&sign | y&^sign }))
}
