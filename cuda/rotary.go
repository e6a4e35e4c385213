package cuda

import (
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// rotary is a call of Rotary or RotaryGrad with its tables resolved. An item is a head of a row.
type rotary struct {
	cos, sin, norm    driver.Matrix
	pos               driver.Ptr
	rows, heads, half int
	lanes, run        int // threads that take an item, and the run of each
	eps               float32
}

// rotary resolves r for the rows of a matrix, which is the first of ms.
func (d *gpu) rotary(op string, r device.Rotary, of device.Mat, ms ...driver.Matrix) rotary {
	d.oneType(op, ms...)
	t := rotary{cos: d.mat(r.Cos), sin: d.mat(r.Sin), norm: d.mat(r.Norm), eps: r.Eps}
	_, t.pos = d.indices(op, "position", r.Pos, of.Rows, r.Cos.Rows)
	t.rows, t.heads, t.half = of.Rows, of.Cols/r.HeadDim, r.HeadDim/2
	t.run = min(runOf(t.half, ms...), runOf(t.half, t.cos, t.sin, t.norm))
	t.lanes = 1
	for t.lanes < 32 && t.lanes*t.run < t.half {
		t.lanes *= 2
	}
	return t
}

func (t *rotary) shape() shape {
	perBlock := threads / t.lanes
	return perRow((t.rows*t.heads + perBlock - 1) / perBlock)
}

// turn rotates x by its angles, or back if sign is -1.
func (d *gpu) turn(y, x driver.Matrix, t *rotary, sign float32) {
	a := d.args().Matrix(y).Matrix(x).Matrix(t.cos).Matrix(t.sin).Ptr(t.pos).Float(sign).Matrix(t.norm)
	a.Int(t.rows).Int(t.heads).Int(t.half).Float(t.eps).Int(t.lanes).Int(t.run)
	d.launch(kernel{"rotary", "rotary"}, t.shape(), a)
}

// Rotary implements device.Ops.
func (d *gpu) Rotary(y, x device.Mat, r device.Rotary) {
	if d.ok(device.CheckRotary(y, x, r)) {
		ym, xm := d.mat(y), d.mat(x)
		t := d.rotary("rotary", r, x, xm, ym)
		d.turn(ym, xm, &t, 1)
	}
}

// RotaryGrad implements device.Ops.
func (d *gpu) RotaryGrad(dx, dy, x device.Mat, r device.Rotary) {
	if !d.ok(device.CheckRotaryGrad(dx, dy, x, r)) || dy.Rows == 0 {
		return
	}
	dxm, dym := d.mat(dx), d.mat(dy)
	if r.Norm.Absent() {
		if t := d.rotary("rotary gradient", r, dy, dym, dxm); !dx.Absent() {
			d.turn(dxm, dym, &t, -1)
		}
		return
	}
	xm := d.mat(x)
	t := d.rotary("rotary gradient", r, dy, dym, dxm, xm)
	var invs driver.Ptr
	if !r.DNorm.Absent() {
		invs = d.scratch(4 * t.rows * t.heads)
		defer d.pool.give(invs)
	}
	a := d.args().Matrix(dxm).Ptr(invs).Matrix(dym).Matrix(xm).Matrix(t.cos).Matrix(t.sin).Ptr(t.pos).Matrix(t.norm)
	a.Int(t.rows).Int(t.heads).Int(t.half).Float(t.eps).Int(t.lanes).Int(t.run)
	d.launch(kernel{"rotary", "rotary_norm_grad"}, t.shape(), a)
	if !r.DNorm.Absent() {
		d.dNorm(d.mat(r.DNorm), dym, xm, invs, &t)
	}
}

// dNorm adds the gradient of the norm's weight; invs are 1/rms of every item.
func (d *gpu) dNorm(dNorm, dy, x driver.Matrix, invs driver.Ptr, t *rotary) {
	parts, each := parted(t.rows * t.heads)
	part := d.scratch(4 * parts * 2 * t.half)
	defer d.pool.give(part)
	wide := min(t.half, threads)
	s := shape{grid: [3]int{parts, (t.half + wide - 1) / wide, 1}, block: [3]int{wide, threads / wide, 1}}
	a := d.args().Ptr(part).Matrix(dy).Matrix(x).Matrix(t.cos).Matrix(t.sin).Ptr(t.pos).Ptr(invs)
	a.Int(t.rows * t.heads).Int(each).Int(t.heads).Int(t.half)
	d.launch(kernel{"rotary", "rotary_norm_parts"}, s, a)
	d.addParts(dNorm, part, parts, 2*t.half)
}
