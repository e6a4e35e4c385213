package arco

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/options"
)

// Options are the provider's settings. The defaults are those of ARCO's public code.
type Options struct {
	Reward      map[string]any `json:"reward"`       // what R is: settings of package verify
	SparseSteps int            `json:"sparse_steps"` // first training steps, in which the policy learns from R alone

	Base          string   `json:"base"`    // folder of the rubric model's base; empty: the policy's own, shared in memory
	Adapter       string   `json:"adapter"` // folder of a warmed-up rubric model (PEFT adapter and head); empty: a new one
	R             int      `json:"r"`
	Alpha         float64  `json:"alpha"`
	Dropout       float64  `json:"dropout"` // of a new adapter's inputs while it learns; one that is loaded has its own
	TargetModules []string `json:"target_modules"`

	K         int      `json:"k"`          // criteria for each step
	Criteria  string   `json:"criteria"`   // generated; fixed: those of fixed for every step (w/o Adaptive); none: scores without text (w/o Rubric)
	Fixed     []string `json:"fixed"`      // K criteria
	Prefix    bool     `json:"prefix"`     // the rubric model sees the steps before (false: w/o Prefix)
	MaxTokens int      `json:"max_tokens"` // of the criteria of a step

	LearningRate     float64 `json:"learning_rate"`
	HeadLearningRate float64 `json:"head_learning_rate"`
	WeightDecay      float64 `json:"weight_decay"`
	MaxGradNorm      float64 `json:"max_grad_norm"` // of adapter and head each; 0: no bound
	KL               float64 `json:"kl"`            // weight of the divergence from what the rubric model began with
	ClassBalance     bool    `json:"class_balance"` // successes and failures weigh the same in sum
	Frozen           bool    `json:"frozen"`        // the rubric model does not learn
	TokensOnce       int     `json:"tokens_once"`   // tokens of a pass
}

// The values of criteria.
const generated, fixed, none = "generated", "fixed", "none"

// Default are the settings of ARCO's public code for HotpotQA.
func Default() Options {
	return Options{
		Reward: map[string]any{"checks": []any{map[string]any{"kind": "outcome", "metric": "em"}}}, R: 8, Alpha: 32, TargetModules: []string{"q_proj", "v_proj"}, K: 3, Criteria: generated, Prefix: true, MaxTokens: 128,
		LearningRate: 1e-5, HeadLearningRate: 5e-4, WeightDecay: 0.01, MaxGradNorm: 1, KL: 0.05, ClassBalance: true, TokensOnce: 8192,
	}
}

func decode(settings map[string]any) (Options, error) {
	o := Default()
	if err := options.Decode(settings, &o); err != nil {
		return o, err
	}
	return o, o.check()
}

func (o Options) check() error {
	var wrong []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	refuse(o.SparseSteps < 0, "sparse_steps is %d: set 0 or more", o.SparseSteps)
	refuse(o.K < 1 || o.K > 64, "k is %d: set 1 to 64", o.K)
	refuse(!slices.Contains([]string{generated, fixed, none}, o.Criteria), "criteria is %q: use generated, fixed or none", o.Criteria)
	refuse(o.Criteria == fixed && len(o.Fixed) != o.K, "fixed has %d criteria, but k is %d: give as many", len(o.Fixed), o.K)
	refuse(o.Criteria != fixed && len(o.Fixed) > 0, "fixed is set, but criteria is %s: set criteria to fixed", o.Criteria)
	refuse(o.MaxTokens < 1, "max_tokens is %d: set 1 or more", o.MaxTokens)
	refuse(o.R < 1 || !(o.Alpha > 0), "r is %d and alpha %v: set positive ones", o.R, o.Alpha)
	refuse(!(o.Dropout >= 0 && o.Dropout < 1), "dropout is %v: set 0 or more, below 1", o.Dropout)
	refuse(!(o.LearningRate >= 0 && o.HeadLearningRate >= 0), "learning_rate is %v, head_learning_rate %v: set 0 or more", o.LearningRate, o.HeadLearningRate)
	refuse(!(o.WeightDecay >= 0 && o.MaxGradNorm >= 0 && o.KL >= 0), "weight_decay is %v, max_grad_norm %v, kl %v: set 0 or more", o.WeightDecay, o.MaxGradNorm, o.KL)
	refuse(o.TokensOnce < 1, "tokens_once is %d: set 1 or more", o.TokensOnce)
	return errors.Join(wrong...)
}
