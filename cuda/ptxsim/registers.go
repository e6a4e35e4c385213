package ptxsim

import "slices"

// interval is the part of the code, as it is written, over which a register's value matters.
type interval struct {
	first, last int
	block       int  // the basic block of all that was seen so far
	within      bool // only in that block, and first written there: no loop carries it
}

// allocate gives each register of the code, of which there are many that live shortly, one of as few as its intervals need;
// the fewer there are, the more of them the processor's caches hold. It returns the place of each, and their number.
func (b *body) allocate() ([]int, int) {
	all := b.intervals()
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return all[x].first - all[y].first })
	place := make([]int, len(all))
	ends := make([]int, 0, len(all)) // of each place: the last statement that needs what is in it
	for _, v := range order {
		at := slices.IndexFunc(ends, func(last int) bool { return last < all[v].first })
		if at < 0 {
			at, ends = len(ends), append(ends, 0)
		}
		place[v], ends[at] = at, all[v].last
	}
	return place, len(ends)
}

// intervals follows the registers through the code. Lanes go their own ways, but each from top to bottom except for
// branches backwards: a register that may be carried by such a loop is needed in all of it.
func (b *body) intervals() []interval {
	all := make([]interval, len(b.sizes))
	for i := range all {
		all[i] = interval{first: -1}
	}
	blocks, loops := b.flow()
	for at := range b.statements {
		s := &b.statements[at]
		s.each(func(r int, writes bool) {
			v := &all[r]
			if v.first < 0 {
				*v = interval{at, at, blocks[at], writes && s.guard < 0}
			}
			v.last = at
			v.within = v.within && v.block == blocks[at]
		})
	}
	for changed := true; changed; {
		changed = false
		for _, loop := range loops {
			for i := range all {
				v := &all[i]
				if v.within || v.last < loop[0] || v.first > loop[1] || v.first <= loop[0] && v.last >= loop[1] {
					continue
				}
				v.first, v.last, changed = min(v.first, loop[0]), max(v.last, loop[1]), true
			}
		}
	}
	return all
}

// flow numbers the basic blocks, and finds the loops: the first and the last statement.
func (b *body) flow() (blocks []int, loops [][2]int) {
	starts := make([]bool, len(b.statements)+1)
	for i, s := range b.statements {
		if s.label == "" {
			continue
		}
		starts[i+1] = true
		if to, ok := s.scope.label(s.label); ok {
			starts[to] = true
			if to <= i {
				loops = append(loops, [2]int{to, i})
			}
		}
	}
	blocks = make([]int, len(b.statements))
	for i := 1; i < len(blocks); i++ {
		blocks[i] = blocks[i-1]
		if starts[i] {
			blocks[i]++
		}
	}
	return blocks, loops
}

// readers are the instructions whose first operand is not written.
var readers = map[string]bool{"st": true, "red": true, "cp": true, "bar": true, "barrier": true, "prefetch": true}

// each calls f for the registers of a statement: first those that are read, then those that are only written.
func (s *statement) each(f func(register int, writes bool)) {
	var visit func(list []operand, writes bool)
	visit = func(list []operand, writes bool) {
		for _, o := range list {
			switch {
			case o.kind == registerOperand, o.kind == addressOperand && o.register >= 0:
				f(o.register, writes && o.kind == registerOperand)
			case o.kind == vectorOperand:
				visit(o.list, writes)
			}
		}
	}
	if len(s.args) == 0 {
		return
	}
	visit(s.args[1:], false)
	visit(s.args[:1], !readers[s.op])
}
