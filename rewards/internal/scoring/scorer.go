// Package scoring is how completions are scored by criteria, the same for every rubric provider: questions to a judge
// and checks by programs give each criterion a credit in [0,1], and the value is computed here, never by the judge.
//
// With weights w and credits c, the value is sum(w c) / sum(max(w, 0)), clipped to [0,1]; options choose other divisors and
// ranges. Texts of the policy and of the data reach the judge inside a Fence, criteria and instructions outside of it.
package scoring

import (
	"errors"
	"fmt"
	"math"
	"text/template"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// Scorer scores completions by criteria. It keeps no state and is safe for use by several goroutines.
type Scorer struct {
	options Options
	prompt  *template.Template
	run     rewards.Run
}

// New makes a scorer. It opens no judge: rubrics that programs score need none.
func New(run rewards.Run, o Options) (*Scorer, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	t, err := loadPrompt(o)
	if err != nil {
		return nil, err
	}
	return &Scorer{o, t, run}, nil
}

// Check reports what keeps the criteria of list from being scored for a row (nil: for any), and opens the judge if they
// need one, so that a wrong judge is known before anything is sampled.
func (s *Scorer) Check(row *grpo.Prompt, list []criteria.Criterion) error {
	checked := 0
	for _, c := range list {
		if c.Check == nil {
			continue
		}
		checked++
		if _, err := compile(c, row); err != nil {
			return err
		}
	}
	if checked > 0 && !s.options.Credited() {
		return fmt.Errorf("mode %s gives one number for the whole, but some criteria have a check: use mode explicit, or leave them out", s.options.Mode)
	}
	if row != nil {
		if _, err := s.reference(row); err != nil {
			return err
		}
	}
	if checked < len(list) || s.options.ByGoal() {
		_, err := s.judge()
		return err
	}
	return nil
}

// compile makes a criterion's check ready for a row.
func compile(c criteria.Criterion, row *grpo.Prompt) (verify.Check, error) {
	check, err := verify.Compile(c.Check, row)
	if err == nil && check == nil && row != nil {
		err = errors.New("its check does not apply to this row: leave it out of the rubric")
	}
	if err != nil {
		return nil, fmt.Errorf("criterion %s: %w", c.ID, err)
	}
	return check, nil
}

func (s *Scorer) judge() (rewards.Judge, error) {
	if s.run.Judge == nil {
		return nil, errors.New("there is no judge to score the criteria: set judge.url and judge.model")
	}
	return s.run.Judge()
}

// Verdict is what scoring found out about one completion.
type Verdict struct {
	Credits    []float64 // of each criterion, in [0,1]; nil in the modes that give one value
	Reasons    []string  // of each criterion; in the modes that give one value a single one
	Value      float64   // in [0,1], in the modes that give one value
	Unscorable string    // why it could not be scored; empty: it was, and the other fields are set
}

// Score computes a completion's value from a verdict on the criteria of set. Parts are named by the criteria's ids; they
// are Local if the set is not of scope criteria.Global.
func (s *Scorer) Score(set criteria.Set, v Verdict) rewards.Score {
	if v.Unscorable != "" {
		return rewards.Unscorable(v.Unscorable)
	}
	if !s.options.Credited() {
		return rewards.Score{Value: v.Value, Reason: v.Reasons[0]}
	}
	out := rewards.Score{Parts: make([]rewards.Part, set.Len())}
	positive, absolute := 0.0, 0.0
	for i, c := range set.All() {
		out.Parts[i] = rewards.Part{Name: c.ID, Weight: c.Weight, Credit: v.Credits[i], Reason: v.Reasons[i], Local: set.Scope() != criteria.Global}
		out.Value += c.Weight * v.Credits[i]
		positive += max(c.Weight, 0)
		absolute += math.Abs(c.Weight)
	}
	switch s.options.Normalize {
	case "positive":
		out.Value /= positive
	case "absolute":
		out.Value /= absolute
	}
	switch s.options.Clip {
	case "unit":
		out.Value = min(max(out.Value, 0), 1)
	case "signed":
		out.Value = min(max(out.Value, -1), 1)
	}
	return out
}

// split sorts the places of list by who scores them.
func split(list []criteria.Criterion) (judged, checked []int) {
	for i, c := range list {
		if c.Check == nil {
			judged = append(judged, i)
		} else {
			checked = append(checked, i)
		}
	}
	return judged, checked
}

// pick returns the criteria at places.
func pick(list []criteria.Criterion, places []int) []criteria.Criterion {
	out := make([]criteria.Criterion, len(places))
	for i, p := range places {
		out[i] = list[p]
	}
	return out
}
