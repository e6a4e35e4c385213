package ptxsim

// mov copies a register, a number, an address or a predicate, and packs and unpacks registers.
func (b *builder) mov() exec {
	t := b.typ(0)
	b.count(2, 2)
	to, from := b.arg(0), b.arg(1)
	switch {
	case t.class == predicate:
		return b.movPredicate()
	case t.half != nil || t.size == 1:
		return nil
	case to.kind == vectorOperand:
		return b.unpack(t, to.list)
	case from.kind == vectorOperand:
		return b.pack(t, from.list)
	}
	return b.unary(t.size, duplicate)
}

func duplicate(d, a *lanes) { *d = *a }

func (b *builder) movPredicate() exec {
	d := b.plain(0)
	if o := b.arg(1); o.kind == numberOperand {
		v := -bit(o.number != 0)
		return func(w *warp, active uint32) { w.set(d, v, active) }
	}
	p, negate := b.predicate(1)
	return func(w *warp, active uint32) { w.set(d, w.preds[p]^negate, active) }
}

// part is the bytes of an element of a packed register.
func (b *builder) part(t dtype, n int) int {
	if n != 2 && n != 4 || t.size/n < 1 {
		b.fail("%d elements in %d bits", n, 8*t.size)
		return 1
	}
	return t.size / n
}

func (b *builder) unpack(t dtype, list []operand) exec {
	size := b.part(t, len(list))
	var into []int
	for _, o := range list {
		into = append(into, b.target(o, size, size))
	}
	from := b.src(1, t.size)
	return func(w *warp, active uint32) {
		v := w.registers[from]
		for i, d := range into {
			for l := range v {
				w.aside[l] = low(v[l]>>(8*size*i), size)
			}
			w.merge(&w.registers[d], active)
		}
	}
}

func (b *builder) pack(t dtype, list []operand) exec {
	size := b.part(t, len(list))
	var from []int
	for _, o := range list {
		from = append(from, b.source(o, size, size))
	}
	d := b.dst(0, t.size)
	return func(w *warp, active uint32) {
		w.aside = lanes{}
		for i, r := range from {
			for l, v := range w.registers[r] {
				w.aside[l] |= v << (8 * size * i)
			}
		}
		w.merge(&w.registers[d], active)
	}
}

// cvta turns an address in a space into a generic one, or back (.to).
func (b *builder) cvta() exec {
	t, s, back := b.typ(0), b.space(), b.has("to")
	var window uint64
	switch s {
	case shared:
		window = sharedWindow
	case local:
		window = localWindow
	case generic, parameter, constant:
		return nil
	}
	if t.name != "u64" {
		return nil
	}
	if window == 0 {
		return b.unary(8, duplicate)
	}
	if back {
		return b.unary(8, each1(func(v uint64) uint64 { return v &^ window }))
	}
	return b.unary(8, each1(func(v uint64) uint64 { return v | window }))
}
