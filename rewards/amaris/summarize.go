package amaris

import (
	"context"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// Summary says what the analyses of a step, or of a part of it, show together (sec. 2.2).
type Summary struct {
	Health     string      `json:"health"`
	Phase      string      `json:"phase"` // early, developing, plateau, saturated
	Behaviours []Behaviour `json:"behaviours"`
	Risk       struct {
		Type     string   `json:"type"`
		Severity string   `json:"severity"` // none, low, medium, high
		Evidence []string `json:"evidence"`
	} `json:"hacking_risk"`
	Weakest struct {
		ID     string `json:"id"` // empty: none
		Reason string `json:"reason"`
	} `json:"weakest_criterion"`
	Saturation []string `json:"saturation"`
	Plan       string   `json:"plan"`
}

// Behaviour is a pattern that recurs.
type Behaviour struct {
	Pattern string `json:"pattern"`
	Share   string `json:"share"` // of the reports, in the judge's words
}

// summarize writes the summary of some analyses in one go.
func (w *workshop) summarize(ctx context.Context, step int, set criteria.Set, analyses []*Analysis) (*Summary, error) {
	p := w.packet(step, set)
	for i, a := range analyses {
		p.Items = append(p.Items, item{Label: fmt.Sprint(i + 1), Text: scoring.Fence(a.String())})
	}
	var s Summary
	if err := w.ask(ctx, stageSummarize, p, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// String words the summary for the memory and for those who work with it.
func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Health: %s\nPhase: %s\n", s.Health, s.Phase)
	for _, x := range s.Behaviours {
		fmt.Fprintf(&b, "- %s (%s)\n", x.Pattern, x.Share)
	}
	fmt.Fprintf(&b, "Hacking risk: %s, severity %s. Evidence: %s\n", s.Risk.Type, s.Risk.Severity, list(s.Risk.Evidence))
	if s.Weakest.ID != "" {
		fmt.Fprintf(&b, "Weakest criterion: %s. %s\n", s.Weakest.ID, s.Weakest.Reason)
	}
	fmt.Fprintf(&b, "Saturation: %s\nPlan: %s", list(s.Saturation), s.Plan)
	return b.String()
}
