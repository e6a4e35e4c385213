package ptxsim

// jump is bra.
func (b *builder) jump() exec {
	b.allow("uni")
	to, ok := b.scope.label(b.label)
	if !ok {
		b.fail("there is no label %q", b.label)
	}
	b.out.flow, b.out.target = branch, to
	return nil
}

// finish is ret and exit.
func (b *builder) finish() exec {
	b.allow("uni")
	b.count(0, 0)
	b.out.flow = exit
	return nil
}

func (b *builder) trap() exec {
	b.count(0, 0)
	b.out.flow = trap
	return nil
}

// barrier is bar.sync of the whole block, or bar.warp.sync of lanes.
func (b *builder) barrier() exec {
	b.count(1, 1)
	if !b.has("sync") {
		return nil
	}
	if b.has("warp") {
		member := b.meet(0)
		return func(w *warp, active uint32) {
			if w.members(&w.registers[member], active) {
				w.epoch++
			}
		}
	}
	b.allow("aligned", "cta")
	if b.number(0, 15) != 0 {
		b.fail("only barrier 0 is supported")
	}
	b.out.flow, b.out.meets = barrier, true
	return nil
}

// order is what orders accesses to memory, all of which are in order here, or only advises.
func (b *builder) order() exec {
	b.allow("cta", "gpu", "gl", "sys", "sc", "acq_rel", "global", "L1", "L2", "proxy", "async")
	return func(*warp, uint32) {}
}
