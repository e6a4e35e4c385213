package ptxsim

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/half"
)

func f32(v uint64) float32      { return math.Float32frombits(uint32(v)) }
func bits32(f float32) uint64   { return uint64(math.Float32bits(f)) }
func f64(v uint64) float64      { return math.Float64frombits(v) }
func bits64(f float64) uint64   { return math.Float64bits(f) }
func isNaN32(f float32) bool    { return f != f }
func pairOf(a, b uint64) uint64 { return a | b<<16 }

// codec is one of the 16-bit encodings of floats.
type codec struct {
	widen  func(uint16) float32
	narrow func(float32) uint16 // to nearest even
}

var (
	binary16 = codec{half.FromF16, half.ToF16}
	bfloat16 = codec{half.FromBF16, half.ToBF16}
)

func (c *codec) decode(v uint64) float32 { return c.widen(uint16(v)) }

// encode rounds to nearest even; a NaN is the one that devices make.
func (c *codec) encode(f float32) uint64 {
	if isNaN32(f) {
		return 0x7fff
	}
	return uint64(c.narrow(f))
}

// float2 is an operation on two floats. What it computes is exact, then rounded once: 24 bits are enough for one rounding
// to 11 or 8 bits to be the same as none before it.
func (b *builder) float2(t dtype) exec {
	b.allow("rn", "approx", "full")
	f := float2s[b.op]
	if mode := b.one("rz", "rm", "rp"); mode != "" {
		return b.directed2(t, mode)
	}
	if b.has("NaN") {
		f = propagate(f)
	}
	flush, clamp := b.has("ftz"), b.has("sat")
	switch {
	case t.half != nil:
		return b.binary(t.size, each2(halves(t, f)))
	case t.size == 8:
		return b.binary(8, float64s[b.op])
	case flush || clamp || fast2[b.op] == nil:
		return b.binary(4, each2(func(x, y uint64) uint64 {
			return bits32(polish(f(flushed(f32(x), flush), flushed(f32(y), flush)), flush, clamp))
		}))
	}
	return b.binary(4, fast2[b.op])
}

// directed2 is an operation that is not rounded to the nearest.
func (b *builder) directed2(t dtype, mode string) exec {
	f := map[string]func(x, y float64) float64{
		"add": func(x, y float64) float64 { return fmaOdd(x, 1, y) },
		"sub": func(x, y float64) float64 { return fmaOdd(x, 1, -y) },
		"mul": func(x, y float64) float64 { return x * y },
	}[b.op]
	if f == nil || t.name != "f32" {
		return nil
	}
	return b.binary(4, each2(func(x, y uint64) uint64 {
		return bits32(directed(f(float64(f32(x)), float64(f32(y))), mode))
	}))
}

var float2s = map[string]func(a, b float32) float32{
	"add": func(a, b float32) float32 { return a + b },
	"sub": func(a, b float32) float32 { return a - b },
	"mul": func(a, b float32) float32 { return a * b },
	"div": func(a, b float32) float32 { return a / b },
	"min": least, "max": greatest,
}

var fast2 = map[string]op2{"add": addF32, "sub": subF32, "mul": mulF32, "max": maxF32}

func addF32(d, a, b *lanes) {
	for l := range d {
		d[l] = bits32(f32(a[l]) + f32(b[l]))
	}
}

func subF32(d, a, b *lanes) {
	for l := range d {
		d[l] = bits32(f32(a[l]) - f32(b[l]))
	}
}

func mulF32(d, a, b *lanes) {
	for l := range d {
		d[l] = bits32(f32(a[l]) * f32(b[l]))
	}
}

func maxF32(d, a, b *lanes) {
	for l := range d {
		x, y := f32(a[l]), f32(b[l])
		if x > y {
			d[l] = a[l]
		} else {
			d[l] = bits32(greatest(x, y))
		}
	}
}

var float64s = map[string]op2{
	"add": each2(func(x, y uint64) uint64 { return bits64(f64(x) + f64(y)) }),
	"sub": each2(func(x, y uint64) uint64 { return bits64(f64(x) - f64(y)) }),
	"mul": each2(func(x, y uint64) uint64 { return bits64(f64(x) * f64(y)) }),
	"div": each2(func(x, y uint64) uint64 { return bits64(f64(x) / f64(y)) }),
	"min": each2(func(x, y uint64) uint64 { return choose(x, y, f64(x), f64(y), false) }),
	"max": each2(func(x, y uint64) uint64 { return choose(x, y, f64(x), f64(y), true) }),
}

// choose is the bits x or y of the lesser, or the greater, of two floats: the other of a NaN, and -0 is less than 0.
func choose(x, y uint64, a, b float64, greater bool) uint64 {
	switch {
	case a != a && b != b:
		return 0x7fffffffffffffff
	case a != a:
		return y
	case b != b:
		return x
	case a == b && math.Signbit(a) == greater, a != b && (a < b) == greater:
		return y
	}
	return x
}

