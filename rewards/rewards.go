// Package rewards is how completions get their scores. A Provider scores; what it can do besides is an
// optional interface that the trainer looks for. One folder per provider.
package rewards

import (
	"context"
	"math"

	"github.com/rubicon-rl/rubicon/grpo"
)

// HeldOut is the step that Score is given for held-out completions: the provider scores them with what it has and changes
// nothing.
const HeldOut = -1

// Provider scores completions.
type Provider interface {
	// Score returns one Score per completion, groups in order and completions in order within each. It must not
	// change groups, may work concurrently, and returns promptly when ctx ends. An error means that the step cannot
	// be scored at all, and leaves the provider's state as it was; a single completion that cannot be scored is
	// Unscorable, never a silent zero. Prompts that are scored again at the same step, because too much was unscorable or
	// because the run was resumed, replace what the first call did for them.
	Score(ctx context.Context, step int, groups []grpo.Group) ([]Score, error)
}

// Score is what a provider says about one completion.
type Score struct {
	Value      float64
	Unscorable bool
	NotMeant   bool   // unscorable because it is no business of this provider (TRL's None): the other parts of a mix stand
	Reason     string // why it is unscorable, or the judge's remark
	Parts      []Part
	Columns    []Column  // several reward functions (mix); nil: one column, the provider itself
	Turns      []float64 // optional value per turn
}

// Part is one criterion's share of a Score.
type Part struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
	Credit float64 `json:"credit"` // in [0,1]
	Reason string  `json:"reason,omitempty"`
	Local  bool    `json:"-"` // it belongs to its prompt alone, so that its mean over prompts would say nothing
}

// Column is one reward function's value among several.
type Column struct {
	Name   string
	Weight float64
	Value  float64 // NaN: could not score
}

// Unscorable is a Score that is excluded from every statistic, because scoring failed.
func Unscorable(reason string) Score {
	return Score{Value: math.NaN(), Unscorable: true, Reason: reason}
}

// NotMeant is a Score for a completion that the provider has nothing to say about, such as a row of another task.
func NotMeant(reason string) Score {
	return Score{Value: math.NaN(), Unscorable: true, NotMeant: true, Reason: reason}
}

// Learner is a Provider that changes between steps. Learn sees the step's scored groups after the policy update.
type Learner interface {
	Learn(ctx context.Context, step int, groups []grpo.Group) error
}

// Saver is a Provider whose state belongs in the checkpoint. Save writes files into dir, Load reads them back; after
// Load the provider behaves bit for bit as the one that saved.
type Saver interface {
	Save(dir string) error
	Load(dir string) error
}

// Checker is a Provider that reads columns of the data. Check reports what is wrong with a row before the run begins.
type Checker interface {
	Check(row *grpo.Prompt) error
}

// Preflighter is a Provider that depends on something outside the run. Preflight tries it before anything is sampled; its
// error says what to set.
type Preflighter interface {
	Preflight(ctx context.Context) error
}

// Drawer is a Provider with something to show: metrics for the step's log line, and the texts behind them.
type Drawer interface {
	Metrics() map[string]float64
}
