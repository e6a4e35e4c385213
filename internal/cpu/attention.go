package cpu

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// attention is a call of Attention or AttentionGrad. What the items are depends on the phase.
type attention struct {
	d                     *cpu
	a                     device.Attention
	group                 int // query heads of one key head
	q, k, v, o, lse       mat
	dO, dq, dk, dv, delta mat // delta [T,H] is do·o
	phase                 phase
	tiles                 []tile
	keys                  keyIndex
}

type phase uint8

const (
	attend     phase = iota // items are tiles
	deltas                  // rows of q
	queryGrads              // tiles
	keyGrads                // runs of keys times key heads
)

// tile is the queries [i, i+n) of a task, with the query heads of one key head: row g*n+j is query i+j, head g.
type tile struct {
	task     *device.AttentionTask
	kv, i, n int
}

// tileRows bounds the rows of a tile.
const tileRows = 112

func (d *cpu) Attention(o, lse, q, k, v device.Mat, a device.Attention) {
	if !d.ok(device.CheckAttention(o, lse, q, k, v, a)) {
		return
	}
	t := &d.ops.attention
	t.begin(d, a)
	t.o, t.lse, t.q, t.k, t.v = d.mat(o), d.mat(lse), d.mat(q), d.mat(k), d.mat(v)
	t.share(attend, len(t.tiles), t.work(2))
	t.end()
}

// begin sets up a call and its tiles.
func (t *attention) begin(d *cpu, a device.Attention) {
	*t = attention{d: d, a: a, group: a.Heads / a.KVHeads, tiles: t.tiles[:0], keys: t.keys}
	step := max(1, tileRows/t.group)
	for i := range a.Tasks {
		task := &a.Tasks[i]
		for q := (task.Q.N - 1) / step * step; q >= 0 && task.Q.N > 0; q -= step { // those that see most keys first
			for kv := range a.KVHeads {
				t.tiles = append(t.tiles, tile{task, kv, q, min(step, task.Q.N-q)})
			}
		}
	}
}

func (t *attention) end() {
	clear(t.tiles)
	*t = attention{tiles: t.tiles[:0], keys: t.keys}
}

// work is the arithmetic of so many products over all pairs of query and key.
func (t *attention) work(products int) float64 {
	pairs := 0.0
	for _, s := range t.a.Tasks {
		pairs += float64(s.Q.N) * (float64(s.Pos) + float64(s.Q.N)/2)
	}
	return 2 * float64(products) * pairs * float64(t.a.Heads*t.a.HeadDim)
}

// share runs the n items of a phase, on the calling goroutine if they are little work.
func (t *attention) share(p phase, n int, flops float64) {
	chunk := max(1, n/(16*t.d.pool.n))
	if flops < forkFlops/4 {
		chunk = n
	}
	t.phase = p
	t.d.each(n, chunk, t)
}

func (t *attention) do(w, i, j int) {
	for ; i < j; i++ {
		a := &t.d.workers[w]
		a.reset()
		switch t.phase {
		case attend:
			t.attend(a, t.tiles[i])
		case deltas:
			t.rowDelta(i)
		case queryGrads:
			t.queryGrad(a, t.tiles[i])
		case keyGrads:
			t.keyGrad(a, i)
		}
	}
}

// rows is the number of rows of a tile; row r is the query in row t of q, head h.
func (t *attention) rows(s tile) int { return t.group * s.n }

func (t *attention) place(s tile, r int) (row, h int) {
	return s.task.Q.Row + s.i + r%s.n, s.kv*t.group + r/s.n
}

// head is head h of row r of m.
func (t *attention) head(m mat, r, h int) []float32 {
	at := r*m.stride + h*t.a.HeadDim
	return m.f[at : at+t.a.HeadDim]
}

// seen is how many of the n keys at the path positions from on row r of a tile sees.
func (s tile) seen(r, from, n int) int {
	return min(n, max(0, s.task.Pos+s.i+r%s.n+1-from))
}

// gather copies the tile's rows of m, times scale, into scratch.
func (t *attention) gather(a *worker, m mat, s tile, scale float32) mat {
	rows := dense(a.take(t.rows(s)*t.a.HeadDim), t.rows(s), t.a.HeadDim)
	for r := range rows.rows {
		row, h := t.place(s, r)
		if src := t.head(m, row, h); scale == 1 {
			copy(rows.row(r), src)
		} else {
			t.d.k.scaleTo(rows.row(r), src, scale)
		}
	}
	return rows
}

// attend computes the outputs of a tile: block after block of keys, with the running maximum top of the scores and
// the sum of exp(score-top) (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018).
func (t *attention) attend(a *worker, s tile) {
	k, rows, dim := t.d.k, t.rows(s), t.a.HeadDim
	q := k.packed(&a.arena, t.gather(a, t.q, s, t.a.Scale))
	top, sum, out := a.take(rows), a.take(rows), dense(a.take(rows*dim), rows, dim)
	for r := range rows {
		top[r], sum[r] = negInf(), 0
	}
	clear(out.f)
	scores := dense(a.take(rows*scoreStride), rows, scoreStride)
	p := k.space(&a.arena, rows, keyBlock)
	keys := t.reader(a, s)
	for keys.next() {
		k.mulPanels(&q, keys.panels(t.k, 0), scores, keys.n)
		for r := range rows {
			scale := k.softmax(scores.row(r)[:keys.n], s.seen(r, keys.from, keys.n), &top[r], &sum[r])
			if scale != 1 {
				k.scaleTo(out.row(r), out.row(r), scale)
			}
		}
		k.pack(&p, scores.columns(0, keys.n))
		keys.mulRows(&p, t.v, out)
	}
	for r := range rows {
		row, h := t.place(s, r)
		k.scaleTo(t.head(t.o, row, h), out.row(r), 1/sum[r])
		if !t.lse.absent() {
			t.lse.row(row)[h] = float32(float64(top[r]) + math.Log(float64(sum[r])))
		}
	}
}

// softmax replaces the first n scores of a block by exp(score-top), the others by 0, after top has risen to their
// maximum, and adds them to sum. It returns the factor by which what was summed before has to shrink.
func (k *kernels) softmax(x []float32, n int, top, sum *float32) (scale float32) {
	clear(x[n:])
	if n == 0 {
		return 1
	}
	scale = 1
	if m := k.maxOf(x[:n]); m > *top {
		scale = exp32(*top - m)
		*top = m
	}
	*sum = *sum*scale + k.expSum(x[:n], x[:n], 1, *top)
	return scale
}
