package cuda

import (
	"cmp"
	"slices"
)

// keyWork is a KeyTile of the kernels with its work, in queries that see it.
type keyWork struct{ row, n, use, uses, at, slot, work int }

// useInts is a Use's record.
const useInts = 4

// makeKeyTiles cuts the rows of k at all ends of the tasks' spans; rows between two cuts are seen by the same tasks, or by
// none. Each such run is cut into tiles.
func (p *attentionPlan) makeKeyTiles() {
	cuts := append(p.scratch.cuts[:0], 0, p.kRows)
	p.eachSpan(func(_, row, n, _ int) { cuts = append(cuts, row, row+n) })
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	p.scratch.cuts = cuts
	first := p.makeUses()
	tiles, size := p.scratch.keyWork[:0], p.rows(keyRows)
	for c := range len(cuts) - 1 {
		for row := cuts[c]; row < cuts[c+1]; row += size {
			t := keyWork{row: row, n: min(size, cuts[c+1]-row), use: first[c], uses: first[c+1] - first[c], at: row - cuts[c], slot: -1}
			tiles = append(tiles, t)
		}
	}
	tiles = p.divide(tiles)
	slices.SortStableFunc(tiles, func(a, b keyWork) int { return cmp.Compare(b.work, a.work) })
	for _, t := range tiles {
		p.keyTiles.add(t.row, t.n, t.use, t.uses, t.at, p.parts(t.n), t.slot)
	}
	p.scratch.keyWork = tiles
}

// eachSpan calls f with each span of rows that a task's queries see, and its path position.
func (p *attentionPlan) eachSpan(f func(task, row, n, pos int)) {
	for i := range p.tasks {
		t := &p.tasks[i]
		if t.Q.N == 0 {
			continue
		}
		pos, end := 0, t.Pos+t.Q.N
		for _, s := range t.Keys {
			if n := min(s.N, end-pos); n > 0 {
				f(i, s.Row, n, pos)
			}
			pos += s.N
		}
	}
}

// eachUse calls f for each task and run of rows between two cuts that its queries see, in the order of tasks.
func (p *attentionPlan) eachUse(f func(run, task, pos int)) {
	cuts := p.scratch.cuts
	p.eachSpan(func(task, row, n, pos int) {
		run, _ := slices.BinarySearch(cuts, row)
		for ; cuts[run] < row+n; run++ {
			f(run, task, pos+cuts[run]-row)
		}
	})
}

// makeUses lists the uses of each run and returns where each run's begin.
func (p *attentionPlan) makeUses() []int {
	first := append(p.scratch.counts[:0], make([]int, len(p.scratch.cuts)+1)...)
	p.scratch.counts = first
	p.eachUse(func(run, _, _ int) { first[run+2]++ })
	for i := 2; i < len(first); i++ {
		first[i] += first[i-1]
	}
	p.uses.ints = append(p.uses.ints, make([]int32, useInts*first[len(first)-1])...)
	p.eachUse(func(run, task, pos int) {
		t := &p.tasks[task]
		use := p.uses.ints[useInts*first[run+1]:]
		use[0], use[1], use[2], use[3] = int32(t.Q.Row), int32(t.Q.N), int32(t.Pos), int32(pos)
		first[run+1]++
	})
	return first
}

// leastQueries is how many queries' work a block takes at least before a tile's uses are divided.
const leastQueries = 512

// divide gives tiles that many queries see, such as those of a prompt of many completions, to several blocks, a run of uses
// each, whose sums merge: else one block would work on when all others are done.
func (p *attentionPlan) divide(tiles []keyWork) []keyWork {
	total := 0
	for i := range tiles {
		t := &tiles[i]
		for u := range t.uses {
			t.work += p.seen(t, u)
		}
		total += t.work
	}
	most := max(leastQueries, total*p.kvHeads/(4*max(1, p.processors)))
	for i := range len(tiles) {
		t := tiles[i]
		if p.lanes > 0 || t.uses < 2 || t.work <= most {
			continue
		}
		p.merges.add(t.row, t.n, t.use, 0, t.at, 1, p.slots)
		merge := p.merges.ints[len(p.merges.ints)-keyTileInts:]
		for from := 0; from < t.uses; {
			part := t
			part.work, part.uses, part.use, part.slot = 0, 0, t.use+from, p.slots
			for from < t.uses && (part.uses == 0 || part.work+p.seen(&t, from) <= most) {
				part.work += p.seen(&t, from)
				part.uses++
				from++
			}
			merge[3]++
			p.slots++
			tiles = append(tiles, part)
		}
		tiles[i].n = 0
	}
	return slices.DeleteFunc(tiles, func(t keyWork) bool { return t.n == 0 })
}

// keyTileInts is a KeyTile's record.
const keyTileInts = 7

// seen is how many queries of a tile's use u see its first row.
func (p *attentionPlan) seen(t *keyWork, u int) int {
	use := p.uses.ints[useInts*(t.use+u):]
	return min(int(use[1]), int(use[1]+use[2]-use[3])-t.at)
}
