package ptxsim

// A predicate is a mask of the lanes in which it is true.

// compare gives the lanes in which a comparison holds.
type comparison func(a, b *lanes) uint32

// setp is d = a cmp b, combined with another predicate, and its negation in the register after |.
func (b *builder) setp() exec {
	t := b.typ(0)
	if len(b.mods) < 2 {
		b.fail("setp needs a comparison and a type")
		return nil
	}
	b.seen |= 1
	b.allow("ftz")
	f := comparisonOf(b.mods[0], t)
	d, second := b.plain(0), b.arg(0).second
	x, y := b.src(1, t.size), b.src(2, t.size)
	how, other, negate := b.one("and", "or", "xor"), d, uint32(0)
	if how == "" {
		b.count(3, 3)
	} else {
		b.count(4, 4)
		other, negate = b.predicate(3)
	}
	if f == nil {
		return nil
	}
	return func(w *warp, active uint32) {
		v := f(&w.registers[x], &w.registers[y])
		not := ^v
		switch p := w.preds[other] ^ negate; how {
		case "and":
			v, not = v&p, not&p
		case "or":
			v, not = v|p, not|p
		case "xor":
			v, not = v^p, not^p
		}
		w.set(d, v, active)
		if second >= 0 {
			w.set(second, not, active)
		}
	}
}

// set writes a predicate in the active lanes.
func (w *warp) set(p int, v, active uint32) { w.preds[p] = w.preds[p]&^active | v&active }

// comparisonOf is nil if the type has no such comparison.
func comparisonOf(name string, t dtype) comparison {
	switch {
	case t.class == float && t.half == nil && t.size == 4:
		return compareFloat(name, read32)
	case t.class == float && t.half == nil:
		return compareFloat(name, read64)
	case t.class == float && !t.pair:
		return compareFloat(name, t.half.read)
	case t.class == signed:
		return sized(t.size, compareInt[int16], compareInt[int32], compareInt[int64])(name)
	case t.class == unsigned:
		return sized(t.size, compareInt[uint16], compareInt[uint32], compareInt[uint64])(unsignedNames[name])
	case t.class == untyped && (name == "eq" || name == "ne") && t.size > 1:
		return compareInt[uint64](name)
	}
	return nil
}

// unsignedNames are the names of comparisons of unsigned integers.
var unsignedNames = map[string]string{
	"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "lo": "lt", "ls": "le", "hi": "gt", "hs": "ge",
}

func bit(v bool) uint32 {
	var b uint32
	if v {
		b = 1
	}
	return b
}

func compareInt[T integer](name string) comparison {
	switch name {
	case "eq":
		return func(a, b *lanes) (m uint32) {
			for l := range a {
				m |= bit(T(a[l]) == T(b[l])) << l
			}
			return m
		}
	case "lt":
		return func(a, b *lanes) (m uint32) {
			for l := range a {
				m |= bit(T(a[l]) < T(b[l])) << l
			}
			return m
		}
	case "le":
		return func(a, b *lanes) (m uint32) {
			for l := range a {
				m |= bit(T(a[l]) <= T(b[l])) << l
			}
			return m
		}
	case "ne", "ge", "gt":
		return not(compareInt[T](opposite[name]))
	}
	return nil
}

var opposite = map[string]string{"ne": "eq", "ge": "lt", "gt": "le"}

func not(f comparison) comparison { return func(a, b *lanes) uint32 { return ^f(a, b) } }

// floats are the values of lanes.
type floats [32]float64

// compareFloat compares what read reads: with a NaN, eq, lt, ... are false, and equ, ltu, ... are true.
func compareFloat(name string, read func(x *floats, a *lanes)) comparison {
	f := floatComparisons[name]
	if f == nil {
		return nil
	}
	return func(a, b *lanes) uint32 {
		var x, y floats
		read(&x, a)
		read(&y, b)
		return f(&x, &y)
	}
}

var floatComparisons = map[string]func(x, y *floats) uint32{
	"eq":  equal,
	"ne":  func(x, y *floats) uint32 { return less(x, y) | less(y, x) },
	"lt":  less,
	"le":  lessOrEqual,
	"gt":  func(x, y *floats) uint32 { return less(y, x) },
	"ge":  func(x, y *floats) uint32 { return lessOrEqual(y, x) },
	"equ": func(x, y *floats) uint32 { return ^(less(x, y) | less(y, x)) },
	"neu": func(x, y *floats) uint32 { return ^equal(x, y) },
	"ltu": func(x, y *floats) uint32 { return ^lessOrEqual(y, x) },
	"leu": func(x, y *floats) uint32 { return ^less(y, x) },
	"gtu": func(x, y *floats) uint32 { return ^lessOrEqual(x, y) },
	"geu": func(x, y *floats) uint32 { return ^less(x, y) },
	"num": func(x, y *floats) uint32 { return equal(x, x) & equal(y, y) },
	"nan": func(x, y *floats) uint32 { return ^(equal(x, x) & equal(y, y)) },
}

func equal(x, y *floats) (m uint32) {
	for l := range x {
		m |= bit(x[l] == y[l]) << l
	}
	return m
}

func less(x, y *floats) (m uint32) {
	for l := range x {
		m |= bit(x[l] < y[l]) << l
	}
	return m
}

func lessOrEqual(x, y *floats) (m uint32) {
	for l := range x {
		m |= bit(x[l] <= y[l]) << l
	}
	return m
}

func read32(x *floats, a *lanes) {
	for l := range x {
		x[l] = float64(f32(a[l]))
	}
}

func read64(x *floats, a *lanes) {
	for l := range x {
		x[l] = f64(a[l])
	}
}

func (c *codec) read(x *floats, a *lanes) {
	for l := range x {
		x[l] = float64(c.decode(a[l]))
	}
}

// selp is d = a where a predicate holds, b elsewhere.
func (b *builder) selp() exec {
	t := b.typ(0)
	b.count(4, 4)
	d, x, y := b.dst(0, t.size), b.src(1, t.size), b.src(2, t.size)
	p, negate := b.predicate(3)
	return func(w *warp, active uint32) {
		r := w.registers
		out, when, otherwise, mask := &r[d], &r[x], &r[y], w.preds[p]^negate
		for l := range out {
			switch {
			case active>>l&1 == 0:
			case mask>>l&1 != 0:
				out[l] = when[l]
			default:
				out[l] = otherwise[l]
			}
		}
	}
}

// logicalPredicate is and, or, xor and not of predicates.
func (b *builder) logicalPredicate() exec {
	d, x := b.plain(0), b.plain(1)
	if b.op == "not" {
		b.count(2, 2)
		return func(w *warp, active uint32) { w.set(d, ^w.preds[x], active) }
	}
	b.count(3, 3)
	y := b.plain(2)
	switch b.op {
	case "and":
		return func(w *warp, active uint32) { w.set(d, w.preds[x]&w.preds[y], active) }
	case "or":
		return func(w *warp, active uint32) { w.set(d, w.preds[x]|w.preds[y], active) }
	}
	return func(w *warp, active uint32) { w.set(d, w.preds[x]^w.preds[y], active) }
}
