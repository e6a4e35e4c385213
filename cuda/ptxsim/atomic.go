package ptxsim

// atomic is atom and red: an update of memory that no other access comes between. Lanes are in ascending order.
func (b *builder) atomic() exec {
	t, s := b.typ(0), b.space()
	b.allow("relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys", "noftz")
	op := b.one("add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec")
	d, at := -1, 0
	if b.op == "atom" {
		d, at = b.dst(0, t.size), 1
	}
	operands := 2
	if op == "cas" {
		operands = 3
	}
	b.count(at+operands, at+operands)
	f := update(op, t)
	if f == nil || t.size < 2 || s == parameter || s == constant || s == local {
		return nil
	}
	a := b.access(at, s, t.size, 1, updates)
	x := b.src(at+1, t.size)
	y := x
	if op == "cas" {
		y = b.src(at+2, t.size)
	}
	return func(w *warp, active uint32) {
		w.block.launch.memory.atomics.Lock()
		defer w.block.launch.memory.atomics.Unlock()
		for active != 0 {
			mem, found := w.place(&a, active)
			if found == 0 {
				return
			}
			w.update(func(l int, old uint64) uint64 { return f(old, w.registers[x][l], w.registers[y][l]) }, mem, found, d, t.size)
			active &^= found
		}
	}
}

// update applies f to the memory of the lanes, one after the other; d gets what was there, if it is a register.
func (w *warp) update(f func(lane int, old uint64) uint64, mem []byte, lanes uint32, d, size int) {
	for l, at := range w.where {
		if lanes>>l&1 == 0 {
			continue
		}
		old := fetch(mem[at:], size)
		store(mem[at:], f(l, old), size)
		if d >= 0 {
			w.registers[d][l] = old
		}
	}
}

// update is the operation on the value in memory, nil if there is none for the type.
func update(op string, t dtype) func(old, x, y uint64) uint64 {
	switch {
	case op == "exch":
		return func(_, x, _ uint64) uint64 { return x }
	case op == "cas":
		return func(old, x, y uint64) uint64 {
			if old == x {
				return y
			}
			return old
		}
	case op == "add" && t.half != nil:
		f := halves(t, func(a, b float32) float32 { return a + b })
		return func(old, x, _ uint64) uint64 { return f(old, x) }
	case op == "add" && t.name == "f32":
		return func(old, x, _ uint64) uint64 { return bits32(f32(old) + f32(x)) }
	case op == "add" && t.name == "f64":
		return func(old, x, _ uint64) uint64 { return bits64(f64(old) + f64(x)) }
	case t.class == float:
		return nil
	case op == "add":
		return func(old, x, _ uint64) uint64 { return low(old+x, t.size) }
	}
	return updateInt(op, t)
}

func updateInt(op string, t dtype) func(old, x, y uint64) uint64 {
	flip := uint64(0) // makes the order of signed integers that of unsigned ones
	if t.class == signed {
		flip = 1 << (8*t.size - 1)
	}
	switch op {
	case "min":
		return func(old, x, _ uint64) uint64 { return min(old^flip, x^flip) ^ flip }
	case "max":
		return func(old, x, _ uint64) uint64 { return max(old^flip, x^flip) ^ flip }
	case "and":
		return func(old, x, _ uint64) uint64 { return old & x }
	case "or":
		return func(old, x, _ uint64) uint64 { return old | x }
	case "xor":
		return func(old, x, _ uint64) uint64 { return old ^ x }
	case "inc":
		return func(old, x, _ uint64) uint64 {
			if old >= x {
				return 0
			}
			return old + 1
		}
	case "dec":
		return func(old, x, _ uint64) uint64 {
			if old == 0 || old > x {
				return x
			}
			return old - 1
		}
	}
	return nil
}
