package ptxsim

import "math"

// cvt converts between types; registers may be wider than their types.
func (b *builder) cvt() exec {
	from, to := b.typ(0), b.typ(1)
	if from.class == predicate || from.class == untyped || to.class == predicate || to.class == untyped || from.pair {
		return nil
	}
	if to.pair {
		return b.convertPair(to)
	}
	b.count(2, 2)
	x := b.source(b.arg(1), from.size, 8)
	o := b.arg(0)
	d := b.target(o, to.size, 8)
	if f, ok := plainConversions[to.name+from.name]; ok && o.size == to.size && b.arg(1).size == from.size && len(b.mods) == 2 {
		return b.map1(f, d, x)
	}
	f := b.conversion(from, to)
	if f == nil {
		return nil
	}
	return b.map1(each1(func(v uint64) uint64 {
		v = f(low(v, from.size))
		if to.class == signed {
			v = low(uint64(extend(v, to.size)), max(o.size, to.size))
		}
		return v
	}), d, x)
}

// plainConversions are those of integers that are frequent.
var plainConversions = map[string]op1{
	"u64u32": duplicate, "s64u32": duplicate, "u64s32": convertInt[int32, uint64], "s64s32": convertInt[int32, uint64],
	"u32u64": convertInt[uint64, uint32], "u32s64": convertInt[uint64, uint32],
	"s32u64": convertInt[uint64, uint32], "s32s64": convertInt[uint64, uint32],
}

func convertInt[F integer, T word](d, a *lanes) {
	for l := range d {
		d[l] = uint64(T(F(a[l])))
	}
}

// conversion is between values that have no bits beyond their types.
func (b *builder) conversion(from, to dtype) func(uint64) uint64 {
	clamp, flush := b.has("sat"), from.name == "f32" && b.has("ftz")
	switch {
	case from.class != float && to.class != float:
		return intToInt(from, to, clamp)
	case from.class == signed && to.size == 8:
		b.allow("rn")
		return func(v uint64) uint64 { return bits64(float64(extend(v, from.size))) }
	case from.class != float && to.size == 8:
		b.allow("rn")
		return func(v uint64) uint64 { return bits64(float64(v)) }
	case from.class != float:
		round := b.rounding(to)
		return func(v uint64) uint64 { return round(intToFloat(v, from)) }
	case to.class != float:
		round, widen := integral[b.one("rni", "rzi", "rmi", "rpi")], widening(from, flush)
		if round == nil {
			return nil
		}
		return func(v uint64) uint64 { return floatToInt(round(widen(v)), from, to) }
	case to.name == "tf32":
		b.has("rna")
		return toTF32
	}
	relu := b.has("relu")
	cut, widen, encode := integral[b.one("rni", "rzi", "rmi", "rpi")], widening(from, flush), b.rounding(to)
	return func(v uint64) uint64 {
		x := widen(v)
		if cut != nil {
			x = cut(x)
		}
		switch {
		case clamp && !(x > 0), relu && !(x > 0) && x == x:
			x = 0
		case clamp:
			x = min(x, 1)
		}
		return encode(x)
	}
}

// integral are the roundings to an integer.
var integral = map[string]func(float64) float64{
	"rni": math.RoundToEven, "rzi": math.Trunc, "rmi": math.Floor, "rpi": math.Ceil,
}

// widening reads a float as a float64, which is exact.
func widening(t dtype, flush bool) func(uint64) float64 {
	switch {
	case t.half != nil:
		return func(v uint64) float64 { return float64(t.half.decode(v)) }
	case t.size == 4:
		return func(v uint64) float64 { return float64(flushed(f32(v), flush)) }
	}
	return f64
}

