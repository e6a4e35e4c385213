package cpu

import (
	"math"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// adamTask is AdamW over rows.
type adamTask struct {
	k          *kernels
	w, g, m, v mat
	c          [9]float32
}

func (d *cpu) AdamW(w, g, m, v device.Mat, h device.AdamW) {
	if !d.ok(device.CheckAdamW(w, g, m, v, h)) {
		return
	}
	t := &d.ops.adam
	*t = adamTask{d.k, d.mat(w), d.mat(g), d.mat(m), d.mat(v), adamConsts(h)}
	d.each(t.w.rows, rowChunk(t.w.cols), t)
	*t = adamTask{}
}

// adamConsts are the constants of one update, in the order in which the kernels want them: the gradient's factor,
// beta1, 1-beta1, beta2, 1-beta2, 1-lr·wd, lr/(1-beta1^t), 1/sqrt(1-beta2^t), eps.
func adamConsts(h device.AdamW) [9]float32 {
	bias1, bias2 := 1-math.Pow(h.Beta1, float64(h.Step)), 1-math.Pow(h.Beta2, float64(h.Step))
	return [9]float32{
		float32(h.GradScale), float32(h.Beta1), float32(1 - h.Beta1), float32(h.Beta2), float32(1 - h.Beta2),
		float32(1 - h.LR*h.WeightDecay), float32(h.LR / bias1), float32(1 / math.Sqrt(bias2)), float32(h.Eps),
	}
}

func (t *adamTask) do(_, i, j int) {
	for r := i; r < j; r++ {
		t.k.adamw(t.w.row(r), t.g.row(r), t.m.row(r), t.v.row(r), &t.c)
	}
}

// squares are the sums of squares of the rows of x.
type squares struct {
	k    *kernels
	x    mat
	sums []float64
}

func (t *squares) do(_, i, j int) {
	for r := i; r < j; r++ {
		t.sums[r] = t.k.sumSquares(t.x.row(r))
	}
}

// SumSquares adds the rows' sums in order. It is NaN if the device has failed.
func (d *cpu) SumSquares(x device.Mat) float64 {
	if !d.ok(device.CheckSame("sum of squares", x)) {
		return math.NaN()
	}
	t := &d.ops.squares
	*t = squares{d.k, d.mat(x), slices.Grow(t.sums[:0], x.Rows)[:x.Rows]}
	if d.each(x.Rows, rowChunk(x.Cols), t); d.err != nil {
		return math.NaN()
	}
	sum := 0.0
	for _, s := range t.sums {
		sum += s
	}
	t.x = mat{}
	return sum
}
