package reference

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// AdamW is Loshchilov & Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2, with the bias
// corrections where torch.optim.AdamW has them.
func (d *reference) AdamW(w, g, m, v device.Mat, h device.AdamW) {
	if !d.begin("adamw", device.CheckAdamW(w, g, m, v, h), w, g, m, v) {
		return
	}
	step := float64(h.Step)
	bias1, bias2 := 1-math.Pow(h.Beta1, step), 1-math.Pow(h.Beta2, step)
	for r := range w.Rows {
		w, m, v := row(w, r), row(m, r), row(v, r)
		for c, g := range row(g, r) {
			g *= h.GradScale
			m[c] = h.Beta1*m[c] + (1-h.Beta1)*g
			v[c] = h.Beta2*v[c] + (1-h.Beta2)*g*g
			w[c] *= 1 - h.LR*h.WeightDecay
			w[c] -= h.LR / bias1 * m[c] / (math.Sqrt(v[c])/math.Sqrt(bias2) + h.Eps)
		}
	}
}
