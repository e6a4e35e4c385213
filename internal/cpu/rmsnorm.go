package cpu

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// rmsNorm is RMSNorm over rows.
type rmsNorm struct {
	k         *kernels
	y, x, res mat
	w         []float32
	eps       float32
}

func (d *cpu) RMSNorm(y, x, res, w device.Mat, eps float32) {
	if !d.ok(device.CheckRMSNorm(y, x, res, w, eps)) {
		return
	}
	t := &d.ops.norm
	*t = rmsNorm{d.k, d.mat(y), d.mat(x), d.mat(res), d.vector(w), eps}
	d.each(t.x.rows, rowChunk(t.x.cols), t)
	*t = rmsNorm{}
}

func (t *rmsNorm) do(_, i, j int) {
	for r := i; r < j; r++ {
		x := t.x.row(r)
		if !t.res.absent() {
			t.k.axpy(x, t.res.row(r), 1)
		}
		t.k.mulTo(t.y.row(r), x, t.w, t.k.invRMS(x, t.eps))
	}
}

// invRMS is 1/sqrt(mean(x²)+eps). The squares are summed in float64, so that the rows of wide models are as exact as
// those of narrow ones.
func (k *kernels) invRMS(x []float32, eps float32) float32 {
	return float32(1 / math.Sqrt(k.sumSquares(x)/float64(len(x))+float64(eps)))
}

// rmsNormGrad has rows as items for dx, runs of columns for dW.
type rmsNormGrad struct {
	k         *kernels
	dx, dy, x mat
	dW, w     []float32
	eps       float32
	inv       []float32 // 1/rms of each row
	byColumn  bool
}

func (d *cpu) RMSNormGrad(dx, dW, dy, x, w device.Mat, eps float32) {
	if !d.ok(device.CheckRMSNormGrad(dx, dW, dy, x, w, eps)) {
		return
	}
	d.shared.reset()
	t := &d.ops.normGrad
	*t = rmsNormGrad{k: d.k, dx: d.mat(dx), dW: d.vector(dW), dy: d.mat(dy), x: d.mat(x), w: d.vector(w), eps: eps}
	t.inv = d.shared.take(t.x.rows)
	d.each(t.x.rows, rowChunk(t.x.cols), t)
	if t.dW != nil {
		t.byColumn = true
		d.each(t.x.cols, columnChunk(t.x.rows), t)
	}
	*t = rmsNormGrad{}
}

// columnChunk is how many columns of so many rows make a task: whole cache lines.
func columnChunk(rows int) int { return (max(64, grain/max(1, rows)) + 15) &^ 15 }

func (t *rmsNormGrad) do(_, i, j int) {
	if t.byColumn {
		for r := range t.x.rows {
			t.k.mulAdd(t.dW[i:j], t.x.row(r)[i:j], t.dy.row(r)[i:j], t.inv[r])
		}
		return
	}
	for r := i; r < j; r++ {
		t.inv[r] = t.k.invRMS(t.x.row(r), t.eps)
		if !t.dx.absent() {
			t.k.rmsNormRowGrad(t.dx.row(r), t.dy.row(r), t.x.row(r), t.w, t.inv[r])
		}
	}
}

// rmsNormRowGrad adds inv·(dy·w - x·inv²·mean(dy·w·x)) to dx.
func (k *kernels) rmsNormRowGrad(dx, dy, x, w []float32, inv float32) {
	mean := float64(k.dot3(dy, x, w)) / float64(len(x))
	i := float64(inv)
	k.normGrad(dx, dy, w, x, inv, float32(-mean*i*i*i))
}
