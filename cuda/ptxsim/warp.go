package ptxsim

import (
	"fmt"
	"slices"
	"strings"
)

// warp is 32 threads that run together. Where a branch divides them they run in groups, the one that is furthest behind first;
// groups that meet become one.
type warp struct {
	block     *block
	id        int
	groups    []group
	registers []lanes
	preds     []uint32 // a bit for each lane
	local     []byte   // the lanes' local memory, one after the other
	epoch     uint32   // barriers of the warp since the last of the block
	waiting   bool     // at a barrier of the block
	now       *instr   // that runs
	fault     error

	aside  lanes       // what an operation computes before it is known which lanes want it
	where  offsets     // of an access, see place
	last   *allocation // that was accessed
	shadow []uint64    // its traces

	copies  []copying // under way
	commits [32]int   // groups of copies that each lane has committed
}

// group is lanes that are at the same instruction.
type group struct {
	pc    int
	lanes uint32
	waits bool // for other lanes
}

// alive are the lanes that have not ended.
func (w *warp) alive() uint32 {
	var m uint32
	for i := range w.groups {
		m |= w.groups[i].lanes
	}
	return m
}

// fail ends the warp: a lane did something that a device would not do, or not reliably.
func (w *warp) fail(lane int, format string, a ...any) {
	if w.fault != nil {
		return
	}
	w.fault = fmt.Errorf("kernel %s: line %d: %s: block %s, warp %d, lane %d: %s", w.block.kernel.name, w.now.line, plain(w.now.text),
		text(w.block.id), w.id, lane, fmt.Sprintf(format, a...))
}

// behind is the group that runs next, nil if all wait for others.
func (w *warp) behind() *group {
	if len(w.groups) == 1 {
		return &w.groups[0]
	}
	var found *group
	for i := range w.groups {
		if g := &w.groups[i]; !g.waits && (found == nil || g.pc < found.pc) {
			found = g
		}
	}
	return found
}

// run goes on until the warp waits at a barrier, ends or fails.
func (w *warp) run() {
	code := w.block.kernel.code
	for w.fault == nil && !w.waiting && len(w.groups) > 0 {
		g := w.behind()
		if g == nil {
			w.stuck()
			return
		}
		in := &code[g.pc]
		w.now = in
		if in.meets && (len(w.groups) > 1 || in.member >= 0) && !w.gather(g, in) {
			continue
		}
		active := g.lanes
		if in.guard >= 0 {
			active &= w.preds[in.guard] ^ in.negate
		}
		if in.flow != next {
			w.flow(g, in, active)
			continue
		}
		if active != 0 {
			in.run(w, active)
		}
		w.move(g, g.pc+1)
	}
}

// move takes a group to another instruction, where it joins the lanes that are there.
func (w *warp) move(g *group, pc int) {
	g.pc = pc
	if len(w.groups) == 1 {
		return
	}
	for i := range w.groups {
		if o := &w.groups[i]; o != g && o.pc == pc {
			o.lanes |= g.lanes
			o.waits = false
			w.remove(g)
			return
		}
	}
}

func (w *warp) remove(g *group) {
	for i := range w.groups {
		if g == &w.groups[i] {
			w.groups = slices.Delete(w.groups, i, i+1)
			return
		}
	}
}

// gather reports whether the lanes that have to meet at an instruction are in the group, which waits for them if not. Lanes
// of the group that are not meant become a group of their own, which is behind this one in the list.
func (w *warp) gather(g *group, in *instr) bool {
	need := w.alive()
	if in.member >= 0 {
		need &= uint32(w.registers[in.member][firstLane(g.lanes)])
	}
	if g.lanes&need != need || need == 0 {
		g.waits = true
		return false
	}
	if rest := g.lanes &^ need; rest != 0 {
		g.lanes = need
		w.groups = append(w.groups, group{pc: g.pc, lanes: rest})
		return false
	}
	return true
}

// flow is what changes the order of execution.
func (w *warp) flow(g *group, in *instr, active uint32) {
	switch {
	case in.flow == branch && active == g.lanes:
		w.move(g, in.target)
	case active == 0:
		w.move(g, g.pc+1)
	case in.flow == branch:
		w.split(g, in.target, active)
	case in.flow == barrier && active != w.alive():
		w.fail(firstLane(active), "only the lanes %s of %s reach the block's barrier", lanesText(active), lanesText(w.alive()))
	case in.flow == barrier:
		w.waiting = true
		g.pc++
	case in.flow == trap:
		w.fail(firstLane(active), "the kernel traps")
	default:
		w.end(g, active)
	}
}

// split takes the active lanes of a group to another instruction, and the rest to the next.
func (w *warp) split(g *group, target int, active uint32) {
	rest := group{pc: g.pc + 1, lanes: g.lanes &^ active}
	g.lanes = active
	w.move(g, target)
	for i := range w.groups {
		if o := &w.groups[i]; o.pc == rest.pc {
			o.lanes |= rest.lanes
			o.waits = false
			return
		}
	}
	w.groups = append(w.groups, rest)
}

// end ends lanes. Whoever waits looks again, for it may have waited for them.
func (w *warp) end(g *group, active uint32) {
	if g.lanes &^= active; g.lanes == 0 {
		w.remove(g)
	} else {
		w.move(g, g.pc+1)
	}
	for i := range w.groups {
		w.groups[i].waits = false
	}
}

// stuck fails because all groups wait for each other.
func (w *warp) stuck() {
	var parts []string
	for _, g := range w.groups {
		in := &w.block.kernel.code[g.pc]
		parts = append(parts, fmt.Sprintf("lanes %s at line %d: %s", lanesText(g.lanes), in.line, plain(in.text)))
	}
	w.fail(firstLane(w.alive()), "lanes wait for each other at different instructions: %s", strings.Join(parts, "; "))
}

// lanesText lists the lanes of a mask.
func lanesText(mask uint32) string {
	var parts []string
	for l := 0; l < 32; l++ {
		from := l
		for l < 31 && mask>>l&3 == 3 {
			l++
		}
		switch {
		case mask>>l&1 == 0:
		case from == l:
			parts = append(parts, fmt.Sprint(l))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", from, l))
		}
	}
	return strings.Join(parts, ",")
}