// least and greatest are the other of a NaN, and -0 is less than 0.
func least(a, b float32) float32 {
	switch {
	case isNaN32(a):
		return b
	case isNaN32(b):
		return a
	}
	return min(a, b)
}

func greatest(a, b float32) float32 {
	switch {
	case isNaN32(a):
		return b
	case isNaN32(b):
		return a
	}
	return max(a, b)
}

// propagate makes the result of a NaN a NaN.
func propagate(f func(a, b float32) float32) func(a, b float32) float32 {
	return func(a, b float32) float32 {
		if isNaN32(a) || isNaN32(b) {
			return f32(0x7fffffff)
		}
		return f(a, b)
	}
}

// halves is f on 16-bit floats, or on each of a pair.
func halves(t dtype, f func(a, b float32) float32) func(x, y uint64) uint64 {
	c := t.half
	one := func(x, y uint64) uint64 { return c.encode(f(c.decode(x), c.decode(y))) }
	if !t.pair {
		return one
	}
	return func(x, y uint64) uint64 { return pairOf(one(x, y), one(x>>16, y>>16)) }
}

// smallest is the least normal float32.
const smallest = 0x1p-126

// flushed is a with a subnormal made zero of its sign, if flush is set.
func flushed(a float32, flush bool) float32 {
	if flush && a > -smallest && a < smallest {
		return f32(bits32(a) & 0x80000000)
	}
	return a
}

// polish flushes a result, and clamps it to [0, 1] (a NaN to 0).
func polish(a float32, flush, clamp bool) float32 {
	if clamp {
		return least(greatest(a, 0), 1)
	}
	return flushed(a, flush)
}

func (b *builder) fma() exec {
	t := b.typ(0)
	b.allow("rn")
	flush, clamp, mode := b.has("ftz"), b.has("sat"), b.one("rz", "rm", "rp")
	c := t.half
	one := func(x, y, z uint64) uint64 {
		return c.encode(odd32(fmaOdd(float64(c.decode(x)), float64(c.decode(y)), float64(c.decode(z)))))
	}
	switch {
	case mode != "" && (t.name != "f32" || flush || clamp):
		return nil
	case mode != "":
		return b.ternary(4, each3(func(x, y, z uint64) uint64 {
			return bits32(directed(fmaOdd(float64(f32(x)), float64(f32(y)), float64(f32(z))), mode))
		}))
	case t.pair:
		return b.ternary(4, each3(func(x, y, z uint64) uint64 { return pairOf(one(x, y, z), one(x>>16, y>>16, z>>16)) }))
	case c != nil:
		return b.ternary(2, each3(one))
	case t.size == 8:
		return b.ternary(8, each3(func(x, y, z uint64) uint64 { return bits64(math.FMA(f64(x), f64(y), f64(z))) }))
	case flush || clamp:
		return b.ternary(4, each3(func(x, y, z uint64) uint64 {
			f := fma32(flushed(f32(x), flush), flushed(f32(y), flush), flushed(f32(z), flush))
			return bits32(polish(f, flush, clamp))
		}))
	}
	return b.ternary(4, fmaF32)
}

func fmaF32(d, a, b, c *lanes) {
	for l := range d {
		p := float64(f32(a[l])) * float64(f32(b[l]))
		s := p + float64(f32(c[l]))
		// Rounding twice is rounding once unless the first result lies in the middle of two float32.
		if math.Float64bits(s)&(1<<29-1) != 1<<28 && (s >= smallest || s <= -smallest) {
			d[l] = bits32(float32(s))
		} else {
			d[l] = bits32(fma32(f32(a[l]), f32(b[l]), f32(c[l])))
		}
	}
}

// fma32 is a·b + c, rounded once.
func fma32(a, b, c float32) float32 {
	return float32(fmaOdd(float64(a), float64(b), float64(c)))
}

// fmaOdd is a·b + c of float32 values. What the sum loses makes its last bit odd, so that a later rounding to at most 51 bits
// is right.
func fmaOdd(a, b, c float64) float64 {
	p := a * b // exact: 48 bits
	s := p + c
	back := s - p
	lost := (p - (s - back)) + (c - back)
	u := math.Float64bits(s)
	if lost == 0 || u&1 == 1 || math.IsInf(s, 0) || s != s {
		return s
	}
	if (lost > 0) == (s > 0) {
		return math.Float64frombits(u + 1)
	}
	return math.Float64frombits(u - 1)
}

// odd32 is v cut to a float32; what is lost makes its last bit odd.
func odd32(v float64) float32 {
	f := float32(v)
	if float64(f) == v || v != v {
		return f
	}
	if math.Abs(float64(f)) > math.Abs(v) {
		f = math.Nextafter32(f, 0)
	}
	return f32(bits32(f) | 1)
}
