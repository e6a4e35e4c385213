package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// swiglu is SwiGLU over rows, or its gradient if dy is there.
type swiglu struct {
	k       *kernels
	y, gu   mat
	dgu, dy mat
}

func (d *cpu) SwiGLU(y, gu device.Mat) {
	if !d.ok(device.CheckSwiGLU(y, gu)) {
		return
	}
	t := &d.ops.gate
	*t = swiglu{k: d.k, y: d.mat(y), gu: d.mat(gu)}
	d.each(t.y.rows, gateChunk(t.y.cols), t)
	*t = swiglu{}
}

func (d *cpu) SwiGLUGrad(dgu, dy, gu device.Mat) {
	if !d.ok(device.CheckSwiGLUGrad(dgu, dy, gu)) || dgu.Absent() {
		return
	}
	t := &d.ops.gate
	*t = swiglu{k: d.k, gu: d.mat(gu), dgu: d.mat(dgu), dy: d.mat(dy)}
	d.each(t.dy.rows, gateChunk(t.dy.cols), t)
	*t = swiglu{}
}

// gateChunk is rowChunk for elements that cost about an exponential.
func gateChunk(cols int) int { return max(1, rowChunk(cols)/2) }

func (t *swiglu) do(_, i, j int) {
	f := t.gu.cols / 2
	for r := i; r < j; r++ {
		g, u := t.gu.row(r)[:f], t.gu.row(r)[f:]
		if t.dy.absent() {
			t.k.swiglu(t.y.row(r), g, u)
			continue
		}
		d := t.dgu.row(r)
		t.k.swigluGrad(d[:f], d[f:], t.dy.row(r), g, u)
	}
}
