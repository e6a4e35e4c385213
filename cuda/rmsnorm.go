package cuda

import (
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// RMSNorm implements device.Ops.
func (d *gpu) RMSNorm(y, x, res, w device.Mat, eps float32) {
	if !d.ok(device.CheckRMSNorm(y, x, res, w, eps)) {
		return
	}
	ym, xm, rm, wm := d.mat(y), d.mat(x), d.mat(res), d.mat(w)
	d.oneType("rmsnorm", xm, ym, rm)
	a := d.args().Matrix(ym).Matrix(xm).Matrix(rm).Matrix(wm).Int(x.Cols).Float(eps).Int(runOf(x.Cols, ym, xm, rm, wm))
	d.launch(kernel{"rmsnorm", "rmsnorm"}, perRow(x.Rows), a)
}

// RMSNormGrad implements device.Ops.
func (d *gpu) RMSNormGrad(dx, dW, dy, x, w device.Mat, eps float32) {
	if !d.ok(device.CheckRMSNormGrad(dx, dW, dy, x, w, eps)) || x.Rows == 0 {
		return
	}
	dxm, dym, xm, wm, dwm := d.mat(dx), d.mat(dy), d.mat(x), d.mat(w), d.mat(dW)
	d.oneType("rmsnorm gradient", xm, dxm, dym)
	run := runOf(x.Cols, dxm, dym, xm, wm)
	var invs driver.Ptr
	if !dW.Absent() {
		invs = d.scratch(4 * x.Rows)
		defer d.pool.give(invs)
	}
	a := d.args().Matrix(dxm).Ptr(invs).Matrix(dym).Matrix(xm).Matrix(wm).Int(x.Cols).Float(eps).Int(run)
	d.launch(kernel{"rmsnorm", "rmsnorm_grad"}, perRow(x.Rows), a)
	if dW.Absent() {
		return
	}
	parts, each := parted(x.Rows)
	part := d.scratch(4 * parts * x.Cols)
	defer d.pool.give(part)
	a = d.args().Ptr(part).Matrix(dym).Matrix(xm).Ptr(invs).Int(x.Rows).Int(each).Int(x.Cols).Int(run)
	d.launch(kernel{"rmsnorm", "rmsnorm_parts"}, runs(parts, x.Cols, run), a)
	d.addParts(dwm, part, parts, x.Cols)
}
