package cuda

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// AdamW implements device.Ops. The constants are computed in float64 and used in float32.
func (d *gpu) AdamW(w, g, m, v device.Mat, h device.AdamW) {
	if !d.ok(device.CheckAdamW(w, g, m, v, h)) {
		return
	}
	if dense(w, g, m, v) { // a matrix of few columns would leave most threads idle
		for _, x := range []*device.Mat{&w, &g, &m, &v} {
			*x = device.Mat{Mem: x.Mem, Off: x.Off, Rows: 1, Cols: x.Rows * x.Cols, Stride: x.Rows * x.Cols}
		}
	}
	wm, gm, mm, vm := d.mat(w), d.mat(g), d.mat(m), d.mat(v)
	run := runOf(w.Cols, wm, gm, mm, vm)
	a := d.args().Matrix(wm).Matrix(gm).Matrix(mm).Matrix(vm).Int(w.Rows).Int(w.Cols).Int(run)
	bias1, bias2 := 1-math.Pow(h.Beta1, float64(h.Step)), 1-math.Pow(h.Beta2, float64(h.Step))
	for _, c := range [...]float64{
		h.GradScale, h.Beta1, 1 - h.Beta1, h.Beta2, 1 - h.Beta2, 1 - h.LR*h.WeightDecay, h.LR / bias1, 1 / math.Sqrt(bias2), h.Eps,
	} {
		a.Float(float32(c))
	}
	d.launch(kernel{"adamw", "adamw"}, runs(w.Rows, w.Cols, run), a)
}

// dense reports whether the matrices have no gaps between their rows, and no more elements than an int32 counts.
func dense(ms ...device.Mat) bool {
	for _, m := range ms {
		if m.Stride != m.Cols || m.Rows == 0 || m.Rows*m.Cols > math.MaxInt32-threads*wideRun {
			return false
		}
	}
	return true
}
