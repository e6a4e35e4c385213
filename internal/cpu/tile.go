package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// Products of bfloat16 tiles with float32 sums, on a matrix unit, for weights kept in bfloat16 or fewer bits.
//
// A float32 is the exact sum of three bfloat16 pieces, so three tile products lose nothing of the activations; with
// bfloat16 arithmetic there is one piece, the rounded value. Where both sides are float32 (LoRA's matrices) both are cut
// into pieces, and the pairs of pieces below 2⁻²⁴ of the product are left out.
//
// A stretch of k of an element is one sum, block after block of 32, in a block from the smallest piece to the largest. The
// sums of stretches are added in order; one sum over a vocabulary would lose a digit. The bits do not depend on the cut
// into tasks.

const (
	unitRows  = 32       // rows of C that one pass makes, at most
	unitDepth = 32       // k of a block
	maxDepth  = 640      // k of a stretch
	tileBytes = 1 << 20  // of A in pieces, for a task's stretch: it stays in the second cache
	lazyRows  = 256      // of A, for a task that cuts them
	lazyBytes = 48 << 20 // of a weight that every task reads as a whole
)

// depth is k filled up to whole blocks.
func depth(k int) int { return (k + unitDepth - 1) &^ (unitDepth - 1) }

// stretch is the length of the stretches into which k is cut.
func stretch(k int) int {
	n := max(1, (k+maxDepth-1)/maxDepth)
	return depth((k + n - 1) / n)
}

// inPieces reports whether products with w take their left operand in pieces.
func (d *cpu) inPieces(w *weight) bool { return d.k.pieces > 0 && w.dtype != device.Float32 }

// operand makes src the left operand of a product with a form of w.
func (d *cpu) operand(src mat, w *weight, f form) left {
	if !d.inPieces(w) {
		l := d.packed(src, false)
		if d.k.round && w.dtype != device.Float32 {
			d.rowsOp(rowsTask{op: roundRows, x: dense(l.a, 1, len(l.a))}, len(l.a), grain)
		}
		return l
	}
	l := left{m: src.rows, k: src.cols, mr: unitRows, pieces: d.k.pieces, src: src}
	if d.cutsLazily(&l, w, f) {
		return l
	}
	l.a = d.shared.take((l.m*depth(l.k)*l.pieces + 1) / 2)
	t := &d.ops.split
	*t = splitTask{d, l}
	d.each((l.m+l.mr-1)/l.mr, max(1, rowChunk(l.k)/2/l.mr), t)
	*t = splitTask{}
	l.src = mat{}
	return l
}

// cutsLazily reports whether each task is to cut its own rows into pieces, while they are in its cache: what one thread has
// cut, another is slow to fetch. Each task then reads the whole weight, so that forward a large one is not worth it.
func (d *cpu) cutsLazily(l *left, w *weight, f form) bool {
	return l.m >= unitRows*d.pool.n && (f == input || 2*depth(w.n)*w.kp <= lazyBytes)
}

// lazy reports whether the operand is cut by the tasks.
func (l *left) lazy() bool { return !l.src.absent() }

// panelRows is the number of rows of the panel that begins at row i.
func (l *left) panelRows(i int) int { return min(l.mr, l.m-i) }

// piece is where piece n of block k/32 begins, for the panel of rows from i on: [k/32][pieces][rows][32] bfloat16.
func (l *left) piece(i, k, n int) *uint16 {
	return &words[uint16](l.a)[i*depth(l.k)*l.pieces+l.panelRows(i)*(k*l.pieces+n*unitDepth)]
}

// splitTask cuts panels of rows into pieces.
type splitTask struct {
	d *cpu
	l left
}

func (t *splitTask) do(w, i, j int) {
	a := &t.d.workers[w]
	a.reset()
	t.d.k.cut(&t.l, t.l.src, i*unitRows, min(j*unitRows, t.l.m), a.take(unitDepth))
}

