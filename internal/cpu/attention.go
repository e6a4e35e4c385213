package cpu

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// attention is a call of Attention or AttentionGrad.
type attention struct {
	d              *cpu
	a              device.Attention
	group          int // query heads of one key head
	q, k, v, o     mat
	lse            mat
	dO, dq, dk, dv mat
	phase          phase
	tiles          []tile
	members        []member
	spells         []spell
}

// phase says what the items of a loop are.
type phase uint8

const (
	attend     phase = iota // tiles times key heads
	gradients               // spells times key heads
	collecting              // rows of k
)

func (d *cpu) Attention(o, lse, q, k, v device.Mat, a device.Attention) {
	if !d.ok(device.CheckAttention(o, lse, q, k, v, a)) {
		return
	}
	t := &d.ops.attention
	t.begin(d, a)
	t.cut(t.enough())
	t.o, t.lse, t.q, t.k, t.v = d.mat(o), d.mat(lse), d.mat(q), d.mat(k), d.mat(v)
	t.share(attend, len(t.tiles)*a.KVHeads, t.work(2))
	t.end()
}

func (t *attention) begin(d *cpu, a device.Attention) { t.d, t.a, t.group = d, a, a.Heads/a.KVHeads }

// end forgets the operands.
func (t *attention) end() {
	clear(t.members)
	*t = attention{tiles: t.tiles[:0], members: t.members[:0], spells: t.spells[:0]}
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
	if t.phase == collecting {
		t.collect(i, j)
		return
	}
	for ; i < j; i++ {
		a := &t.d.workers[w]
		a.reset()
		if t.phase == attend {
			t.attend(a, &t.tiles[i/t.a.KVHeads], i%t.a.KVHeads)
		} else {
			t.spellGrad(a, &t.spells[i/t.a.KVHeads], i%t.a.KVHeads)
		}
	}
}

// attend computes the outputs of a tile: block after block of keys, with the running maximum top of the scores and
// the sum of exp(score-top) (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018).
func (t *attention) attend(a *worker, s *tile, kv int) {
	k, dim := t.d.k, t.a.HeadDim
	at, sees := t.locate(a, s, kv)
	q := k.packed(&a.arena, t.gather(a, t.q, at, t.a.Scale))
	x := tileState{sees: sees, top: a.take(s.rows), sum: a.take(s.rows), scale: a.take(s.rows)}
	x.out, x.scores = dense(a.take(s.rows*dim), s.rows, dim), dense(a.take(s.rows*scoreStride), s.rows, scoreStride)
	for r := range s.rows {
		x.top[r], x.sum[r] = negInf(), 0
	}
	clear(x.out.f)
	packed, turned := k.space(&a.arena, s.rows, keyBlock), a.take(keyBlock*dim)
	for from := 0; from < s.end(); from += keyBlock {
		patches := t.patches(a, s, from)
		for i := range patches {
			p := &patches[i]
			k.mulPanels(&q, p.row, t.panels(p, t.k, kv, turned), p.block(x.scores))
		}
		for i := range s.members {
			t.softmax(&x, &s.members[i], from)
		}
		k.pack(&packed, x.scores.columns(0, width(patches)))
		for i := range patches {
			t.mulKeys(&packed, &patches[i], t.v, kv, x.out)
		}
	}
	for r, p := range at {
		k.scaleTo(t.head(t.o, p), x.out.row(r), 1/x.sum[r])
		if !t.lse.absent() {
			t.lse.row(p.row)[p.head] = float32(float64(x.top[r]) + math.Log(float64(x.sum[r])))
		}
	}
}

// tileState is the softmax of a tile's rows.
type tileState struct {
	sees            []int32
	scores          mat       // [rows,keyBlock], of the current block
	top, sum, scale []float32 // of the blocks so far; by what the last one scaled sum
	out             mat       // [rows,dim] sum of exp(score-top)·v
}

// softmax replaces the scores that a member's rows have in the block from on by exp(score-top), those of keys that a row
// does not see by 0.
func (t *attention) softmax(x *tileState, m *member, from int) {
	width, rows := min(keyBlock, m.end()-from), t.group*m.n
	if width <= 0 {
		return
	}
	t.d.k.softmax(x.scores.at(m.row, 0), x.scores.stride, rows, width, &x.sees[m.row], from, &x.top[m.row], &x.sum[m.row], &x.scale[m.row])
	for r := m.row; r < m.row+rows && from > 0; r++ {
		if x.scale[r] != 1 {
			t.d.k.scaleTo(x.out.row(r), x.out.row(r), x.scale[r])
		}
	}
}
