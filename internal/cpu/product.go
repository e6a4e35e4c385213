package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// product is C [m,n] (+)= A·B [+ bias] + Σ U·V over its parts, each on columns of its own. Its items are tasks: a
// block of rows times a run of column panels.
type product struct {
	d     *cpu
	l     left
	r     right
	c     mat
	acc   bool
	bias  []float32 // nil: none; not with acc
	parts []part
	ranks ranks

	rowStep, colStep, colTasks int // rows and panels of a task, tasks side by side
}

// part adds scale·U [m,r] times V [r,n] to the columns [col, col+n) of a product. l is U packed.
type part struct {
	u      mat
	scale  float32
	v      right
	col, n int
	l      left
}

// ranks makes U [m,r] = A·r beside a product of a lazy operand, before its parts.
type ranks struct {
	r right
	u mat
}

// maxRows bounds the rows of a task, so that a block of A stays in the second cache.
const maxRows = 560

// forkFlops is the amount of arithmetic that is worth sharing out; it takes one thread some 10 µs.
const forkFlops = 1 << 21

// forkWeights is the number of weights whose reading is worth sharing out, however few rows they meet; from memory it takes
// one thread some 40 µs.
const forkWeights = 1 << 18

// wideA is the size of A, in elements, from which it does not pay to read it once for every panel.
const wideA = 1 << 20

// begin empties the product for new operands, keeping the memory of its parts.
func (p *product) begin(d *cpu, l left, r right, c mat) {
	*p = product{d: d, l: l, r: r, c: c, parts: p.parts[:0]}
}

// run computes the product.
func (p *product) run() {
	m, n, mr := p.c.rows, p.c.cols, p.d.k.mr
	if m == 0 || p.d.err != nil {
		return
	}
	panels := (n + panel - 1) / panel
	p.rowStep, p.colStep = min(maxRows/mr*mr, m), panels
	p.r.copy = m > 3*mr || p.l.pieces > 0
	p.ranks.r.copy = true
	for i := range p.parts {
		p.parts[i].v.copy = p.r.copy || p.l.pieces > 0
	}
	fork := p.d.pool.n > 1 && (2*float64(m)*float64(n)*float64(p.l.k) >= forkFlops || n*p.l.k >= forkWeights)
	if p.l.pieces > 0 {
		p.prepareTiles()
		p.tileTasks(panels, fork)
	} else {
		p.prepare()
		if fork {
			p.split(panels)
		}
	}
	p.colTasks = (panels + p.colStep - 1) / p.colStep
	rowTasks := (m + p.rowStep - 1) / p.rowStep
	p.d.each(rowTasks*p.colTasks, 1, p)
	clear(p.parts[:cap(p.parts)])
	p.begin(nil, left{}, right{}, mat{})
}

// prepare packs the parts' left operands.
func (p *product) prepare() {
	for i := range p.parts {
		q := &p.parts[i]
		p.d.rowsOp(rowsTask{op: scaleRows, x: q.u, a: q.scale}, q.u.rows, rowChunk(q.u.cols))
		q.l = p.d.packed(q.u, false)
	}
}

// split chooses the tasks of a parallel run: several for each thread, so that one that is held up does not hold up the
// others, by columns first, since each block of rows packs B again.
func (p *product) split(panels int) {
	m, mr := p.c.rows, p.d.k.mr
	want, widest := 8*p.d.pool.n, 4
	if m*p.l.k > wideA {
		want, widest = 2*p.d.pool.n, panels
	}
	rowTasks := (m + p.rowStep - 1) / p.rowStep
	p.colStep = min(widest, max(1, panels*rowTasks/want))
	colTasks := (panels + p.colStep - 1) / p.colStep
	if rows := (want + colTasks - 1) / colTasks; rows > rowTasks {
		step := (m + rows - 1) / rows
		p.rowStep = min(p.rowStep, max(4*mr, (step+mr-1)/mr*mr))
	}
}

