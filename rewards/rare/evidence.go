package rare

import (
	"math"
	"slices"

	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// evidence is the credit that one criterion gave: group -> completions that could be scored.
type evidence [][]float64

// column is criterion k's credit in verdicts (group -> completion).
func column(verdicts [][]scoring.Verdict, k int) evidence {
	e := make(evidence, len(verdicts))
	for g, list := range verdicts {
		e[g] = []float64{}
		for _, v := range list {
			if v.Unscorable == "" {
				e[g] = append(e[g], v.Credits[k])
			}
		}
	}
	return e
}

// full tells whether every one of the sizes[g] completions of every group has full credit, and there is one at all.
func (e evidence) full(sizes []int) bool {
	n := 0
	for g, credits := range e {
		if len(credits) != sizes[g] || !allFull(credits) {
			return false
		}
		n += len(credits)
	}
	return n > 0
}

func allFull(credits []float64) bool {
	return !slices.ContainsFunc(credits, func(c float64) bool { return c != 1 })
}

// mean is the mean credit of all completions, NaN if there is none.
func (e evidence) mean() float64 { return mean(slices.Concat(e...)) }

// headroom tells whether some completion has less than full credit.
func (e evidence) headroom() bool { return !allFull(slices.Concat(e...)) }

// varies tells whether the completions of some group differ in credit.
func (e evidence) varies() bool {
	return slices.ContainsFunc(e, func(credits []float64) bool { return deviation(credits) > 0 })
}

// fullShare is the share of completions with full credit, NaN if there is no completion.
func (e evidence) fullShare() float64 {
	all := slices.Concat(e...)
	n := 0.0
	for _, c := range all {
		if c == 1 {
			n++
		}
	}
	return n / float64(len(all))
}

// spread is the mean over the groups of the standard deviation within.
func (e evidence) spread() float64 { return e.over(deviation) }

// separation is the mean over the groups of the mean absolute standard score within: how strong a signal the criterion gives
// once each criterion is put on a scale of its own. A group without differences has 0, no group more than 1.
func (e evidence) separation() float64 {
	return e.over(func(credits []float64) float64 {
		std := deviation(credits)
		if std == 0 {
			return 0
		}
		m, sum := mean(credits), 0.0
		for _, c := range credits {
			sum += math.Abs(c-m) / std
		}
		return sum / float64(len(credits))
	})
}

// over is the mean of f over the groups that have completions, 0 if there is none.
func (e evidence) over(f func(credits []float64) float64) float64 {
	sum, n := 0.0, 0.0
	for _, credits := range e {
		if len(credits) > 0 {
			sum += f(credits)
			n++
		}
	}
	return sum / math.Max(n, 1)
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// deviation is the standard deviation of a whole population: exactly 0 if all are equal, and the same bits in any order.
func deviation(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	if len(x) == 0 || x[0] == x[len(x)-1] {
		return 0
	}
	m, sum := mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(x)))
}
