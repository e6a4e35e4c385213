package ptxsim

// lanes are a register's values in the lanes of a warp. A value has no bits beyond the register's width.
type lanes [32]uint64

// all is the mask of all lanes.
const all = ^uint32(0)

// The operations on registers, from which the simple instructions are made. They compute all lanes, which is quicker than
// looking for the active ones; d may be one of the others.
type (
	op1 func(d, a *lanes)
	op2 func(d, a, b *lanes)
	op3 func(d, a, b, c *lanes)
)

// merge copies the active lanes of what was computed aside.
func (w *warp) merge(d *lanes, active uint32) {
	for l := range d {
		if active>>l&1 != 0 {
			d[l] = w.aside[l]
		}
	}
}

// map1 is d = f(a).
func (b *builder) map1(f op1, d, a int) exec {
	if f == nil {
		return nil
	}
	return func(w *warp, active uint32) {
		r := w.registers
		if active == all {
			f(&r[d], &r[a])
			return
		}
		f(&w.aside, &r[a])
		w.merge(&r[d], active)
	}
}

// map2 is d = f(x, y).
func (b *builder) map2(f op2, d, x, y int) exec {
	if f == nil {
		return nil
	}
	return func(w *warp, active uint32) {
		r := w.registers
		if active == all {
			f(&r[d], &r[x], &r[y])
			return
		}
		f(&w.aside, &r[x], &r[y])
		w.merge(&r[d], active)
	}
}

// map3 is d = f(x, y, z).
func (b *builder) map3(f op3, d, x, y, z int) exec {
	if f == nil {
		return nil
	}
	return func(w *warp, active uint32) {
		r := w.registers
		if active == all {
			f(&r[d], &r[x], &r[y], &r[z])
			return
		}
		f(&w.aside, &r[x], &r[y], &r[z])
		w.merge(&r[d], active)
	}
}

// unary, binary and ternary are instructions whose operands all have the size of the type.
func (b *builder) unary(size int, f op1) exec {
	b.count(2, 2)
	return b.map1(f, b.dst(0, size), b.src(1, size))
}

func (b *builder) binary(size int, f op2) exec {
	b.count(3, 3)
	return b.map2(f, b.dst(0, size), b.src(1, size), b.src(2, size))
}

func (b *builder) ternary(size int, f op3) exec {
	b.count(4, 4)
	return b.map3(f, b.dst(0, size), b.src(1, size), b.src(2, size), b.src(3, size))
}

// each1, each2 and each3 make an operation from a function of a lane, for what is rare.
func each1(f func(a uint64) uint64) op1 {
	return func(d, a *lanes) {
		for l := range d {
			d[l] = f(a[l])
		}
	}
}

func each2(f func(a, b uint64) uint64) op2 {
	return func(d, a, b *lanes) {
		for l := range d {
			d[l] = f(a[l], b[l])
		}
	}
}

func each3(f func(a, b, c uint64) uint64) op3 {
	return func(d, a, b, c *lanes) {
		for l := range d {
			d[l] = f(a[l], b[l], c[l])
		}
	}
}

// sized picks the variant for a type of 2, 4 or 8 bytes; nil for others.
func sized[T any](size int, of2, of4, of8 T) T {
	switch size {
	case 2:
		return of2
	case 4:
		return of4
	case 8:
		return of8
	}
	var none T
	return none
}
