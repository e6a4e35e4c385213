package cpu

import (
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// keyIndex lists who attends to which keys. It cuts the rows of k into chunks that lie in every span wholly or not at
// all, with the tasks that see each chunk, in order.
type keyIndex struct {
	cuts   []int
	chunks []keyChunk
	spans  []device.Span // the chunks' rows
	uses   []keyUse
}

// keyChunk is a run of at most keyBlock rows, with its uses [first, first+count).
type keyChunk struct {
	keys         device.Span
	first, count int
}

// keyUse is a task whose path has a chunk at position pos.
type keyUse struct{ task, pos int }

// runs is chunk c as a key set has it.
func (x *keyIndex) runs(c int) []device.Span { return x.spans[c : c+1] }

// build indexes the tasks, keeping the memory of the last index.
func (x *keyIndex) build(tasks []device.AttentionTask) {
	x.cut(tasks)
	x.visit(tasks, func(c *keyChunk, _ keyUse) { c.count++ })
	n := 0
	for i := range x.chunks {
		c := &x.chunks[i]
		c.first, n, c.count = n, n+c.count, 0
	}
	x.uses = slices.Grow(x.uses[:0], n)[:n]
	x.visit(tasks, func(c *keyChunk, u keyUse) {
		x.uses[c.first+c.count] = u
		c.count++
	})
}

// cut makes the chunks.
func (x *keyIndex) cut(tasks []device.AttentionTask) {
	x.cuts, x.chunks, x.spans = x.cuts[:0], x.chunks[:0], x.spans[:0]
	for _, t := range tasks {
		left := visible(t)
		for _, s := range t.Keys {
			n := min(left, s.N)
			if n > 0 {
				x.cuts = append(x.cuts, s.Row, s.Row+n)
			}
			left -= n
		}
	}
	slices.Sort(x.cuts)
	x.cuts = slices.Compact(x.cuts)
	for i := 1; i < len(x.cuts); i++ {
		for r := x.cuts[i-1]; r < x.cuts[i]; r += keyBlock {
			s := device.Span{Row: r, N: min(keyBlock, x.cuts[i]-r)}
			x.chunks, x.spans = append(x.chunks, keyChunk{keys: s}), append(x.spans, s)
		}
	}
}

// visible is how many path positions the last query of a task sees.
func visible(t device.AttentionTask) int {
	if t.Q.N == 0 {
		return 0
	}
	return t.Pos + t.Q.N
}

// visit calls f for every chunk that a task sees, tasks in order.
func (x *keyIndex) visit(tasks []device.AttentionTask, f func(*keyChunk, keyUse)) {
	for i, t := range tasks {
		pos, left := 0, visible(t)
		for _, s := range t.Keys {
			n := min(left, s.N)
			if n <= 0 {
				continue
			}
			c, _ := slices.BinarySearchFunc(x.chunks, s.Row, func(c keyChunk, row int) int { return c.keys.Row - row })
			for ; c < len(x.chunks) && x.chunks[c].keys.Row < s.Row+n; c++ {
				f(&x.chunks[c], keyUse{i, pos + x.chunks[c].keys.Row - s.Row})
			}
			pos, left = pos+n, left-n
		}
	}
}