// rounding encodes a float64, rounded as the instruction says; to nearest even if it says nothing.
func (b *builder) rounding(t dtype) func(float64) uint64 {
	mode := b.one("rn", "rz", "rm", "rp")
	switch {
	case t.size == 8 && mode == "":
		return bits64
	case t.size == 8:
		b.fail("nothing is rounded to .f64")
	case t.half != nil && (mode == "" || mode == "rn"):
		return func(x float64) uint64 { return t.half.encode(odd32(x)) }
	case t.half != nil && mode == "rz":
		return func(x float64) uint64 { return toward0(t.half, x) }
	case t.half != nil:
		b.fail("rounding .%s to .%s is not supported", mode, t.name)
	case mode == "" || mode == "rn":
		return func(x float64) uint64 { return bits32(float32(x)) }
	}
	return func(x float64) uint64 { return bits32(directed(x, mode)) }
}

// directed rounds toward zero (rz), down (rm) or up (rp).
func directed(x float64, mode string) float32 {
	f := float32(x)
	back := float64(f)
	inf := float32(math.Inf(1))
	switch {
	case mode == "rz" && math.Abs(back) > math.Abs(x):
		return math.Nextafter32(f, 0)
	case mode == "rm" && back > x:
		return math.Nextafter32(f, -inf)
	case mode == "rp" && back < x:
		return math.Nextafter32(f, inf)
	}
	return f
}

// toward0 cuts x to 16 bits.
func toward0(c *codec, x float64) uint64 {
	v := c.encode(odd32(x))
	if math.Abs(float64(c.decode(v))) > math.Abs(x) {
		v--
	}
	return v
}

func intToInt(from, to dtype, clamp bool) func(uint64) uint64 {
	if !clamp {
		return func(v uint64) uint64 {
			if from.class == signed {
				v = uint64(extend(v, from.size))
			}
			return low(v, to.size)
		}
	}
	top, bottom := uint64(math.MaxUint64)>>(64-8*to.size), int64(0)
	if to.class == signed {
		top >>= 1
		bottom = -1 - int64(top)
	}
	return func(v uint64) uint64 {
		if from.class == signed && extend(v, from.size) < 0 {
			return low(uint64(max(extend(v, from.size), bottom)), to.size)
		}
		return min(v, top)
	}
}

// intToFloat is exact, or has an odd last bit that stands for what is lost, if an integer of 64 bits goes to fewer than 51.
func intToFloat(v uint64, t dtype) float64 {
	negative := t.class == signed && extend(v, t.size) < 0
	if negative {
		v = uint64(-extend(v, t.size))
	}
	x := float64(v)
	if v>>53 != 0 {
		sticky := uint64(bit(v&(1<<11-1) != 0))
		x = float64(v>>11|sticky) * (1 << 11)
	}
	if negative {
		return -x
	}
	return x
}

// floatToInt cuts an integral value to the type's range. A NaN is 0, or the lowest bits with the sign set where 64 bits are
// involved.
func floatToInt(x float64, from, to dtype) uint64 {
	n := 8 * to.size
	switch {
	case x != x && from.size < 8 && to.size < 8:
		return 0
	case x != x:
		return 1 << (n - 1)
	case to.class != signed && x <= 0:
		return 0
	case to.class != signed && x >= math.Ldexp(1, n):
		return low(math.MaxUint64, to.size)
	case to.class != signed:
		return uint64(x)
	case x >= math.Ldexp(1, n-1):
		return 1<<(n-1) - 1
	}
	return low(uint64(int64(max(x, -math.Ldexp(1, n-1)))), to.size)
}

// toTF32 rounds to 10 bits of mantissa, ties away from zero.
func toTF32(v uint64) uint64 {
	if isNaN32(f32(v)) {
		return 0x7fffffff
	}
	return (v + 0x1000) &^ 0x1fff
}

// convertPair rounds two float32 to 16 bits; the first becomes the upper half.
func (b *builder) convertPair(to dtype) exec {
	b.count(3, 3)
	f := b.conversion(types["f32"], dtype{name: to.name, size: 2, class: float, half: to.half})
	return b.map2(each2(func(x, y uint64) uint64 { return pairOf(f(y), f(x)) }), b.dst(0, 4), b.src(1, 4), b.src(2, 4))
}