// cut cuts the rows [r0, r1) of src into l. last is room for 32 values.
func (k *kernels) cut(l *left, src mat, r0, r1 int, last []float32) {
	whole := l.k / unitDepth * unitDepth
	for r := r0; r < r1; r += l.mr {
		rows := l.panelRows(r)
		size := 2 * unitDepth * rows
		for p := 0; p < whole; p += unitDepth {
			k.split(l.piece(r, p, 0), size, 2*unitDepth, src.at(r, p), 4*src.stride, rows)
		}
		if whole == l.k {
			continue
		}
		dst := words[uint16](l.a)[r*depth(l.k)*l.pieces+rows*whole*l.pieces:]
		for q := range rows {
			clear(last[copy(last, src.row(r + q)[whole:]):])
			k.split(&dst[unitDepth*q], size, 0, &last[0], 0, 1)
		}
	}
}

// tileTasks chooses the tasks.
func (p *product) tileTasks(panels int, fork bool) {
	m, threads := p.c.rows, p.d.pool.n
	p.rowStep = max(unitRows, tileBytes/(2*p.l.pieces*stretch(p.l.k))/unitRows*unitRows)
	if !fork {
		return
	}
	want := 8 * threads
	if m*p.l.k*p.l.pieces > 2*wideA { // A does not fit a cache: read it for many columns at once
		want = 2 * threads
	}
	if p.l.lazy() { // rows alone, so that each is cut once
		n := threads * min(4, max(1, m/lazyRows/threads))
		p.rowStep = min(p.rowStep, depth((m+n-1)/n))
		return
	}
	if panels*((m+p.rowStep-1)/p.rowStep) < want { // few columns: cut the rows
		p.rowStep = min(p.rowStep, max(unitRows, m*panels/want/unitRows*unitRows))
	}
	rowTasks := (m + p.rowStep - 1) / p.rowStep
	p.colStep = max(1, panels*rowTasks/want)
	if p.d.k.few(&p.r, m) {
		p.colStep += p.colStep % 2
	}
}

// few reports whether m rows are so few that the unit multiplies them by two panels at a time.
func (k *kernels) few(r *right, m int) bool { return r.w != nil && k.mulFew != nil && m <= unitRows/2 }

// prepareTiles makes the parts' left operands, which the tasks share, unless each makes its own.
func (p *product) prepareTiles() {
	if p.l.lazy() {
		return
	}
	for i := range p.parts {
		q := &p.parts[i]
		q.l = newStack(&p.d.shared, q.u.rows, q.u.cols, p.l.pieces)
		q.l.fill(p.d.k, q.u, q.scale, newPairScratch(&p.d.shared, q.u.cols, p.l.pieces))
	}
}

// tileBlock computes the rows [r0, r1) of the columns [c0, c1), and the same rows of the product's ranks.
func (p *product) tileBlock(w, r0, r1, c0, c1 int) {
	a := &p.d.workers[w]
	a.reset()
	l, k := &p.l, p.d.k
	step := stretch(l.k)
	t := tiler{k: k, s: newPairScratch(&a.arena, step, l.pieces), r0: r0, r1: r1}
	t.edge, t.spill = a.take(unitRows*panel), a.take(unitRows*panel)
	own := left{mr: unitRows, pieces: l.pieces, m: r1 - r0}
	if l.lazy() {
		own.a = a.take((own.m*step*l.pieces + 1) / 2)
	}
	for at := 0; at < l.k; at += step {
		x := cutting{l, 0, at, min(step, l.k-at)}
		if l.lazy() {
			own.k = x.n
			k.cut(&own, l.src.rowsOf(r0, r1).columns(at, at+x.n), 0, own.m, t.s.last)
			x = cutting{&own, r0, 0, x.n}
		}
		t.run(x, &p.r, at, p.c, c0, c0, c1-c0, p.acc || p.bias != nil || at > 0)
		if !p.ranks.u.absent() {
			t.run(x, &p.ranks.r, at, p.ranks.u, 0, 0, p.ranks.u.cols, at > 0)
		}
	}
	for i := range p.parts {
		p.tilePart(&a.arena, t, &p.parts[i], c0, c1)
	}
}

