package grpo

// cispoFamily is CISPO (arXiv:2506.13585): the policy gradient weighted by the ratio, which is capped at epsilon_high
// itself and carries no gradient.
func cispoFamily() family {
	return family{
		reduce: perBatch,
		loss: func(x *expr) *node {
			weight := x.min(x.ratioOf(laneDetached), x.fill(x.o.cfg.epsilonHigh()))
			return x.mul(x.mul(weight, x.lane(laneCoef)), x.lane(laneLogP))
		},
		metrics: func(o *Objective, b *batch, m Metrics) {
			ceiling := logOrMinusInf(o.cfg.epsilonHigh())
			m["cispo_clip_ratio"] = b.share(1, func(shift float64) bool { return shift > ceiling }).mean
		},
	}
}
