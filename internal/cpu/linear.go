package cpu

import (
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// linear holds the operands of a Linear or LinearGrad.
type linear struct {
	w     *weight
	parts []lora
	stack []mat // matrices of parts, for a product
	as    []mat // the A of all parts
	at    []int // the first column of all parts
	bias  []float32
}

// lora is a device.LoRA resolved.
type lora struct {
	col          int
	a, b, dA, dB mat
	scale        float32
	drop         *device.Dropout
	x            mat // drop(x) [T,K]
	u            mat // drop(x)·Aᵀ [T,r]
	g            mat // dy·B [T,r]
}

// bind resolves l into d.linear and reports whether that went well.
func (d *cpu) bind(l device.Linear) (*linear, bool) {
	t := &d.ops.linear
	t.w, t.bias, t.parts = d.weight(l.W), d.vector(l.Bias), t.parts[:0]
	for _, p := range l.LoRA {
		drop := p.Drop
		if drop != nil && drop.P == 0 {
			drop = nil
		}
		t.parts = append(t.parts, lora{
			col: p.Col, a: d.mat(p.A), b: d.mat(p.B), dA: d.mat(p.DA), dB: d.mat(p.DB), scale: p.Scale, drop: drop,
		})
	}
	return t, d.err == nil
}

// release forgets the operands.
func (t *linear) release() {
	clear(t.parts[:cap(t.parts)])
	clear(t.stack[:cap(t.stack)])
	clear(t.as[:cap(t.as)])
	*t = linear{parts: t.parts[:0], stack: t.stack[:0], as: t.as[:0], at: t.at[:0]}
}

// group is the end of the run of parts from i on that share an input: all that have no dropout, or one that has.
func (t *linear) group(i int) int {
	j := i + 1
	for t.parts[i].drop == nil && j < len(t.parts) && t.parts[j].drop == nil {
		j++
	}
	return j
}

// ranks is the sum of the ranks of the parts [i, j).
func (t *linear) ranks(i, j int) int {
	n := 0
	for _, p := range t.parts[i:j] {
		n += p.a.rows
	}
	return n
}

func (d *cpu) Linear(y, x device.Mat, l device.Linear) {
	if !d.ok(device.CheckLinear(y, x, l)) {
		return
	}
	t, ok := d.bind(l)
	xm, ym := d.mat(x), d.mat(y)
	if !ok || d.err != nil || xm.rows == 0 {
		return
	}
	d.shared.reset()
	lx := d.operand(xm, t.w, forward)
	p := &d.main
	p.begin(d, lx, forwardOf(t.w), ym)
	p.bias = t.bias
	if lx.lazy() && t.plain() {
		p.ranks = d.ranksBeside(t, xm)
	} else {
		d.lowRanks(t, xm, lx)
	}
	t.stack = t.stack[:0]
	for i := range t.parts {
		t.stack = append(t.stack, t.parts[i].b)
	}
	for i := range t.parts {
		q := &t.parts[i]
		v := right{form: byCols, stack: t.stack[i : i+1]}
		p.parts = append(p.parts, part{u: q.u, scale: q.scale, v: v, col: q.col, n: q.b.rows})
	}
	p.run()
	t.release()
}

// plain reports whether no part has dropout.
func (t *linear) plain() bool {
	return !slices.ContainsFunc(t.parts, func(p lora) bool { return p.drop != nil })
}

// ranksBeside lets the main product make every part's u.
func (d *cpu) ranksBeside(t *linear, x mat) ranks {
	if len(t.parts) == 0 {
		return ranks{}
	}
	u, col := d.matrix(x.rows, t.ranks(0, len(t.parts))), 0
	t.as = t.as[:0]
	for i := range t.parts {
		p := &t.parts[i]
		t.as = append(t.as, p.a)
		p.x, p.u = x, u.columns(col, col+p.a.rows)
		col += p.a.rows
	}
	return ranks{right{form: byCols, stack: t.as}, u}
}

// lowRanks computes every part's input and u, those of parts that share an input in one product. x is the linear's
// input, lx the same packed.
func (d *cpu) lowRanks(t *linear, x mat, lx left) {
	for i := 0; i < len(t.parts); {
		j, in, lin := t.group(i), x, lx
		if drop := t.parts[i].drop; drop != nil {
			in = d.dropped(x, drop)
			lin = d.operand(in, t.w, forward)
		}
		t.stack = t.stack[:0]
		for _, p := range t.parts[i:j] {
			t.stack = append(t.stack, p.a)
		}
		u := d.matrix(x.rows, t.ranks(i, j))
		d.aux.begin(d, lin, right{form: byCols, stack: t.stack}, u)
		d.aux.run()
		for col := 0; i < j; i++ {
			p := &t.parts[i]
			p.x, p.u = in, u.columns(col, col+p.a.rows)
			col += p.a.rows
		}
	}
}

// matrix takes a [rows, cols] matrix of any values from the shared arena.
func (d *cpu) matrix(rows, cols int) mat { return dense(d.shared.take(rows*cols), rows, cols) }
