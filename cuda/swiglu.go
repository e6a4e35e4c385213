package cuda

import "github.com/rubicon-rl/rubicon/internal/device"

// SwiGLU implements device.Ops.
func (d *gpu) SwiGLU(y, gu device.Mat) {
	if d.ok(device.CheckSwiGLU(y, gu)) {
		ym, gum := d.mat(y), d.mat(gu)
		d.oneType("swiglu", gum, ym)
		run := runOf(y.Cols, ym, gum)
		d.launch(kernel{"swiglu", "swiglu"}, runs(y.Rows, y.Cols, run), d.args().Matrix(ym).Matrix(gum).Int(y.Rows).Int(y.Cols).Int(run))
	}
}

// SwiGLUGrad implements device.Ops.
func (d *gpu) SwiGLUGrad(dgu, dy, gu device.Mat) {
	if d.ok(device.CheckSwiGLUGrad(dgu, dy, gu)) && !dgu.Absent() {
		dgum, dym, gum := d.mat(dgu), d.mat(dy), d.mat(gu)
		d.oneType("swiglu gradient", gum, dym, dgum)
		run := runOf(dy.Cols, dgum, dym, gum)
		a := d.args().Matrix(dgum).Matrix(dym).Matrix(gum).Int(dy.Rows).Int(dy.Cols).Int(run)
		d.launch(kernel{"swiglu", "swiglu_grad"}, runs(dy.Rows, dy.Cols, run), a)
	}
}
