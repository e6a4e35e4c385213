package grpo

import (
	"math"
	"strings"
)

func sequenceMode(mode string) bool { return strings.HasPrefix(mode, "sequence_") }
func truncateMode(mode string) bool { return strings.HasSuffix(mode, "_truncate") }

// samplingRatio corrects for samples that were drawn under other numbers than the trainer's.
type samplingRatio struct {
	ratio                 []float64 // [N], one value per row repeated in sequence modes; nil: no correction
	gap, largest          Metric    // |old - sampling|
	lowest, mean, highest Metric    // ratios, over trained tokens or rows
}

// correctSampling multiplies exp(old - sampling) into the weights, truncated (TIS) or masked (MIS, arXiv:2510.18855) at
// the configured bounds, per token or for the sum over a sequence. Tokens whose sampling log-probability is unknown
// count as equal.
func (o *Objective) correctSampling(b *batch) {
	if b.in.Sampling == nil || !o.cfg.ImportanceSamplingCorrection {
		return
	}
	s := &b.sampling
	*s = samplingRatio{ratio: make([]float64, b.tokens), largest: Metric{Rule: Max}, lowest: Metric{Rule: Min}, highest: Metric{Rule: Max}}
	sequence := sequenceMode(o.cfg.ImportanceSamplingMode)
	for i, start := range b.starts {
		total := 0.0
		for t := start; t < start+b.rows[i]; t++ {
			diff := b.lane[laneOld][t] - float64(b.in.Sampling[t])
			if !b.mask[t] || math.IsNaN(diff) {
				diff = 0
			} else {
				s.gap = s.gap.merge(Metric{Mean, math.Abs(diff), 1})
				s.largest = s.largest.merge(Metric{Max, math.Abs(diff), 1})
			}
			total += diff
			s.ratio[t] = o.cfg.limitRatio(math.Exp(diff))
			if !sequence && b.mask[t] {
				s.observe(s.ratio[t])
			}
		}
		if !sequence {
			continue
		}
		r := o.cfg.limitRatio(math.Exp(total))
		s.observe(r)
		for t := start; t < start+b.rows[i]; t++ {
			s.ratio[t] = r
		}
	}
	if !o.family.foldsSampling {
		for t, r := range s.ratio {
			if b.mask[t] {
				b.weight[t] *= r
			}
		}
	}
}

// limitRatio truncates or masks a ratio.
func (c Config) limitRatio(r float64) float64 {
	low, high := math.Inf(-1), math.Inf(1)
	if c.ImportanceSamplingClipMin != nil {
		low = *c.ImportanceSamplingClipMin
	}
	if c.ImportanceSamplingClipMax != nil {
		high = *c.ImportanceSamplingClipMax
	}
	if truncateMode(c.ImportanceSamplingMode) {
		return bound(r, low, high)
	}
	if r < low || r > high {
		return 0
	}
	return r
}

func (s *samplingRatio) observe(r float64) {
	s.lowest = s.lowest.merge(Metric{Min, r, 1})
	s.mean = s.mean.merge(Metric{Mean, r, 1})
	s.highest = s.highest.merge(Metric{Max, r, 1})
}

func (s *samplingRatio) metrics(m Metrics) {
	m["sampling/sampling_logp_difference/mean"] = s.gap
	m["sampling/sampling_logp_difference/max"] = s.largest
	m["sampling/importance_sampling_ratio/min"] = s.lowest
	m["sampling/importance_sampling_ratio/mean"] = s.mean
	m["sampling/importance_sampling_ratio/max"] = s.highest
}

// maskOffPolicy drops rows (tokens, with advantages per token) that have a negative advantage and have drifted: the
// mean of sampling - logp over the row's trained tokens is above the threshold (DeepSeek-V3.2, arXiv:2512.02556).
func (o *Objective) maskOffPolicy(b *batch) {
	if o.cfg.OffPolicyMaskThreshold == nil {
		return
	}
	for i, start := range b.starts {
		drift := 0.0
		for t := start; t < start+b.rows[i]; t++ {
			sampled := b.lane[laneOld][t]
			if b.in.Sampling != nil {
				sampled = float64(b.in.Sampling[t])
			}
			if d := sampled - b.lane[laneLogP][t]; b.mask[t] && !math.IsNaN(d) {
				drift += d
			}
		}
		if drift*b.inverse[i] <= *o.cfg.OffPolicyMaskThreshold {
			continue
		}
		for t := start; t < start+b.rows[i]; t++ {
			if b.adv[t] < 0 {
				b.weight[t] = 0
			}
		}
	}
}
