package grpo

import (
	"fmt"
	"math"
	"slices"
)

// LossMask marks the tokens of c that are trained on: the policy's own, or none if c is cut off and truncated
// completions are masked. nil: all of them.
func LossMask(cfg Config, c *Completion) []bool {
	if cfg.MaskTruncatedCompletions && c.Truncated {
		return make([]bool, len(c.Tokens))
	}
	return c.Mask
}

// lossTokens is the number of tokens that LossMask marks.
func lossTokens(cfg Config, c *Completion) int {
	if cfg.MaskTruncatedCompletions && c.Truncated {
		return 0
	}
	return c.Own()
}

// Names of the columns that Shape adds.
const (
	OverlongColumn = "soft_overlong_punishment_reward" // TRL's name
	KLColumn       = "kl_penalty"
)

// Shape adds the rewards that cfg itself gives, as further columns of weight 1: the soft overlong punishment, and minus
// beta times the KL from the sampler to the reference, summed over a completion's own tokens. It sets Rewards of every
// completion and returns the columns to give to Advantages; a completion that nothing else could score stays so.
func Shape(cfg Config, columns []Column, groups []Group) ([]Column, error) {
	columns = columns[:len(columns):len(columns)]
	var rewards []func(*Completion) (float64, error)
	if cfg.SoftPunishCache > 0 {
		columns = append(columns, Column{OverlongColumn, 1})
		rewards = append(rewards, func(c *Completion) (float64, error) {
			return SoftOverlong(len(c.Tokens), cfg.MaxCompletionLength, cfg.SoftPunishCache), nil
		})
	}
	if cfg.KLInReward {
		columns = append(columns, Column{KLColumn, 1})
		rewards = append(rewards, func(c *Completion) (float64, error) {
			kl, err := klOf(cfg, c)
			return -cfg.Beta * kl, err
		})
	}
	for p, g := range groups {
		for i, c := range g.Completions {
			unscorable := c.Unscorable()
			shaped := append([]float64(nil), c.Rewards...)
			for _, reward := range rewards {
				r, err := reward(c)
				if err != nil {
					return nil, fmt.Errorf("completion %d of prompt %d: %w", i, p, err)
				}
				if unscorable {
					r = math.NaN()
				}
				shaped = append(shaped, r)
			}
			c.Rewards = shaped
		}
	}
	return columns, nil
}

// klOf is the estimated KL of c's own tokens, summed, in nats. Old stands for the sampler where it is known.
func klOf(cfg Config, c *Completion) (float64, error) {
	logp := c.Old
	if logp == nil {
		logp = c.LogP
	}
	if len(logp) != len(c.Tokens) || len(c.Ref) != len(c.Tokens) {
		return 0, fmt.Errorf("grpo.kl_in_reward needs log-probabilities under policy and reference: have %d and %d for %d tokens",
			len(logp), len(c.Ref), len(c.Tokens))
	}
	sum := 0.0
	for t := range logp {
		if c.Mask == nil || c.Mask[t] {
			sum += klValue(klEstimator(cfg.KLEstimator), float64(logp[t])-float64(c.Ref[t]))
		}
	}
	if !finite(sum) {
		return 0, fmt.Errorf("the KL to the reference is %v: %w", sum, ErrNonFinite)
	}
	return sum, nil
}

// SoftOverlong is DAPO's length punishment in [-1, 0] (arXiv:2503.14476, eq. 13): 0 up to maxLength-cache tokens, then
// falling linearly to -1 at maxLength.
func SoftOverlong(length, maxLength, cache int) float64 {
	switch free := maxLength - cache; {
	case length <= free:
		return 0
	case length <= maxLength:
		return float64(free-length) / float64(cache)
	}
	return -1
}

// HasSignal reports, per group, whether its rewards differ: dynamic sampling drops the groups where they do not,
// because their advantages are 0. A group whose turns have values has signal: these are compared over the batch.
func HasSignal(columns []Column, groups []Group) ([]bool, error) {
	t, err := newTable(columns, groups)
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(groups))
	for p, s := range t.spans {
		valued := slices.ContainsFunc(groups[p].Completions, func(c *Completion) bool { return c.Episode != nil && c.Episode.Valued })
		out[p] = valued || !summarise(t.total[s[0]:s[1]]).equal()
	}
	return out, nil
}

// DrawAgain reports whether dynamic sampling should sample another generation batch, with kept groups of want after
// draws draws. When it says no, the step goes on with the groups there are.
func DrawAgain(cfg Config, kept, want, draws int) bool {
	return cfg.DynamicSampling && kept < want && draws < cfg.MaxNumGenBatches
}
