package grpo

// sapoFamily is SAPO (arXiv:2511.20347): instead of a clip a sigmoid gate 4/tau * sigmoid(tau*(r-1)), whose slope at
// r = 1 is 1, with a temperature tau for each sign of the advantage.
func sapoFamily() family {
	return family{
		reduce: perSequence,
		loss: func(x *expr) *node {
			gate := x.sigmoid(x.mul(x.lane(laneTemperature), x.sub(x.ratio(), x.fill(1))))
			return x.mul(gate, x.lane(laneCoef))
		},
		weigh: func(o *Objective, b *batch) {
			temperature := make([]float64, b.tokens)
			for t, adv := range b.adv {
				temperature[t] = o.cfg.SAPOTemperatureNeg
				if adv > 0 {
					temperature[t] = o.cfg.SAPOTemperaturePos
				}
				b.lane[laneCoef][t] *= 4 / temperature[t]
			}
			b.lane[laneTemperature] = temperature
		},
	}
}
