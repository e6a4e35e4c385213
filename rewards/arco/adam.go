package arco

import (
	"math"

	"github.com/rubicon-rl/rubicon/policy"
)

// headAdam is AdamW for the score head, on the host, as torch.optim.AdamW computes it (Loshchilov and Hutter, ICLR 2019). Gorgonia's
// own never changes the weights. Fields are exported for the checkpoint.
type headAdam struct {
	Updates int
	M, V    []float32
}

func newHeadAdam(n int) *headAdam {
	return &headAdam{M: make([]float32, n), V: make([]float32, n)}
}

// step updates w by the gradient g, which is multiplied by scale first.
func (a *headAdam) step(w, g []float32, rate float64, o policy.AdamWOptions, scale float64) {
	a.Updates++
	n := float64(a.Updates)
	bias1, bias2 := 1-math.Pow(o.Beta1, n), math.Sqrt(1-math.Pow(o.Beta2, n))
	for i := range w {
		x := float64(g[i]) * scale
		m := o.Beta1*float64(a.M[i]) + (1-o.Beta1)*x
		v := o.Beta2*float64(a.V[i]) + (1-o.Beta2)*x*x
		a.M[i], a.V[i] = float32(m), float32(v)
		w[i] = float32(float64(w[i])*(1-rate*o.WeightDecay) - rate/bias1*m/(math.Sqrt(v)/bias2+o.Eps))
	}
}
