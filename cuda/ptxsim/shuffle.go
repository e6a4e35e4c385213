package ptxsim

import "math/bits"

// firstLane is the lowest lane of a mask.
func firstLane(mask uint32) int { return bits.TrailingZeros32(mask) & 31 }

// meet makes the instruction wait for the lanes that operand i names.
func (b *builder) meet(i int) int {
	b.has("sync")
	b.out.meets, b.out.member = true, b.src(i, 4)
	return b.out.member
}

// members checks that the active lanes are those of the mask, for each of them.
func (w *warp) members(mask *lanes, active uint32) bool {
	alive := w.alive()
	for l := range mask {
		if active>>l&1 != 0 && uint32(mask[l])&alive != active {
			w.fail(l, "the mask names the lanes %s, but those here are %s", lanesText(uint32(mask[l])), lanesText(active))
			return false
		}
	}
	return true
}

// shuffle is shfl.sync: each lane gets the value of another. The operand c has the last lane in bits 0 to 4 and the mask of
// segments in bits 8 to 12.
func (b *builder) shuffle() exec {
	if t := b.typ(0); t.name != "b32" {
		b.fail("shfl needs the type b32")
	}
	b.count(5, 5)
	mode := b.one("up", "down", "bfly", "idx")
	d, second := b.dst(0, 4), b.arg(0).second
	x, y, c := b.src(1, 4), b.src(2, 4), b.src(3, 4)
	member := b.meet(4)
	if mode == "" || !b.has("sync") {
		return nil
	}
	route := routes[mode]
	fixed := b.arg(2).kind == numberOperand && b.arg(3).kind == numberOperand
	constant := newRouting(route, b.arg(2).number, b.arg(3).number)
	return func(w *warp, active uint32) {
		r := w.registers
		if !w.members(&r[member], active) {
			return
		}
		if fixed {
			w.shuffle(&constant, [3]int{d, second, x}, active)
			return
		}
		var own routing
		for l := range own.from {
			own.set(route, l, r[y][l], r[c][l])
		}
		w.shuffle(&own, [3]int{d, second, x}, active)
	}
}

// routing is the lane that each lane gets its value from, and which of them are in the segments of those that ask.
type routing struct {
	from   [32]uint8
	inside uint32
}

func newRouting(route func(lane, by, segment, last int) (int, bool), by, c uint64) (r routing) {
	for l := range r.from {
		r.set(route, l, by, c)
	}
	return r
}

func (r *routing) set(route func(lane, by, segment, last int) (int, bool), lane int, by, c uint64) {
	from, ok := route(lane, int(by&31), int(c>>8&31), int(c&31))
	if !ok {
		from = lane
	}
	r.from[lane] = uint8(from)
	r.inside |= bit(ok) << lane
}

// routes are the modes: the lane that is asked for, and whether it is in the segment.
var routes = map[string]func(lane, by, segment, last int) (int, bool){
	"up":   func(lane, by, segment, last int) (int, bool) { return lane - by, lane-by >= lane&segment|last&^segment },
	"down": func(lane, by, segment, last int) (int, bool) { return lane + by, lane+by <= lane&segment|last&^segment },
	"bfly": func(lane, by, segment, last int) (int, bool) { return lane ^ by, lane^by <= lane&segment|last&^segment },
	"idx": func(lane, by, segment, last int) (int, bool) {
		from := lane&segment | by&^segment
		return from, from <= lane&segment|last&^segment
	},
}

// shuffle moves values; the operands are the result, the predicate or -1, and the value.
func (w *warp) shuffle(by *routing, operands [3]int, active uint32) {
	d, second, x := &w.registers[operands[0]], operands[1], &w.registers[operands[2]]
	for l, from := range by.from {
		w.aside[l] = x[from&31]
		if active>>l&1 != 0 && active>>from&1 == 0 {
			w.fail(l, "the value of lane %d, which is not here", from)
			return
		}
	}
	w.merge(d, active)
	if second >= 0 {
		w.set(second, by.inside, active)
	}
}

// vote is vote.sync: a predicate over the lanes.
func (b *builder) vote() exec {
	b.count(3, 3)
	mode := b.one("ballot", "all", "any", "uni")
	p, negate := b.predicate(1)
	member := b.meet(2)
	if mode == "" || !b.has("sync") {
		return nil
	}
	if mode == "ballot" {
		d := b.dst(0, 4)
		b.has("b32")
		return func(w *warp, active uint32) {
			if w.members(&w.registers[member], active) {
				w.spread(d, uint64((w.preds[p]^negate)&active), active)
			}
		}
	}
	d := b.plain(0)
	b.has("pred")
	return func(w *warp, active uint32) {
		v := (w.preds[p] ^ negate) & active
		if w.members(&w.registers[member], active) {
			w.set(d, -bit(agreed(mode, v, active)), active)
		}
	}
}

// agreed is a vote of the active lanes, of which v are for it.
func agreed(mode string, v, active uint32) bool {
	switch mode {
	case "all":
		return v == active
	case "any":
		return v != 0
	}
	return v == active || v == 0
}

// spread writes a value in all active lanes.
func (w *warp) spread(d int, v uint64, active uint32) {
	for l := range w.aside {
		w.aside[l] = v
	}
	w.merge(&w.registers[d], active)
}

// activemask is the lanes that happen to be here.
func (b *builder) activemask() exec {
	b.has("b32")
	b.count(1, 1)
	d := b.dst(0, 4)
	return func(w *warp, active uint32) { w.spread(d, uint64(active), active) }
}