func (p *product) do(w, i, j int) {
	for t := i; t < j; t++ {
		r0, c0 := t/p.colTasks*p.rowStep, t%p.colTasks*p.colStep*panel
		r1, c1 := min(p.c.rows, r0+p.rowStep), min(p.c.cols, c0+p.colStep*panel)
		p.setBias(r0, r1, c0, c1)
		if p.l.pieces > 0 {
			p.tileBlock(w, r0, r1, c0, c1)
		} else {
			p.block(w, r0, r1, c0, c1)
		}
	}
}

// setBias sets the rows to the bias, if there is one, for the product to add to.
func (p *product) setBias(r0, r1, c0, c1 int) {
	if p.bias == nil {
		return
	}
	for i := r0; i < r1; i++ {
		copy(p.c.row(i)[c0:c1], p.bias[c0:c1])
	}
}

// block computes the rows [r0, r1) of the columns [c0, c1).
func (p *product) block(w, r0, r1, c0, c1 int) {
	a := &p.d.workers[w]
	a.reset()
	scratch := a.take(fetchSize)
	acc := p.acc || p.bias != nil
	step := kBlock(p.l.k)
	if r1-r0 <= 4*p.d.k.mr { // a weight streams past few rows: read it in order
		for c := c0; c < c1; c += panel {
			for k := 0; k < p.l.k; k += step {
				p.tiles(&p.l, &p.r, scratch, r0, r1, c, min(panel, c1-c), c, k, acc || k > 0)
			}
		}
	} else {
		for k := 0; k < p.l.k; k += step {
			for c := c0; c < c1; c += panel {
				p.tiles(&p.l, &p.r, scratch, r0, r1, c, min(panel, c1-c), c, k, acc || k > 0)
			}
		}
	}
	for i := range p.parts {
		p.part(&p.parts[i], scratch, r0, r1, c0, c1)
	}
}

// part adds what falls into the columns [c0, c1), in pieces of 32 columns.
func (p *product) part(q *part, scratch []float32, r0, r1, c0, c1 int) {
	lo, hi, step := max(c0, q.col), min(c1, q.col+q.n), kBlock(q.l.k)
	for c := lo; c < hi; c += panel {
		for k := 0; k < q.l.k; k += step {
			p.tiles(&q.l, &q.v, scratch, r0, r1, c, min(panel, hi-c), c-q.col, k, true)
		}
	}
}

// tiles multiplies block k of the rows [r0, r1) of l by the n columns of r from bc on, into C from column c on.
func (p *product) tiles(l *left, r *right, scratch []float32, r0, r1, c, n, bc, k int, acc bool) {
	kc := min(kBlock(l.k), l.k-k)
	b := r.fetch(p.d.k, scratch, bc, n, k, kc)
	mask := columns(n)
	for i := r0; i < r1; i += l.mr {
		rows := min(l.mr, l.m-i)
		if b.q != nil {
			p.d.k.mulBF16(rows, even(kc)/2, l.at(k, i, kc), rows, b.q, p.c.at(i, c), p.c.stride, mask, onto(acc))
		} else {
			p.d.k.mulF32(rows, kc, l.at(k, i, kc), rows, b.f, b.stride, p.c.at(i, c), p.c.stride, mask, onto(acc))
		}
	}
}

// forwardOf is the right operand Wᵀ, inputOf W.
func forwardOf(w *weight) right { return right{form: forward, w: w} }
func inputOf(w *weight) right   { return right{form: input, w: w} }

func (d *cpu) Logits(y, h device.Mat, w device.Weight) {
	if !d.ok(device.CheckLogits(y, h, w)) {
		return
	}
	own, hm, ym := d.weight(w), d.mat(h), d.mat(y)
	if d.err != nil {
		return
	}
	d.shared.reset()
	d.main.begin(d, d.operand(hm, own, forward), forwardOf(own), ym)
	d.main.run()
}