// tilePart adds the rows of a part that fall into the columns [c0, c1).
func (p *product) tilePart(a *arena, t tiler, q *part, c0, c1 int) {
	lo, hi := max(c0, q.col), min(c1, q.col+q.n)
	if lo >= hi {
		return
	}
	mark, pieces := a.used, p.l.pieces
	x := cutting{&q.l, 0, 0, q.l.k}
	if p.l.lazy() {
		s := newStack(a, t.r1-t.r0, q.u.cols, pieces)
		s.fill(t.k, q.u.rowsOf(t.r0, t.r1), q.scale, newPairScratch(a, q.u.cols, pieces))
		x = cutting{&s, t.r0, 0, s.k}
	}
	v := q.v
	v.stacked, t.s = q.u.cols, newPairScratch(a, x.n, pieces)
	t.run(x, &v, 0, p.c, lo, lo-q.col, hi-lo, true)
	a.used = mark
}

// cutting is a stretch of a left operand: n of k, from k on there, for the rows of C from row on, which come first there.
type cutting struct {
	l         *left
	row, k, n int
}

// tiler multiplies the rows [r0, r1) of C.
type tiler struct {
	k      *kernels
	s      pairScratch
	edge   []float32 // [32][32], for the last columns
	spill  []float32 // for what is added to C
	r0, r1 int
}

// run multiplies a stretch by the n columns of r from bc and the row rk on, into C from column col on.
func (t *tiler) run(x cutting, r *right, rk int, c mat, col, bc, n int, acc bool) {
	few := t.k.few(r, t.r1-t.r0)
	for j, width := 0, 0; j < n; j += width {
		if width = min(2*panel, n-j); few && width == 2*panel {
			t.few(x, r.pairs(t.k, &t.s, bc+j, width, rk, x.n), c.at(t.r0, col+j), c.stride, acc)
			continue
		}
		width = min(panel, n-j)
		b := r.pairs(t.k, &t.s, bc+j, width, rk, x.n)
		for q := range b.pieces {
			take := x.l.pieces
			if b.pieces > 1 {
				take = q + 1
			}
			t.panel(x, b.piece(q), take, c, col+j, width, acc || q > 0)
		}
	}
}

// few multiplies few rows by two panels.
func (t *tiler) few(x cutting, b pairs, c *float32, ldc int, acc bool) {
	rows := t.r1 - t.r0
	a := x.l.piece(t.r0-x.row, x.k, 0)
	t.k.mulFew(rows, depth(x.n)/unitDepth, x.l.pieces, a, 2*unitDepth*rows, b.b, b.next, c, ldc, t.added(acc))
}

// added is the room that makes a kernel add.
func (t *tiler) added(acc bool) *float32 {
	if acc {
		return &t.spill[0]
	}
	return nil
}

// panel multiplies the last take pieces of the rows by a panel of pairs.
func (t *tiler) panel(x cutting, b *uint32, take int, c mat, col, width int, acc bool) {
	l, blocks := x.l, depth(x.n)/unitDepth
	for i, panels := t.r0, 0; i < t.r1; i += panels * unitRows {
		rows := l.panelRows(i - x.row)
		panels = max(1, (t.r1-i)/unitRows)
		if rows < unitRows || width < panel {
			panels = 1
		}
		size := 2 * unitDepth * rows
		skip, next := size*(l.pieces-take), 2*unitRows*depth(l.k)*l.pieces
		a, to, ldc := l.piece(i-x.row, x.k, l.pieces-take), c.at(i, col), c.stride
		if width == panel {
			t.k.mulTiles(rows, panels, blocks, take, a, size, skip, next, b, to, ldc, t.added(acc))
			continue
		}
		if acc {
			t.k.copyRows(&t.edge[0], panel, to, ldc, rows, width)
		}
		t.k.mulTiles(rows, 1, blocks, take, a, size, skip, next, b, &t.edge[0], panel, t.added(acc))
		t.k.copyRows(to, ldc, &t.edge[0], panel, rows, width)
	}
}
