package ptxsim

// copying is an asynchronous copy to shared memory: the bytes come only when the thread waits for the copy's group, so that what
// reads them too early reads what was there.
type copying struct {
	lane, group int
	at, size    int    // in shared memory
	from        []byte // fewer than size: the rest becomes zero
}

// copyAsync is cp.async and what commits and awaits its groups.
func (b *builder) copyAsync() exec {
	if !b.has("async") {
		return nil
	}
	switch b.one("commit_group", "wait_group", "wait_all") {
	case "commit_group":
		b.count(0, 0)
		return func(w *warp, active uint32) {
			for l := range w.commits {
				w.commits[l] += int(active >> l & 1)
			}
		}
	case "wait_group":
		b.count(1, 1)
		keep := int(b.number(0, 1<<20))
		return func(w *warp, active uint32) { w.land(active, keep) }
	case "wait_all":
		b.count(0, 0)
		return func(w *warp, active uint32) { w.land(active, -1) }
	}
	return b.copyStart()
}

func (b *builder) copyStart() exec {
	b.allow("ca", "cg", "L2::64B", "L2::128B", "L2::256B")
	b.count(3, 4)
	n := int(b.number(2, 16))
	if n != 4 && n != 8 && n != 16 || b.has("cg") && n != 16 {
		b.fail("%d bytes cannot be copied at once", n)
	}
	if b.one("shared", "shared::cta") == "" || !b.has("global") {
		return nil
	}
	to, from := b.access(0, shared, n, 1, writes), b.access(1, global, n, 1, reads)
	have := b.value(uint64(n), 4)
	if len(b.args) == 4 {
		have = b.src(3, 4)
	}
	return func(w *warp, active uint32) {
		for l := range w.where {
			if active>>l&1 != 0 && !w.startCopy(l, &to, &from, int(w.registers[have][l])) {
				return
			}
		}
	}
}

// startCopy notes a lane's copy, of which so many bytes come from global memory.
func (w *warp) startCopy(l int, to, from *access, have int) bool {
	src, dst := w.registers[from.address][l]+from.offset, (w.registers[to.address][l]+to.offset)&to.mask
	n := uint64(to.size)
	switch room := uint64(len(w.block.shared)); {
	case have > to.size:
		w.fail(l, "%d bytes of a copy of %d", have, to.size)
	case src&(n-1) != 0 || dst&(n-1) != 0:
		w.fail(l, "a copy of %d bytes from %#x to %#x: both have to be multiples of %d", n, src, dst, n)
	case n > room || dst > room-n:
		w.fail(l, "a copy to %#x, outside of the %d bytes of shared memory", dst, room)
	}
	if w.fault != nil {
		return false
	}
	c := copying{lane: l, group: w.commits[l], at: int(dst), size: to.size}
	if have > 0 {
		if !w.hold(l, src, have) {
			return false
		}
		w.where[l] = int(src - w.last.at)
		part := access{size: have, kind: reads}
		if w.block.launch.races && !w.raceGlobal(&part, 1<<l) {
			return false
		}
		c.from = w.last.bytes[w.where[l]:][:have]
	}
	w.copies = append(w.copies, c)
	return true
}

// land ends the active lanes' copies, but for the last groups, of which so many may go on.
func (w *warp) land(active uint32, keep int) {
	a := access{space: shared, kind: writes}
	rest := w.copies[:0]
	for _, c := range w.copies {
		if active>>c.lane&1 == 0 || c.group >= w.commits[c.lane]-keep {
			rest = append(rest, c)
			continue
		}
		a.size, w.where[c.lane] = c.size, c.at
		if !w.raceShared(&a, 1<<c.lane) {
			return
		}
		room := w.block.shared[c.at:][:c.size]
		clear(room[copy(room, c.from):])
	}
	w.copies = rest
}
