package cpu

import (
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func (d *cpu) LinearGrad(dx, dy, x device.Mat, l device.Linear) {
	if !d.ok(device.CheckLinearGrad(dx, dy, x, l)) {
		return
	}
	t, ok := d.bind(l)
	dxm, dym, xm, dW, dBias := d.mat(dx), d.mat(dy), d.mat(x), d.mat(l.DW), d.vector(l.DBias)
	if !ok || d.err != nil || xm.rows == 0 {
		return
	}
	d.shared.reset()
	ldy := d.operand(dym, t.w, input)
	beside := ldy.lazy() && t.plain() && !dxm.absent() && len(t.parts) > 0 // dx's product makes g
	if !beside && len(t.parts) > 0 {
		d.rankGrads(t, dym, ldy)
		d.loraGrads(t, dym, xm)
	}
	if !dxm.absent() {
		d.inputGrad(t, dxm, ldy, beside)
	}
	if beside {
		d.loraGrads(t, dym, xm)
	}
	if !dW.absent() {
		d.main.begin(d, d.packed(dym, true), right{form: byRows, m: xm}, dW)
		d.main.acc = true
		d.main.run()
	}
	if dBias != nil {
		d.ops.columns = columnSums{d.k, dBias, dym}
		d.each(dym.cols, columnChunk(dym.rows), &d.ops.columns)
		d.ops.columns = columnSums{}
	}
	t.release()
}

// rankGrads computes g = dy·B of every part, side by side in one matrix. ldy is dy packed.
func (d *cpu) rankGrads(t *linear, dy mat, ldy left) {
	r := d.gradRanks(t, dy)
	if ldy.pieces > 0 {
		d.aux.begin(d, ldy, r.r, r.u)
		d.aux.run()
		return
	}
	for i := range t.parts {
		p, lp := &t.parts[i], ldy
		if p.b.rows < dy.cols {
			lp = d.operand(dy.columns(p.col, p.col+p.b.rows), t.w, input)
		}
		d.aux.begin(d, lp, right{form: byRows, m: p.b}, p.g)
		d.aux.run()
	}
}

// gradRanks is the product that makes every part's g.
func (d *cpu) gradRanks(t *linear, dy mat) ranks {
	g, col := d.matrix(dy.rows, t.ranks(0, len(t.parts))), 0
	t.as, t.at = t.as[:0], t.at[:0]
	for i := range t.parts {
		p := &t.parts[i]
		p.g = g.columns(col, col+p.b.cols)
		t.as, t.at = append(t.as, p.b), append(t.at, p.col)
		col += p.b.cols
	}
	return ranks{right{form: diagonal, stack: t.as, at: t.at}, g}
}

// inputGrad sets dx to dy·W + Σ drop(scale·g·A). ldy is dy packed; beside says that g is to be made on the way.
func (d *cpu) inputGrad(t *linear, dx mat, ldy left, beside bool) {
	p := &d.main
	p.begin(d, ldy, inputOf(t.w), dx)
	if beside {
		p.ranks = d.gradRanks(t, ldy.src)
	}
	for i := range t.parts {
		if q := &t.parts[i]; q.drop == nil {
			p.parts = append(p.parts, part{u: q.g, scale: q.scale, v: right{form: byRows, m: q.a}, n: dx.cols})
		}
	}
	p.run()
	for i := range t.parts {
		if q := &t.parts[i]; q.drop != nil {
			back := d.matrix(dx.rows, dx.cols)
			d.rowsOp(rowsTask{op: scaleRows, x: q.g, a: q.scale}, q.g.rows, rowChunk(q.g.cols))
			d.aux.begin(d, d.operand(q.g, t.w, input), right{form: byRows, m: q.a}, back)
			d.aux.run()
			d.applyDrop(dx, back, q.drop, true)
		}
	}
}

// loraGrads adds scale·gᵀ·drop(x) to every dA that is wanted, and scale·dyᵀ·u to every dB.
func (d *cpu) loraGrads(t *linear, dy, x mat) {
	wanted := false
	for i := range t.parts {
		wanted = wanted || !t.parts[i].dA.absent() || !t.parts[i].dB.absent()
	}
	if !wanted {
		return
	}
	lx := left{}
	if slices.ContainsFunc(t.parts, func(p lora) bool { return p.drop == nil }) {
		lx = d.operand(x, t.w, forward)
	}
	d.lowRanks(t, x, lx)
	for i := 0; i < len(t.parts); {
		j := t.group(i)
		d.dA(t.parts[i:j])
		for ; i < j; i++ {
			if p := &t.parts[i]; !p.dB.absent() {
				d.dB(p, dy.columns(p.col, p.col+p.b.rows))
			}
		}
	}
}

// dA is one product for parts that share their input.
func (d *cpu) dA(parts []lora) {
	first, n := &parts[0], 0
	for _, p := range parts {
		n += p.g.cols
	}
	g := first.g // the parts' g lie side by side
	g.cols = n
	sum := d.matrix(n, first.x.cols)
	d.aux.begin(d, d.packed(g, true), right{form: byRows, m: first.x}, sum)
	d.aux.run()
	row := 0
	for _, p := range parts {
		if !p.dA.absent() {
			d.rowsOp(rowsTask{op: addRows, y: p.dA, x: sum.rowsOf(row, row+p.g.cols), a: p.scale}, p.g.cols, rowChunk(p.dA.cols))
		}
		row += p.g.cols
	}
}

// dB computes dBᵀ = uᵀ·dy, since u has few columns, and adds its transpose.
func (d *cpu) dB(p *lora, dy mat) {
	sum := d.matrix(p.u.cols, dy.cols)
	d.aux.begin(d, d.packed(p.u, true), right{form: byRows, m: dy}, sum)
	d.aux.run()
	turned := d.matrix(dy.cols, p.u.cols)
	for r := 0; r < sum.rows; r += halfPanel {
		d.k.transpose(turned.at(0, r), turned.stride, sum.at(r, 0), sum.stride, min(halfPanel, sum.rows-r), sum.cols)
	}
	if p.dB.stride == p.dB.cols {
		d.k.axpy(p.dB.f[:len(turned.f)], turned.f, p.scale)
		return
	}
	for r := range turned.rows {
		d.k.axpy(p.dB.row(r), turned.row(r), p.scale)
	}
}

// columnSums adds the columns of x to sum, rows ascending.
type columnSums struct {
	k   *kernels
	sum []float32
	x   mat
}

func (t *columnSums) do(_, i, j int) {
	for r := range t.x.rows {
		t.k.axpy(t.sum[i:j], t.x.row(r)[i:j], 1)
	}
}
