package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// rotary is Rotary over rows, or RotaryGrad if dy is there. The gradient of the norm's weight is summed in fixed
// blocks of rows, whose sums are then added in order.
type rotary struct {
	d            *cpu
	y, x, dx, dy mat
	cos, sin     mat
	pos          []int32
	norm         []float32
	dim          int
	eps          float32
	sums         mat // [blocks, dim] parts of the norm's gradient, or absent
}

// normBlock is the number of rows whose part of a norm's gradient is summed at once.
const normBlock = 64

func (d *cpu) Rotary(y, x device.Mat, r device.Rotary) {
	if !d.ok(device.CheckRotary(y, x, r)) {
		return
	}
	t := &d.ops.rotary
	*t = rotary{d: d, y: d.mat(y), x: d.mat(x)}
	t.bind(r, "rotary", x.Rows)
	d.each(t.x.rows, gateChunk(t.x.cols), t)
	*t = rotary{}
}

func (t *rotary) bind(r device.Rotary, op string, rows int) {
	d := t.d
	t.cos, t.sin, t.norm, t.dim, t.eps = d.mat(r.Cos), d.mat(r.Sin), d.vector(r.Norm), r.HeadDim, r.Eps
	t.pos = d.indices(op, "position", r.Pos, rows, r.Cos.Rows)
}

func (d *cpu) RotaryGrad(dx, dy, x device.Mat, r device.Rotary) {
	if !d.ok(device.CheckRotaryGrad(dx, dy, x, r)) {
		return
	}
	d.shared.reset()
	t := &d.ops.rotary
	*t = rotary{d: d, dx: d.mat(dx), dy: d.mat(dy), x: d.mat(x)}
	t.bind(r, "rotary gradient", dy.Rows)
	dNorm := d.vector(r.DNorm)
	chunk := gateChunk(t.dy.cols)
	if dNorm != nil {
		chunk = normBlock
		blocks := (t.dy.rows + normBlock - 1) / normBlock
		t.sums = dense(d.shared.take(blocks*t.dim), blocks, t.dim)
		clear(t.sums.f)
	}
	d.each(t.dy.rows, chunk, t)
	if d.err == nil {
		for b := range t.sums.rows {
			d.k.axpy(dNorm, t.sums.row(b), 1)
		}
	}
	*t = rotary{}
}

func (t *rotary) do(w, i, j int) {
	a := &t.d.workers[w]
	a.reset()
	buf := a.take(t.dim)
	for r := i; r < j; r++ {
		cos, sin := t.cos.row(int(t.pos[r])), t.sin.row(int(t.pos[r]))
		if t.dy.absent() {
			t.forward(buf, r, cos, sin)
		} else {
			t.backward(buf, r, cos, sin)
		}
	}
}

func (t *rotary) forward(buf []float32, r int, cos, sin []float32) {
	k, half := t.d.k, t.dim/2
	for c := 0; c < t.x.cols; c += t.dim {
		x, y := t.x.row(r)[c:c+t.dim], t.y.row(r)[c:c+t.dim]
		if t.norm != nil {
			k.mulTo(buf, x, t.norm, k.invRMS(x, t.eps))
			x = buf
		}
		k.rotate(y[:half], y[half:], x[:half], x[half:], cos, sin)
	}
}

func (t *rotary) backward(buf []float32, r int, cos, sin []float32) {
	k, half := t.d.k, t.dim/2
	for c := 0; c < t.dy.cols; c += t.dim {
		dy := t.dy.row(r)[c : c+t.dim]
		if t.norm == nil {
			if !t.dx.absent() {
				dx := t.dx.row(r)[c : c+t.dim]
				k.rotateGrad(dx[:half], dx[half:], dy[:half], dy[half:], cos, sin)
			}
			continue
		}
		x := t.x.row(r)[c : c+t.dim]
		inv := k.invRMS(x, t.eps)
		k.rotateGrad(buf[:half], buf[half:], dy[:half], dy[half:], cos, sin)
		if !t.sums.absent() {
			k.mulAdd(t.sums.row(r/normBlock), x, buf, inv)
		}
		if !t.dx.absent() {
			dx := t.dx.row(r)[c : c+t.dim]
			clear(dx)
			k.rmsNormRowGrad(dx, buf, x, t.norm, inv)
		}
	}
}
