package main

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// median of x, which is not empty.
func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// rates are the metrics of which more is better; of all others, less is.
var rates = map[string]bool{
	"tok_s": true, "bare_tok_s": true, "gflops": true, "gb_s": true, "pack_gb_s": true, "generate_tok_s": true, "train_tok_s": true,
	"step_tok_s": true, "stream_share": true,
}

// gain is how many times better ours is than the best of peers.
func gain(metric string, ours float64, peers []float64) float64 {
	if rates[metric] {
		return ours / slices.Max(peers)
	}
	return slices.Min(peers) / ours
}

// clean are the values of a metric in the samples that others used less than limit processors in; if there are none, in
// all, and ok is false.
func clean(samples []sample, metric string, limit float64) (x []float64, ok bool) {
	var all []float64
	for _, s := range samples {
		v, has := s.Values[metric]
		if !has {
			continue
		}
		all = append(all, v)
		if s.Foreign <= limit {
			x = append(x, v)
		}
	}
	if len(x) == 0 {
		return all, false
	}
	return x, true
}

// tolerance is the share of a ratio that a change may lose.
const tolerance = 0.05

// losses are the ratios of the baseline, those of cases that were measured, that now is short of, a line each.
func losses(baseline, now map[string]float64, measured func(name string) bool) []string {
	var lost []string
	for name, was := range baseline {
		is, ok := now[name]
		switch {
		case !measured(name):
		case !ok:
			lost = append(lost, fmt.Sprintf("%s: %.3g before, not measured now", name, was))
		case !(is >= was*(1-tolerance)): // NaN too
			lost = append(lost, fmt.Sprintf("%s: %.3g before, %.3g now (%+.0f %%)", name, was, is, 100*(is/was-1)))
		}
	}
	sort.Strings(lost)
	return lost
}

// distance is the root mean square and the largest of the differences.
func distance(got, want []float64) (rms, most float64) {
	for i, w := range want {
		d := math.Abs(got[i] - w)
		rms += d * d
		most = max(most, d)
	}
	return math.Sqrt(rms / float64(len(want))), most
}

// relative is the length of the difference over that of want, and 1 minus the cosine of the angle between the two.
func relative(got, want []float64) (err, gap float64) {
	var diff, gg, ww, gw float64
	for i, w := range want {
		g := got[i]
		diff += (g - w) * (g - w)
		gg, ww, gw = gg+g*g, ww+w*w, gw+g*w
	}
	return math.Sqrt(diff / ww), 1 - gw/math.Sqrt(gg*ww)
}
