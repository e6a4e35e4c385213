// Package arco is a rubric model that co-evolves with a multi-step agent (ARCO, arXiv 2606.21262): for each step of an episode it writes K
// criteria and scores the step by each, such that the means of the steps' scores sum to the episode's reward.
package arco

import "math"

// Project moves the scores of an episode's steps to the nearest ones (least squares) in [-1,1] whose means over the steps sum to
// reward (ARCO, sec. 3.1 and app. A.1): all are shifted by one number, and cut. Steps have k scores; missing ones are 0, further ones are
// left out. A reward that no scores reach gives the nearest that they do.
func Project(scores [][]float64, k int, reward float64) [][]float64 {
	out := make([][]float64, len(scores))
	for t, given := range scores {
		out[t] = make([]float64, k)
		for i := range min(k, len(given)) {
			out[t][i] = bounded(given[i])
		}
	}
	n := float64(len(scores))
	shift := solve(out, math.Max(-n, math.Min(n, reward)))
	for _, step := range out {
		for i := range step {
			step[i] = bounded(step[i] + shift)
		}
	}
	return out
}

func bounded(x float64) float64 { return math.Max(-1, math.Min(1, x)) }

// bisections halve the interval of the shift, [-2, 2], to below the spacing of floats.
const bisections = 60

// solve finds the shift by which the means of the cut scores sum to reward.
func solve(scores [][]float64, reward float64) float64 {
	low, high := -2.0, 2.0
	for range bisections {
		mid := (low + high) / 2
		sum := 0.0
		for _, step := range scores {
			for _, x := range step {
				sum += bounded(x+mid) / float64(len(step))
			}
		}
		if sum < reward {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}
