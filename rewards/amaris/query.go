package amaris

import (
	"context"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// Query is one search in the memory (sec. 2.3).
type Query struct {
	Aim  string `json:"aim"` // failure_mode, rubric_flaw, curriculum, past_update
	Text string `json:"query"`
}

// query asks for searches that suit a step's summary: at most as many as the options say, none twice, none empty.
func (w *workshop) query(ctx context.Context, step int, set criteria.Set, s *Summary) ([]Query, error) {
	p := w.packet(step, set)
	p.Summary, p.Most = scoring.Fence(s.String()), w.options.Queries
	var reply struct{ Queries []Query }
	if err := w.ask(ctx, stageQuery, p, &reply); err != nil {
		return nil, err
	}
	var out []Query
	for _, q := range reply.Queries {
		same := func(o Query) bool { return strings.EqualFold(o.Text, q.Text) }
		if q.Text != "" && !slices.ContainsFunc(out, same) && len(out) < w.options.Queries {
			out = append(out, q)
		}
	}
	return out, nil
}
