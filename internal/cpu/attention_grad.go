package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// spell is a run of tiles whose gradients one worker adds up, for one key head: dq as it is, dk and dv in matrices of
// its own for the rows [lo, hi) of k. Their number depends on the shapes alone, and collect adds them in order, so that
// the sums have the same bits with any number of threads.
type spell struct {
	tiles  []tile
	lo, hi int
	dk, dv mat // [KV·(hi-lo), dim], absent if they are not wanted
}

// The spells make at most spellItems items, enough to balance over many threads, of at least spellFlops.
const (
	spellItems = 32
	spellFlops = 1 << 25
)

// AttentionGrad takes the probabilities again from the scores and lse.
func (d *cpu) AttentionGrad(dq, dk, dv, do, o, lse, q, k, v device.Mat, a device.Attention) {
	m := device.AttentionGradMats{DQ: dq, DK: dk, DV: dv, DO: do, O: o, LSE: lse, Q: q, K: k, V: v}
	if !d.ok(device.CheckAttentionGrad(m, a)) {
		return
	}
	d.shared.reset()
	t := &d.ops.attention
	t.begin(d, a)
	t.cut(tileRows) // for any number of threads the same: a tile's part of dk and dv is summed first
	t.q, t.k, t.v, t.o, t.lse, t.dO = d.mat(q), d.mat(k), d.mat(v), d.mat(o), d.mat(lse), d.mat(do)
	t.dq, t.dk, t.dv = d.mat(dq), d.mat(dk), d.mat(dv)
	if d.err == nil {
		t.zeroUnused()
		t.divide()
		t.share(gradients, len(t.spells)*a.KVHeads, t.work(5))
		t.share(collecting, t.k.rows, float64(8*t.k.rows*t.k.cols))
	}
	t.end()
}

// zeroUnused clears dq where there are rows that belong to no task.
func (t *attention) zeroUnused() {
	rows := 0
	for i := range t.a.Tasks {
		rows += t.a.Tasks[i].Q.N
	}
	if rows < t.dq.rows {
		t.d.rowsOp(rowsTask{op: zeroRows, x: t.dq}, t.dq.rows, 2*rowChunk(t.dq.cols))
	}
}

// divide makes spells of about equal work.
func (t *attention) divide() {
	t.spells = t.spells[:0]
	total, done, first := 0, 0, 0
	for i := range t.tiles {
		total += t.tiles[i].rows * t.tiles[i].end()
	}
	want := max(1, min(spellItems, int(t.work(5)/spellFlops))/t.a.KVHeads)
	for i := range t.tiles {
		done += t.tiles[i].rows * t.tiles[i].end()
		if i == len(t.tiles)-1 || done*want >= total*(len(t.spells)+1) {
			t.spells = append(t.spells, t.newSpell(t.tiles[first:i+1]))
			first = i + 1
		}
	}
}

func (t *attention) newSpell(tiles []tile) spell {
	s := spell{tiles: tiles, lo: t.k.rows}
	for i := range tiles {
		for _, m := range tiles[i].members {
			left := m.end()
			for _, k := range m.task.Keys {
				if n := min(left, k.N); n > 0 {
					s.lo, s.hi, left = min(s.lo, k.Row), max(s.hi, k.Row+n), left-n
				}
			}
		}
	}
	rows := (s.hi - s.lo) * t.a.KVHeads
	if !t.dk.absent() {
		s.dk = t.d.matrix(rows, t.a.HeadDim)
	}
	if !t.dv.absent() {
		s.dv = t.d.matrix(rows, t.a.HeadDim)
	}
	return s
}

// of is key head kv's part of a spell's sums m.
func (s *spell) of(m mat, kv int) mat {
	if m.absent() {
		return m
	}
	n := s.hi - s.lo
	return m.rowsOf(kv*n, (kv+1)*n)
}

// row is the sum for row r of k.
func (s *spell) row(m mat, kv, r int) []float32 { return m.row(kv*(s.hi-s.lo) + r - s.lo) }

// spellGrad computes the gradients of a spell's tiles for one key head.
func (t *attention) spellGrad(a *worker, s *spell, kv int) {
	dk, dv := s.of(s.dk, kv), s.of(s.dv, kv)
	for _, m := range []mat{dk, dv} {
		if !m.absent() {
			clear(m.f[:m.rows*m.cols])
		}
	}
	for i := range s.tiles {
		a.reset()
		t.tileGrad(a, &s.tiles[i], kv, s.lo, dk, dv)
	}
}

