package grpo

import "math"

// clipFamily is PPO's clipped surrogate with decoupled bounds (arXiv:2402.03300, clip-higher of arXiv:2503.14476) and
// an optional upper bound delta on the unclipped ratio (arXiv:2505.07291). Its members differ in the reduction:
// grpo, bnpo, dr_grpo (arXiv:2503.20783), dapo and luspo (arXiv:2602.05261).
//
// The surrogate -min(min(r, delta)*A, clip(r, 1-low, 1+high)*A) is -A times r between two bounds that follow from the
// sign of A: for A > 0 there is no lower one and the upper one is min(1+high, delta); for A < 0 they are 1-low and
// max(1+high, delta). Its gradient at a bound is that of r, as in torch.
func clipFamily(r reduction) family {
	return family{reduce: r, loss: clipLoss, weigh: clipBounds, metrics: clipMetrics}
}

func clipLoss(x *expr) *node {
	bounded := x.min(x.max(x.ratio(), x.lane(laneFloor)), x.lane(laneCeiling))
	return x.mul(bounded, x.lane(laneCoef))
}

// clipBounds sets the bounds of each token's ratio.
func clipBounds(o *Objective, b *batch) {
	high, delta := 1+o.cfg.epsilonHigh(), math.Inf(1)
	if o.cfg.Delta != nil {
		delta = *o.cfg.Delta
	}
	floor, ceiling := make([]float64, b.tokens), make([]float64, b.tokens)
	for t, adv := range b.adv {
		if adv < 0 {
			floor[t], ceiling[t] = 1-o.cfg.Epsilon, math.Max(high, delta)
		} else {
			floor[t], ceiling[t] = 0, math.Min(high, delta)
		}
	}
	b.lane[laneFloor], b.lane[laneCeiling] = floor, ceiling
}

// clipMetrics are the shares of ratios beyond the clip that it holds back, the ratio taken after delta.
func clipMetrics(o *Objective, b *batch, m Metrics) {
	floor, ceiling := 1-o.cfg.Epsilon, 1+o.cfg.epsilonHigh()
	logFloor, logCeiling := logOrMinusInf(floor), logOrMinusInf(ceiling)
	if d := o.cfg.Delta; d != nil && *d < floor {
		logFloor = math.Inf(1)
	}
	if d := o.cfg.Delta; d != nil && *d <= ceiling {
		logCeiling = math.Inf(1)
	}
	low := b.share(-1, func(shift float64) bool { return shift < logFloor })
	high := b.share(1, func(shift float64) bool { return shift > logCeiling })
	m["clip_ratio/low_mean"] = low.mean
	m["clip_ratio/low_min"] = low.least
	m["clip_ratio/high_mean"] = high.mean
	m["clip_ratio/high_max"] = high.most
	m["clip_ratio/region_mean"] = Metric{Mean, low.mean.Sum + high.mean.Sum, low.mean.Count}
}

// shares is how often a condition holds: over everything, and in the rows where it holds least and most.
type shares struct{ mean, least, most Metric }

// share counts where is holds for the log ratio and the advantage has the given sign, over trained tokens, or over rows
// if there is one ratio and one advantage per row. Rows without trained tokens are in no row extreme at token level.
func (b *batch) share(sign float64, is func(shift float64) bool) shares {
	s := shares{least: Metric{Rule: Min}, most: Metric{Rule: Max}}
	for i := range b.rows {
		hits, n := b.hits(i, sign, is)
		s.mean.Sum += hits
		s.mean.Count += n
		if n > 0 {
			s.least = s.least.merge(Metric{Min, hits / n, 1})
			s.most = s.most.merge(Metric{Max, hits / n, 1})
		}
	}
	return s
}

// hits counts as share does, in one row.
func (b *batch) hits(row int, sign float64, is func(shift float64) bool) (hits, n float64) {
	if b.perRow {
		if b.in.Advantages[row]*sign > 0 && is(b.shift[row]) {
			hits = 1
		}
		return hits, 1
	}
	start := b.starts[row]
	for t := start; t < start+b.rows[row]; t++ { // masked tokens have advantage 0
		if b.adv[t]*sign > 0 && is(b.shiftAt(row, t)) {
			hits++
		}
	}
	return hits, b.count[row]
}
