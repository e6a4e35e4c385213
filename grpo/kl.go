package grpo

import "math"

// klKind is an estimator of KL(policy || reference) from one token (J. Schulman, "Approximating KL divergence", 2020).
type klKind int

const (
	klK1 klKind = iota + 1 // d = logp - ref: unbiased, signed
	klK2                   // d*d/2: biased, small variance
	klK3                   // exp(-d) + d - 1: unbiased, not negative
)

// klEstimator resolves a name, verl's spellings included.
func klEstimator(name string) klKind {
	switch name {
	case "k1", "kl":
		return klK1
	case "k2", "mse":
		return klK2
	}
	return klK3
}

// klBound keeps exp(-d) in range where the two policies have nothing in common; beyond it there is no gradient.
const klBound = 20

// klPerToken is the KL term of each token. use_bias_correction_kl multiplies k3 by the importance ratio, with the
// gradient through both (arXiv:2512.02556, sec. 3.1).
func (x *expr) klPerToken() *node {
	minusD := x.clamp(x.sub(x.lane(laneRef), x.lane(laneLogP)), -klBound, klBound)
	switch x.o.kl {
	case klK1:
		return x.neg(minusD)
	case klK2:
		return x.mul(x.square(minusD), x.fill(0.5))
	}
	k3 := x.sub(x.sub(x.exp(minusD), minusD), x.fill(1))
	if x.o.cfg.UseBiasCorrectionKL {
		k3 = x.mul(k3, x.ratio())
	}
	return k3
}

// klValue is the estimate for d = logp - ref, outside of a graph.
func klValue(kind klKind, d float64) float64 {
	d = bound(d, -klBound, klBound)
	switch kind {
	case klK1:
		return d
	case klK2:
		return d * d / 2
	}
	return math.Exp(-d) + d - 1
}