// tileSlopes are the rows of a tile on the way back.
type tileSlopes struct {
	sees       []int32
	q, do      mat       // [rows,dim] queries times scale, and output gradients
	p, ds      mat       // [rows,keyBlock] probabilities and score gradients of the current block
	lse, delta []float32 // delta is do·o
	dq         mat       // [rows,dim] Σ ds·k
}

// tileGrad sets the tile's dq to scale·Σ ds·k and adds Σ dsᵀ·(scale·q) to dk and Σ pᵀ·do to dv, whose first row is row
// lo of k.
func (t *attention) tileGrad(a *worker, s *tile, kv, lo int, dk, dv mat) {
	k, dim := t.d.k, t.a.HeadDim
	at, sees := t.locate(a, s, kv)
	x := t.slopes(a, at, sees)
	q, do := k.packed(&a.arena, x.q), k.packed(&a.arena, x.do)
	packed, turned := k.space(&a.arena, s.rows, keyBlock), a.take(keyBlock*dim)
	for from := 0; from < s.end(); from += keyBlock {
		patches := t.patches(a, s, from)
		for i := range patches {
			p := &patches[i]
			k.mulPanels(&q, p.row, t.panels(p, t.k, kv, turned), p.block(x.p))
			k.mulPanels(&do, p.row, t.panels(p, t.v, kv, turned), p.block(x.ds))
		}
		for i := range s.members {
			t.scoreGrads(&x, &s.members[i], from)
		}
		k.pack(&packed, x.ds.columns(0, width(patches)))
		for i := range patches {
			p := &patches[i]
			if !t.dq.absent() {
				t.mulKeys(&packed, p, t.k, kv, x.dq)
			}
			t.keyGrad(p, p.block(x.ds), p.of(x.q), lo, dk)
			t.keyGrad(p, p.block(x.p), p.of(x.do), lo, dv)
		}
	}
	for r, p := range at {
		if !t.dq.absent() {
			k.scaleTo(t.head(t.dq, p), x.dq.row(r), t.a.Scale)
		}
	}
}

func (t *attention) slopes(a *worker, at []place, sees []int32) tileSlopes {
	n, dim := len(at), t.a.HeadDim
	x := tileSlopes{sees: sees, q: t.gather(a, t.q, at, t.a.Scale), do: t.gather(a, t.dO, at, 1)}
	x.p, x.ds = dense(a.take(n*scoreStride), n, scoreStride), dense(a.take(n*scoreStride), n, scoreStride)
	x.lse, x.delta, x.dq = a.take(n), a.take(n), dense(a.take(n*dim), n, dim)
	clear(x.dq.f)
	for r, p := range at {
		x.lse[r], x.delta[r] = t.lse.row(p.row)[p.head], t.d.k.dot(x.do.row(r), t.head(t.o, p))
	}
	return x
}

// scoreGrads replaces the scores in x.p by probabilities p, and do·v in x.ds by the scores' gradients p·(do·v - delta).
func (t *attention) scoreGrads(x *tileSlopes, m *member, from int) {
	if width := min(keyBlock, m.end()-from); width > 0 {
		t.d.k.scoreGrad(x.ds.at(m.row, 0), x.p.at(m.row, 0), x.p.stride, t.group*m.n, width, &x.sees[m.row], from,
			&x.lse[m.row], &x.delta[m.row])
	}
}

// keyGrad adds aᵀ·b to the patch's rows of c, a being [rows,n].
func (t *attention) keyGrad(p *patch, a, b mat, lo int, c mat) {
	if c.absent() {
		return
	}
	at := 0
	for _, run := range p.runs {
		t.d.k.mulTransposed(a.columns(at, at+run.N), b, c.rowsOf(run.Row-lo, run.Row-lo+run.N))
		at += run.N
	}
}

// collect sets the rows [r0, r1) of dk and dv to the sums of all spells.
func (t *attention) collect(r0, r1 int) {
	for _, m := range []mat{t.dk, t.dv} {
		for r := r0; r < r1 && !m.absent(); r++ {
			clear(m.row(r))
		}
	}
	for i := range t.spells {
		s := &t.spells[i]
		for kv := range t.a.KVHeads {
			for r := max(r0, s.lo); r < min(r1, s.hi); r++ {
				if !t.dk.absent() {
					t.d.k.axpy(t.head(t.dk, place{r, kv}), s.row(s.dk, kv, r), 1)
				}
				if !t.dv.absent() {
					t.d.k.axpy(t.head(t.dv, place{r, kv}), s.row(s.dv, kv, r), 1)
				}
			}
		}
	}
}
