package cuda

import (
	"cmp"
	"slices"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// attentionPlan is what the kernels of a call are told: int32 numbers, made on the host and sent in one copy. Its layouts are the
// structs of kernels/attention.cuh and decode.cu. A plan holds for every call with the same tasks and key: all layers of a pass.
type attentionPlan struct {
	planKey
	tasks  []device.AttentionTask // of the last make; their keys are in spans
	spans  []device.Span
	memory driver.Ptr // where the sections are
	bytes  int        // of it

	paths    section // rows of k, by path position
	tiles    section // QueryTile
	uses     section // Use
	keyTiles section // KeyTile
	merges   section // KeyTile of rows whose parts merge
	queries  section // Query
	partOf   section // slots of each query
	wide     section // Item of more than 16 rows
	narrow   section // Item of at most 16
	slots    int     // of partial sums

	scratch planScratch
}

// section is a list of n records in a plan.
type section struct {
	ints []int32
	n    int
	at   driver.Ptr
}

func (s *section) add(record ...int) {
	for _, x := range record {
		s.ints = append(s.ints, int32(x))
	}
	s.n++
}

// attentionPlans are those of the last calls.
type attentionPlans struct{ forward, backward attentionPlan }

// planKey is what a plan depends on besides the tasks.
type planKey struct {
	backward             bool
	heads, kvHeads       int
	qRows, kRows         int
	processors           int
	size, columns, lanes int // which of the kernels, by the size of heads; of plain ones: a lane's columns, a row's lanes
}

const (
	attentionThreads = 128 // of a block of every kernel
	queryRows        = 64  // queries of a tile of the tensor cores
	keyRows          = 64  // keys of a tile of theirs
	keyNumbers       = 128 // numbers in shared memory beside the tiles
	plainSide        = 32  // rows in the plain kernels' shared memory
)

// key chooses the kernels: the tensor cores' if they can read and write all of ms, 16 bytes at a time.
func (c *attention) key(ms ...driver.Matrix) planKey {
	k := planKey{heads: c.a.Heads, kvHeads: c.a.KVHeads, processors: c.info.Processors}
	tensor := (c.a.HeadDim == 64 || c.a.HeadDim == 128) && c.a.Scale > 0
	for _, m := range ms {
		tensor = tensor && (m.At == 0 || wholeRows(m))
	}
	if tensor {
		k.size = c.a.HeadDim/64 - 1
		return k
	}
	for k.columns, k.lanes = 8, 1; k.columns*k.lanes < c.a.HeadDim; {
		if k.columns < 32 {
			k.columns *= 2
			k.size++
		} else {
			k.lanes *= 2
		}
	}
	return k
}

// wholeRows reports whether 8 elements of a row, of bfloat16, can be read at once.
func wholeRows(m driver.Matrix) bool { return m.Type == driver.BF16 && m.At%16 == 0 && m.Stride%8 == 0 }

// room is the shared memory of a plain kernel.
func (k *planKey) room() int { return 4 * 2 * plainSide * (k.columns*k.lanes + 4) }

// rows is how many rows of the result a block computes at most.
func (k *planKey) rows(tensor int) int {
	if k.lanes > 0 {
		return attentionThreads / k.lanes
	}
	return tensor
}

// parts is how many groups of threads share a row where a plain block has n rows: groups of a row are in one warp.
func (k *planKey) parts(n int) int {
	parts := 1
	for k.lanes > 0 && 2*parts*k.lanes <= 32 && 2*parts*k.lanes*n <= attentionThreads {
		parts *= 2
	}
	return parts
}

// ready makes p hold for a call, and reports whether it does.
func (d *gpu) ready(p *attentionPlan, k planKey, tasks []device.AttentionTask) bool {
	if p.memory != 0 && p.planKey == k && slices.EqualFunc(p.tasks, tasks, sameTask) {
		return true
	}
	all := p.build(k, tasks)
	if n := max(4, 4*len(all)); n > p.bytes {
		d.pool.give(p.memory)
		p.memory, p.bytes = d.roundScratch(n), roundBytes(n)
	}
	at := p.memory
	for _, s := range p.sections() {
		s.at, at = at, at+driver.Ptr(4*len(s.ints))
	}
	d.sendInts(p.memory, all)
	return d.err == nil
}

// build makes the sections and returns them, one after the other.
func (p *attentionPlan) build(k planKey, tasks []device.AttentionTask) []int32 {
	p.planKey = k
	p.keep(tasks)
	for _, s := range p.sections() {
		s.ints, s.n = s.ints[:0], 0
	}
	p.make()
	all := p.scratch.all[:0]
	for _, s := range p.sections() {
		all = append(all, s.ints...)
	}
	p.scratch.all = all
	return all
}

func (p *attentionPlan) sections() [9]*section {
	return [...]*section{&p.paths, &p.tiles, &p.uses, &p.keyTiles, &p.merges, &p.queries, &p.partOf, &p.wide, &p.narrow}
}

func sameTask(a, b device.AttentionTask) bool {
	return a.Q == b.Q && a.Pos == b.Pos && slices.Equal(a.Keys, b.Keys)
}

// keep copies tasks, which the caller may change after the call.
func (p *attentionPlan) keep(tasks []device.AttentionTask) {
	p.tasks, p.spans = append(p.tasks[:0], tasks...), p.spans[:0]
	for _, t := range tasks {
		p.spans = append(p.spans, t.Keys...)
	}
	left := p.spans
	for i := range p.tasks {
		n := len(p.tasks[i].Keys)
		p.tasks[i].Keys, left = left[:n:n], left[n:]
	}
}

// planScratch is memory that make uses again.
type planScratch struct {
	all     []int32
	tiles   []queryTile
	order   []device.AttentionTask
	shared  []int
	ranges  []keyRange
	cuts    []int
	counts  []int
	keyWork []keyWork
}

// queryTile is a QueryTile of the kernels.
type queryTile struct{ row, n, pos, path, keys int }

func (p *attentionPlan) make() {
	p.slots = 0
	if !p.backward && p.lanes == 0 {
		p.makeRanges()
	}
	p.makeTiles()
	if p.backward {
		p.makeKeyTiles()
	}
}

// few reports whether a task is cut along its keys: its queries and their query heads fit a tile of the tensor cores.
func (p *attentionPlan) few(t *device.AttentionTask) bool {
	return !p.backward && p.lanes == 0 && t.Q.N <= fewQueries && t.Q.N*(p.heads/p.kvHeads) <= queryRows
}

// makeTiles cuts tasks into tiles of queries, those with most keys first, so that the last to end are short. Backward, rows
// of no task come last.
func (p *attentionPlan) makeTiles() {
	tiles, size := p.scratch.tiles[:0], p.rows(queryRows)
	var before *device.AttentionTask // whose path is the last in paths
	path := 0
	for i := range p.tasks {
		t := &p.tasks[i]
		end := t.Pos + t.Q.N
		if t.Q.N == 0 || p.few(t) {
			continue
		}
		if before == nil || before.Pos+before.Q.N < end || prefix(before.Keys, t.Keys) < end {
			before, path = t, p.path(t.Keys, 0, end)
		}
		for at := 0; at < t.Q.N; at += size {
			n := min(size, t.Q.N-at)
			tiles = append(tiles, queryTile{t.Q.Row + at, n, t.Pos + at, path, t.Pos + at + n})
		}
	}
	slices.SortStableFunc(tiles, func(a, b queryTile) int { return cmp.Compare(b.keys, a.keys) })
	if p.backward {
		tiles = p.idle(tiles, size)
	}
	for _, t := range tiles {
		p.tiles.add(t.row, t.n, t.pos, t.path, t.keys, p.parts(t.n))
	}
	p.scratch.tiles = tiles
}

// idle appends tiles without keys for the rows of q that are in no task.
func (p *attentionPlan) idle(tiles []queryTile, size int) []queryTile {
	order := append(p.scratch.order[:0], p.tasks...)
	order = append(order, device.AttentionTask{Q: device.Span{Row: p.qRows, N: 1}}) // ends the last gap
	slices.SortStableFunc(order, func(a, b device.AttentionTask) int { return cmp.Compare(a.Q.Row, b.Q.Row) })
	next := 0
	for _, t := range order {
		if t.Q.N == 0 {
			continue
		}
		for r := next; r < t.Q.Row; r += size {
			tiles = append(tiles, queryTile{row: r, n: min(size, t.Q.Row-r)})
		}
		next = t.Q.Row + t.Q.N
	}
	p.scratch.order = order
	return tiles
}

// path appends the rows of a path's positions [first, end) and returns where position 0 would be.
func (p *attentionPlan) path(keys []device.Span, first, end int) int {
	at, pos := len(p.paths.ints)-first, 0
	for _, s := range keys {
		for r := max(first-pos, 0); r < min(s.N, end-pos); r++ {
			p.paths.ints = append(p.paths.ints, int32(s.Row+r))
		}
		pos += s.N
	}
	return at
}

// prefix is how many keys two paths begin with in common.
func prefix(a, b []device.Span) int {
	n := 0
	for i := range min(len(a), len(b)) {
		if a[i].Row != b[i].Row {
			break
		}
		n += min(a[i].N, b[i].N)
		if a[i].N != b[i].N {
			break
		}
	}
	return n
}
