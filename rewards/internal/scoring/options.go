package scoring

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/options"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// Modes of asking.
const (
	Explicit     = "explicit"      // one question a completion, a score for each criterion back
	PerCriterion = "per_criterion" // one question a criterion
	Implicit     = "implicit"      // the judge sees the rubric and its weights, and gives one number
	Goal         = "goal"          // no rubric: the judge sees the goal of the training, and gives one number
	GoalRef      = "goal_ref"      // the same with the row's reference answer
)

// maxSamples bounds how often one question is drawn.
const maxSamples = 64

// scalarScore is the highest score where the judge gives one number for all.
const scalarScore = 10

// Options are the settings of scoring, for a provider to embed in its own.
type Options struct {
	Mode            string `json:"mode"`             // explicit, per_criterion, implicit, goal or goal_ref
	Samples         int    `json:"samples"`          // draws of each question, of which the mean counts
	Normalize       string `json:"normalize"`        // the weighted sum is divided by: positive, the sum of positive weights; absolute, that of all magnitudes; none
	Clip            string `json:"clip"`             // then clipped to: unit, [0,1]; signed, [-1,1]; none
	ReferenceColumn string `json:"reference_column"` // column with a reference answer that the judge is shown; empty: none
	MaxScore        int    `json:"max_score"`        // of a criterion that has none of its own. 0: 1; 10 where the judge gives one number
	Prompt          string `json:"prompt"`           // path of a template to use instead of the mode's own
	Goal            string `json:"goal"`             // of the training, for goal and goal_ref
}

// DefaultOptions are one question a completion, the sum of positive weights as divisor, and values in [0,1].
func DefaultOptions() Options {
	return Options{Mode: Explicit, Samples: 1, Normalize: "positive", Clip: "unit"}
}

// Credited reports whether the mode gives a credit for each criterion, rather than one value.
func (o Options) Credited() bool { return o.Mode == Explicit || o.Mode == PerCriterion }

// ByGoal reports whether the mode asks without a rubric.
func (o Options) ByGoal() bool { return o.Mode == Goal || o.Mode == GoalRef }

// check says what is wrong with the options.
func (o Options) check() error {
	for _, c := range []struct {
		name, value string
		known       []string
	}{
		{"mode", o.Mode, []string{Explicit, PerCriterion, Implicit, Goal, GoalRef}},
		{"normalize", o.Normalize, []string{"positive", "absolute", "none"}},
		{"clip", o.Clip, []string{"unit", "signed", "none"}},
	} {
		if !slices.Contains(c.known, c.value) {
			return options.Unknown(c.name, c.value, c.known)
		}
	}
	switch {
	case o.Samples < 1 || o.Samples > maxSamples:
		return fmt.Errorf("samples is %d: use 1 to %d", o.Samples, maxSamples)
	case o.MaxScore < 0 || o.MaxScore > criteria.MaxScore:
		return fmt.Errorf("max_score is %d: use 1 to %d, or 0 for the default", o.MaxScore, criteria.MaxScore)
	case o.ByGoal() && strings.TrimSpace(o.Goal) == "":
		return fmt.Errorf("mode is %s: set goal to what the training is for", o.Mode)
	case o.Mode == GoalRef && o.ReferenceColumn == "":
		return errors.New("mode is goal_ref: set reference_column to the data column with the reference answers")
	case o.Mode == Goal && o.ReferenceColumn != "":
		return errors.New("mode is goal, which shows no reference answer: use goal_ref, or remove reference_column")
	}
	return nil
}
