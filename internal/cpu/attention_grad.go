package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// AttentionGrad makes two passes, so that every gradient element has one owner: tiles of queries add up dq, runs of
// keys dk and dv. Both take the probabilities again from the scores and lse.
func (d *cpu) AttentionGrad(dq, dk, dv, do, o, lse, q, k, v device.Mat, a device.Attention) {
	m := device.AttentionGradMats{DQ: dq, DK: dk, DV: dv, DO: do, O: o, LSE: lse, Q: q, K: k, V: v}
	if !d.ok(device.CheckAttentionGrad(m, a)) {
		return
	}
	d.shared.reset()
	t := &d.ops.attention
	t.begin(d, a)
	t.q, t.k, t.v, t.o, t.lse, t.dO = d.mat(q), d.mat(k), d.mat(v), d.mat(o), d.mat(lse), d.mat(do)
	t.dq, t.dk, t.dv = d.mat(dq), d.mat(dk), d.mat(dv)
	if d.err == nil {
		t.delta = d.matrix(t.q.rows, a.Heads)
		t.share(deltas, t.q.rows, 2*float64(t.q.rows*t.q.cols))
		if !t.dq.absent() {
			t.share(queryGrads, len(t.tiles), t.work(3))
		}
		if !t.dk.absent() || !t.dv.absent() {
			t.keys.build(a.Tasks)
			t.share(keyGrads, len(t.keys.chunks)*a.KVHeads, t.work(4))
		}
	}
	t.end()
}

func (t *attention) rowDelta(r int) {
	for h := range t.a.Heads {
		t.delta.row(r)[h] = t.d.k.dot(t.head(t.dO, r, h), t.head(t.o, r, h))
	}
}

// side is one tile's queries (times scale) and output gradients, as they are and packed.
type side struct {
	q, do   mat
	lq, ldo left
}

func (t *attention) side(a *worker, s tile) side {
	q, do := t.gather(a, t.q, s, t.a.Scale), t.gather(a, t.dO, s, 1)
	return side{q, do, t.d.k.packed(&a.arena, q), t.d.k.packed(&a.arena, do)}
}

// scoreGrads computes, for the keys at path positions from on, the probabilities p and the gradients ds = p·(do·v -
// delta) of the scores.
func (t *attention) scoreGrads(x *side, s tile, keys *keySet, from int, p, ds mat) {
	k := t.d.k
	k.mulPanels(&x.lq, keys.panels(t.k, 0), p, keys.n)
	k.mulPanels(&x.ldo, keys.panels(t.v, 1), ds, keys.n)
	for r := range t.rows(s) {
		row, h := t.place(s, r)
		n, pr, dr := s.seen(r, from, keys.n), p.row(r)[:keys.n], ds.row(r)[:keys.n]
		k.expSum(pr[:n], pr[:n], 1, t.lse.row(row)[h])
		k.scoreGrad(dr[:n], pr[:n], dr[:n], t.delta.row(row)[h])
		clear(pr[n:])
		clear(dr[n:])
	}
}

// queryGrad adds scale·Σ ds·k to a tile's dq.
func (t *attention) queryGrad(a *worker, s tile) {
	k, rows, dim := t.d.k, t.rows(s), t.a.HeadDim
	x := t.side(a, s)
	p, ds := dense(a.take(rows*scoreStride), rows, scoreStride), dense(a.take(rows*scoreStride), rows, scoreStride)
	packed := k.space(&a.arena, rows, keyBlock)
	sum := dense(a.take(rows*dim), rows, dim)
	clear(sum.f)
	keys := t.reader(a, s)
	for keys.next() {
		t.scoreGrads(&x, s, &keys.keySet, keys.from, p, ds)
		k.pack(&packed, ds.columns(0, keys.n))
		keys.mulRows(&packed, t.k, sum)
	}
	for r := range rows {
		row, h := t.place(s, r)
		k.axpy(t.head(t.dq, row, h), sum.row(r), t.a.Scale)
	}
}

// keyGrad adds Σ dsᵀ·(scale·q) to dk and Σ pᵀ·do to dv, for one run of keys and one key head, tasks in order.
func (t *attention) keyGrad(a *worker, item int) {
	c, kv := t.keys.chunks[item/t.a.KVHeads], item%t.a.KVHeads
	if c.count == 0 {
		return
	}
	dim, n := t.a.HeadDim, c.keys.N
	keys := keySet{runs: t.keys.runs(item / t.a.KVHeads), n: n, kv: kv, dim: dim, k: t.d.k}
	keys.scratch(&a.arena)
	dk, dv := dense(a.take(n*dim), n, dim), dense(a.take(n*dim), n, dim)
	clear(dk.f)
	clear(dv.f)
	mark := a.arena
	step := max(1, tileRows/t.group)
	for _, use := range t.keys.uses[c.first : c.first+c.count] {
		task := &t.a.Tasks[use.task]
		for i := max(0, use.pos-task.Pos); i < task.Q.N; i += step {
			a.arena = mark
			t.tileKeyGrad(a, tile{task, kv, i, min(step, task.Q.N-i)}, &keys, use.pos, dk, dv)
		}
	}
	for r := range n {
		if !t.dk.absent() {
			t.d.k.axpy(t.head(t.dk, c.keys.Row+r, kv), dk.row(r), 1)
		}
		if !t.dv.absent() {
			t.d.k.axpy(t.head(t.dv, c.keys.Row+r, kv), dv.row(r), 1)
		}
	}
}

func (t *attention) tileKeyGrad(a *worker, s tile, keys *keySet, from int, dk, dv mat) {
	k, rows := t.d.k, t.rows(s)
	x := t.side(a, s)
	p, ds := dense(a.take(rows*scoreStride), rows, scoreStride), dense(a.take(rows*scoreStride), rows, scoreStride)
	t.scoreGrads(&x, s, keys, from, p, ds)
	k.mulTransposed(ds, x.q, dk)
	k.mulTransposed(p, x.do, dv)
}
