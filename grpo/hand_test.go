package grpo

import (
	"math"
	"math/rand/v2"
)

// handLoss is the loss and its gradient for the clipped losses, written as loops with the derivative by hand: what the
// graphs are compared with, in value and in speed. It knows reductions, both clips, delta, KL and both ratio levels.
func handLoss(cfg Config, in Inputs) (loss float64, grad []float64) {
	grad = make([]float64, len(in.LogP))
	own := 0.0
	for _, m := range in.Mask {
		if m {
			own++
		}
	}
	start := 0
	for i, n := range in.Rows {
		lo, hi := start, start+n
		start = hi
		count := 0.0
		for t := lo; t < hi; t++ {
			if in.Mask[t] {
				count++
			}
		}
		count = math.Max(count, 1)
		w := handWeight(cfg, in, count, own)
		if cfg.sequenceLevel() {
			loss += handSequence(cfg, in, handRow{i, lo, hi, w, count}, grad)
			continue
		}
		for t := lo; t < hi; t++ {
			if in.Mask[t] {
				r := math.Exp(float64(in.LogP[t]) - float64(in.Old[t]))
				l, dr := handClip(cfg, r, in.Advantages[i])
				kl, dkl, dklr := handKL(cfg, in, t, r)
				loss += w * (l + kl)
				grad[t] = w * ((dr+dklr)*r + dkl)
			}
		}
	}
	return loss, grad
}

// handRow is row i: tokens [lo, hi), count of them trained on with weight w.
type handRow struct {
	i, lo, hi int
	w, count  float64
}

func handSequence(cfg Config, in Inputs, row handRow, grad []float64) (loss float64) {
	s := 0.0
	for t := row.lo; t < row.hi; t++ {
		if in.Mask[t] {
			s += float64(in.LogP[t]) - float64(in.Old[t])
		}
	}
	r := math.Exp(s / row.count)
	l, dr := handClip(cfg, r, in.Advantages[row.i])
	through := 0.0 // dLoss/dr over the row
	for t := row.lo; t < row.hi; t++ {
		if in.Mask[t] {
			kl, dkl, dklr := handKL(cfg, in, t, r)
			loss += row.w * (l + kl)
			grad[t] = row.w * dkl
			through += row.w * (dr + dklr)
		}
	}
	for t := row.lo; t < row.hi; t++ {
		if in.Mask[t] {
			grad[t] += through * r / row.count
		}
	}
	return loss
}

// handClip is the surrogate of a ratio and its derivative by it.
func handClip(cfg Config, r, adv float64) (loss, dr float64) {
	clipped := math.Min(math.Max(r, 1-cfg.Epsilon), 1+cfg.epsilonHigh())
	unclipped, slope := r, 1.0
	if cfg.Delta != nil && r > *cfg.Delta {
		unclipped, slope = *cfg.Delta, 0
	}
	if unclipped*adv <= clipped*adv {
		return -unclipped * adv, -slope * adv
	}
	if r >= 1-cfg.Epsilon && r <= 1+cfg.epsilonHigh() {
		return -clipped * adv, -adv
	}
	return -clipped * adv, 0
}

// handKL is beta times the KL estimate, its derivatives by logp and, with bias correction, by the ratio.
func handKL(cfg Config, in Inputs, t int, r float64) (kl, dlogp, dratio float64) {
	if !cfg.klInLoss() {
		return 0, 0, 0
	}
	d := float64(in.LogP[t]) - float64(in.Ref[t])
	switch cfg.KLEstimator {
	case "k1":
		return cfg.Beta * d, cfg.Beta, 0
	case "k2":
		return cfg.Beta * d * d / 2, cfg.Beta * d, 0
	}
	k3, dk3 := math.Exp(-d)+d-1, 1-math.Exp(-d)
	if cfg.UseBiasCorrectionKL {
		return cfg.Beta * k3 * r, cfg.Beta * dk3 * r, cfg.Beta * k3
	}
	return cfg.Beta * k3, cfg.Beta * dk3, 0
}

// handMeanKL is the mean KL estimate over trained tokens, without bias correction.
func handMeanKL(cfg Config, in Inputs) float64 {
	sum, own := 0.0, 0.0
	for t, m := range in.Mask {
		if m {
			kl, _, _ := handKL(cfg, in, t, 1)
			sum += kl / cfg.Beta
			own++
		}
	}
	return sum / math.Max(own, 1)
}

func handWeight(cfg Config, in Inputs, count, own float64) float64 {
	rows, accum := float64(len(in.Rows)), math.Max(float64(in.GradAccum), 1)
	switch cfg.LossType {
	case "grpo":
		return 1 / (rows * count * accum)
	case "bnpo":
		return 1 / (math.Max(own, 1) * accum)
	case "dr_grpo":
		return 1 / (rows * float64(cfg.MaxCompletionLength) * accum)
	case "luspo":
		return 1 / (rows * accum)
	}
	return math.Max(float64(in.StepsPerGen), 1) / (in.NumItems * accum)
}

// randomInputs is a micro-batch with every input set, a fifth of the tokens masked.
func randomInputs(seed uint64, rows ...int) Inputs {
	r := rand.New(rand.NewPCG(seed, 1))
	in := Inputs{Rows: rows, GradAccum: 2, StepsPerGen: 4}
	for _, n := range rows {
		in.Advantages = append(in.Advantages, r.NormFloat64())
		for range n {
			logp := -r.ExpFloat64()
			near := func(spread float64) float32 { return float32(logp + spread*r.NormFloat64()) }
			in.LogP = append(in.LogP, float32(logp))
			in.Old = append(in.Old, near(0.3))
			in.Ref = append(in.Ref, near(0.5))
			in.Sampling = append(in.Sampling, near(0.3))
			in.Entropy = append(in.Entropy, float32(3*r.Float64()))
			own := r.Float64() < 0.8
			in.Mask = append(in.Mask, own)
			if own {
				in.NumItems++
			}
		}
	}
	in.NumItems *= 3
	return in
}
