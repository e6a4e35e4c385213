package grpo

import "math"

// Bounds of VESPO's log weights, as in its reference implementation: ln 1e-8 and 20.
const (
	vespoLow  = -18.420680743952367
	vespoHigh = 20.0
)

// vespoFamily is VESPO (arXiv:2602.10693): the policy gradient weighted by phi(W) = exp(lambda + k*log W - lambda*W)
// of the sequence ratio W, without a gradient through W.
func vespoFamily() family {
	return family{
		reduce:        perBatch,
		foldsSampling: true,
		loss: func(x *expr) *node {
			return x.mul(x.lane(laneCoef), x.lane(laneLogP))
		},
		weigh: vespoWeigh,
		metrics: func(_ *Objective, b *batch, m Metrics) {
			m["vespo/phi_seq_mean"] = b.phi
		},
	}
}

// vespoWeigh multiplies phi in. k and lambda follow the sign of the advantage.
func vespoWeigh(o *Objective, b *batch) {
	logp, old := b.lane[laneLogP], b.lane[laneOld]
	for i, start := range b.starts {
		logW := 0.0
		for t := start; t < start+b.rows[i]; t++ {
			logW += bound(logp[t]-old[t], -vespoHigh, vespoHigh)
			if b.sampling.ratio != nil && b.mask[t] {
				logW += bound(math.Log(b.sampling.ratio[t]), vespoLow, vespoHigh)
			}
		}
		logW = bound(logW, vespoLow, vespoHigh)
		pos := o.cfg.vespoPhi(logW, true)
		neg := o.cfg.vespoPhi(logW, false)
		phi := func(adv float64) float64 {
			if adv >= 0 {
				return pos
			}
			return neg
		}
		if b.in.TokenAdvantages == nil {
			b.phi = b.phi.merge(Metric{Mean, phi(b.in.Advantages[i]), 1})
		}
		for t := start; t < start+b.rows[i]; t++ {
			if !b.mask[t] {
				continue
			}
			b.lane[laneCoef][t] *= phi(b.adv[t])
			if b.in.TokenAdvantages != nil {
				b.phi = b.phi.merge(Metric{Mean, phi(b.adv[t]), 1})
			}
		}
	}
}

// vespoPhi is phi for a log weight.
func (c Config) vespoPhi(logW float64, positive bool) float64 {
	k, lambda := c.VESPOKNeg, c.VESPOLambdaNeg
	if positive {
		k, lambda = c.VESPOKPos, c.VESPOLambdaPos
	}
	lambda = math.Max(lambda, 1e-4)
	return math.Exp(lambda + k*logW - lambda*math.Exp(logW))
}

// bound is x between low and high.
func bound(x, low, high float64) float64 { return math.Min(math.Max(x, low), high) }
