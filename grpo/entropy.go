package grpo

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// EntropyThreshold is the entropy above which a token is among the top share of the given entropies (all processes'
// trained tokens of a micro-batch), in torch.quantile's float32 arithmetic, linearly interpolated. NaN for none.
func EntropyThreshold(entropies []float32, share float64) float64 {
	if len(entropies) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(entropies)
	slices.Sort(sorted)
	rank := float32(1-share) * float32(len(sorted)-1)
	k := int(rank)
	if k+1 >= len(sorted) {
		return float64(sorted[len(sorted)-1])
	}
	low, high, frac := sorted[k], sorted[k+1], rank-float32(k)
	if frac < 0.5 {
		return float64(low + frac*(high-low))
	}
	return float64(high - (high-low)*(1-frac))
}

// entropyWeights drops the surrogate of tokens below the top_entropy_quantile (arXiv:2506.01939), and sets the weights
// of the entropy bonus, which acts on the tokens that are left.
func (o *Objective) entropyWeights(b *batch) error {
	if !o.cfg.NeedsEntropy() {
		return nil
	}
	entropy, all := b.lane[laneEntropy], b.entropies()
	kept := slices.Clone(b.lane[laneOwn])
	threshold := math.Inf(-1)
	if o.cfg.TopEntropyQuantile < 1 {
		threshold = EntropyThreshold(all, o.cfg.TopEntropyQuantile)
		for t := range kept {
			if !(entropy[t] >= threshold) {
				kept[t] = 0
				b.weight[t] = 0
			}
		}
	}
	if !o.cfg.entropyBonus() {
		return nil
	}
	for t, k := range kept {
		b.entropySum += k * entropy[t]
		b.entropyCount += k
	}
	if !finite(b.in.EntropyCoef) {
		return fmt.Errorf("entropy coefficient is %v: %w", b.in.EntropyCoef, ErrNonFinite)
	}
	if b.in.EntropyCoef != 0 {
		count := 0.0 // over all processes
		for _, e := range all {
			if float64(e) >= threshold {
				count++
			}
		}
		b.lane[laneEntropyWeight] = scaled(kept, b.in.EntropyCoef/math.Max(count, 1)/b.accumulation())
	}
	return nil
}

// entropies are those of the micro-batch's trained tokens, over all processes that share it.
func (b *batch) entropies() []float32 {
	if w := b.in.Whole; w != nil {
		return w.Entropies
	}
	var trained []float32
	for t, e := range b.in.Entropy {
		if b.mask[t] {
			trained = append(trained, e)
		}
	}
	return trained
}

// EntropyControl is the coefficient of the entropy bonus: constant, or with use_adaptive_entropy raised while the
// policy's entropy is at or below the target and lowered while it is above (Skywork-OR1, arXiv:2505.22312). Its JSON
// form belongs in the checkpoint.
type EntropyControl struct {
	cfg  Config
	coef float64
	last float64 // entropy of the last optimiser step; +Inf before the first

	sum, count float64
}

// NewEntropyControl returns the controller at the start of a run.
func NewEntropyControl(cfg Config) EntropyControl {
	return EntropyControl{cfg: cfg, coef: cfg.EntropyCoef, last: math.Inf(1)}
}

// Coef is the coefficient to use for every micro-batch until the next Step, as Inputs.EntropyCoef. An adaptive bonus
// rests while the last entropy was above the target, and in the first optimiser step.
func (c *EntropyControl) Coef() float64 {
	if c.cfg.UseAdaptiveEntropy && !(c.last <= c.cfg.EntropyTarget) {
		return 0
	}
	return c.coef
}

// Add takes a micro-batch of this optimiser step into account.
func (c *EntropyControl) Add(r Result) {
	c.sum += r.EntropySum
	c.count += r.EntropyCount
}

// Window is what Add has summed since the last Step, for a sum over processes.
func (c *EntropyControl) Window() (sum, count float64) { return c.sum, c.count }

// Step ends an optimiser step in which the policy's entropies added up to sum over count tokens, all processes.
func (c *EntropyControl) Step(sum, count float64) {
	c.sum, c.count = 0, 0
	if !c.cfg.UseAdaptiveEntropy {
		return
	}
	c.last = sum / math.Max(count, 1)
	if c.last <= c.cfg.EntropyTarget {
		c.coef = math.Min(c.coef+c.cfg.EntropyCoefDelta, c.cfg.EntropyCoefMax)
	} else {
		c.coef = math.Max(c.coef-c.cfg.EntropyCoefDelta, c.cfg.EntropyCoefMin)
	}
}

// Metrics is TRL's entropy_coef, after Step; empty without an entropy bonus.
func (c *EntropyControl) Metrics() Metrics {
	m := Metrics{}
	if c.cfg.entropyBonus() {
		m.set("entropy_coef", c.coef)
	}
	return m
}

// entropyState is the JSON form of EntropyControl between optimiser steps.
type entropyState struct {
	Coef float64  `json:"entropy_coef"`
	Last *float64 `json:"last_world_entropy"` // null: nothing measured yet
}

// MarshalJSON saves c between optimiser steps.
func (c EntropyControl) MarshalJSON() ([]byte, error) {
	s := entropyState{Coef: c.coef}
	if !math.IsInf(c.last, 1) {
		s.Last = &c.last
	}
	return json.Marshal(s)
}

// UnmarshalJSON restores what MarshalJSON saved into a controller of the same configuration.
func (c *EntropyControl) UnmarshalJSON(data []byte) error {
	var s entropyState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("entropy controller state: %w", err)
	}
	c.coef, c.last, c.sum, c.count = s.Coef, math.Inf(1), 0, 0
	if s.Last != nil {
		c.last = *s.Last
	}
	return nil
}
