package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// linear holds the operands of a Linear or LinearGrad.
type linear struct {
	w     *weight
	parts []lora
	stack []mat // the A of parts that share their input
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
	*t = linear{parts: t.parts[:0], stack: t.stack[:0]}
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
	lx := d.packed(xm, false, 1)
	d.lowRanks(t, xm, lx)
	p := &d.main
	p.begin(d, lx, forwardOf(t.w), ym)
	p.bias = t.bias
	t.stack = t.stack[:0]
	for i := range t.parts {
		t.stack = append(t.stack, t.parts[i].b)
	}
	for i := range t.parts {
		q := &t.parts[i]
		v := right{form: byCols, stack: t.stack[i : i+1]}
		p.parts = append(p.parts, part{u: d.packed(q.u, false, q.scale), v: v, col: q.col, n: q.b.rows})
	}
	p.run()
	t.release()
}

// lowRanks computes every part's input and u, those of parts that share an input in one product. x is the linear's
// input, lx the same packed.
func (d *cpu) lowRanks(t *linear, x mat, lx left) {
	for i := 0; i < len(t.parts); {
		j, in, lin := t.group(i), x, lx
		if drop := t.parts[i].drop; drop != nil {
			in = d.dropped(x, drop)
			lin = d.packed(in, false, 1)
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

// dropTask applies dropout to rows: y = drop(x), or y += drop(x).
type dropTask struct {
	d        *cpu
	y, x     mat
	seg, pos []int32
	drop     *device.Dropout
	add      bool
}

// dropped returns drop(x) in scratch.
func (d *cpu) dropped(x mat, drop *device.Dropout) mat {
	y := d.matrix(x.rows, x.cols)
	d.applyDrop(y, x, drop, false)
	return y
}

func (d *cpu) applyDrop(y, x mat, drop *device.Dropout, add bool) {
	t := &d.ops.drop
	*t = dropTask{d: d, y: y, x: x, seg: d.ints(drop.Seg), pos: d.ints(drop.Pos), drop: drop, add: add}
	d.each(x.rows, max(1, rowChunk(x.cols)/8), t)
	*t = dropTask{}
}

func (t *dropTask) do(_, i, j int) {
	for r := i; r < j; r++ {
		x, y := t.x.row(r), t.y.row(r)
		if !t.add {
			clear(y)
		}
		counter := [4]uint32{uint32(t.seg[r]), uint32(t.pos[r]), 0, 0}
		keep := 1 / (1 - t.drop.P)
		for c := 0; c < len(x); c += 4 {
			counter[2] = uint32(c / 4)
			words := device.Philox(t.drop.Key, counter)
			for q := range min(4, len(x)-c) {
				if device.Uniform(words[q]) >= t.drop.P {
					y[c+q] += x[c+q] * keep
				}
			}
		}
	}
}
