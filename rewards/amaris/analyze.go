package amaris

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// Analysis is the report about one completion, in the paper's five sections (sec. 2.1).
type Analysis struct {
	Hacking struct {
		Present    bool     `json:"present"`
		Type       string   `json:"type"` // none, or one of the kinds of the paper's Table 17, or other
		Evidence   []string `json:"evidence"`
		Confidence string   `json:"confidence"` // low, medium, high
	} `json:"reward_hacking"`
	Stage struct {
		Assessment string `json:"assessment"`
		Expected   string `json:"expected"` // below, as_expected, above
	} `json:"training_stage"`
	Rubric struct {
		Assessment string `json:"assessment"`
		Flaws      []Flaw `json:"flaws"`
	} `json:"rubric_analysis"`
	Curriculum struct {
		Next   string `json:"next"`
		Reason string `json:"reason"`
	} `json:"curriculum"`
	Observations []string `json:"observations"`
}

// Flaw is what is wrong with a criterion or its weight.
type Flaw struct {
	Criterion string `json:"criterion"`
	Flaw      string `json:"flaw"`
}

// hackingTypes are the values of a kind of reward hacking.
func hackingTypes() []string {
	return []string{"none", "length_gaming", "superficial_format", "over_refusal", "claims_without_evidence", "sycophancy", "keyword_stuffing", "other"}
}

// rollout is a completion that is to be analysed.
type rollout struct {
	Scope        string `json:"scope"`
	Prompt       string `json:"prompt"`
	Conversation string `json:"conversation"`
	Completion   string `json:"completion"`
	Reference    string `json:"reference,omitempty"`
}

// analyze has every rollout analysed; sets are the rubrics that scored them, by scope. A rollout without a usable answer has
// no analysis (nil). All are asked at once; the judge bounds how many are in flight.
func (w *workshop) analyze(ctx context.Context, step int, rollouts []rollout, sets map[string]criteria.Set) ([]*Analysis, error) {
	out := make([]*Analysis, len(rollouts))
	work, ctx := errgroup.WithContext(ctx)
	for i, r := range rollouts {
		work.Go(func() error {
			p := w.packet(step, sets[r.Scope])
			p.Conversation, p.Completion = scoring.Fence(r.Conversation), scoring.Fence(r.Completion)
			if r.Reference != "" {
				p.Reference = scoring.Fence(r.Reference)
			}
			var a Analysis
			err := w.ask(ctx, stageAnalyze, p, &a)
			if unanswered(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("prompt %q: %w", r.Prompt, err)
			}
			if !a.Hacking.Present {
				a.Hacking.Type = hackingTypes()[0]
			}
			out[i] = &a
			return nil
		})
	}
	return out, work.Wait()
}

// String words the report for the memory and for those who summarise it.
func (a *Analysis) String() string {
	var b strings.Builder
	if a.Hacking.Present {
		fmt.Fprintf(&b, "Reward hacking: %s (confidence %s). Evidence: %s\n", a.Hacking.Type, a.Hacking.Confidence, list(a.Hacking.Evidence))
	} else {
		fmt.Fprintf(&b, "Reward hacking: none (confidence %s).\n", a.Hacking.Confidence)
	}
	fmt.Fprintf(&b, "Training stage: %s. %s\n", strings.ReplaceAll(a.Stage.Expected, "_", " "), a.Stage.Assessment)
	fmt.Fprintf(&b, "Rubric: %s\n", a.Rubric.Assessment)
	for _, f := range a.Rubric.Flaws {
		fmt.Fprintf(&b, "- %s: %s\n", f.Criterion, f.Flaw)
	}
	fmt.Fprintf(&b, "Next: %s (%s)\n", a.Curriculum.Next, a.Curriculum.Reason)
	if len(a.Observations) > 0 {
		fmt.Fprintf(&b, "Also: %s\n", list(a.Observations))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// list joins texts for people.
func list(texts []string) string {
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, " | ")
}
