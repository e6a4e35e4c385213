// Package verify scores completions by programs: a weighted list of checks, each of which gives a credit between 0 and
// 1. The checks stand in the configuration, in a column of the data, or in both:
//
//	reward:
//	  kind: verify
//	  options:
//	    column: checks            # rows may add their own list under this name
//	    checks:
//	      - {kind: number, column: answer, weight: 2}
//	      - {kind: count, unit: words, max: 50, partial: [0.5]}
//
// The value is the sum of weight times credit, divided by the sum of the positive weights (by 1 if there is none), and
// clipped. A negative weight makes a check a penalty, weight 0 only shows it. The file kinds.go lists the kinds; the
// struct of each documents its settings.
package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/options"
	"github.com/rubicon-rl/rubicon/rewards"
)

// Options are the provider's settings.
type Options struct {
	Checks []map[string]any `json:"checks"` // for every row: {kind, name, weight, and the kind's own settings}
	Column string           `json:"column"` // column with a row's own list of checks, of the same form; empty: none
	Clip   string           `json:"clip"`   // range of the value: unit, [0,1], or signed, [-1,1]
}

// Default are the settings that New starts from: no checks, values clipped to [0,1].
func Default() Options { return Options{Clip: "unit"} }

// Provider scores by checks. It keeps no state.
type Provider struct {
	column string
	floor  float64 // lower end of the range
	checks []criterion
}

var (
	_ rewards.Provider = (*Provider)(nil)
	_ rewards.Checker  = (*Provider)(nil)
)

// New makes a provider from settings as a configuration file has them; it needs nothing of the run. Unknown settings, kinds
// and names are errors that suggest the nearest one.
func New(_ rewards.Run, settings map[string]any) (rewards.Provider, error) {
	o := Default()
	if err := options.Decode(settings, &o); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	p := &Provider{column: o.Column}
	switch o.Clip {
	case "unit":
	case "signed":
		p.floor = -1
	default:
		return nil, fmt.Errorf("verify: clip is %q: use unit or signed", o.Clip)
	}
	var err error
	if p.checks, err = criteria(o.Checks); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	for _, c := range p.checks {
		if _, err := c.kind.compile(nil); err != nil {
			return nil, fmt.Errorf("verify: check %s: %w", c.name, err)
		}
	}
	if len(p.checks) == 0 && p.column == "" {
		return nil, errors.New("verify: nothing to check: set checks, or column to the data column that holds them")
	}
	return p, nil
}

// Score implements rewards.Provider. A row whose checks are missing or wrong is an error that names it.
func (p *Provider) Score(ctx context.Context, _ int, groups []grpo.Group) ([]rewards.Score, error) {
	start := make([]int, len(groups)) // index of a group's first score
	total := 0
	for i, g := range groups {
		start[i] = total
		total += len(g.Completions)
	}
	scores := make([]rewards.Score, total)
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i, g := range groups {
		work.Go(func() error { return p.scoreGroup(ctx, g, scores[start[i]:]) })
	}
	if err := work.Wait(); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return scores, nil
}

// scoreGroup writes the scores of g's completions to the front of scores.
func (p *Provider) scoreGroup(ctx context.Context, g grpo.Group, scores []rewards.Score) error {
	checks, err := p.row(g.Prompt)
	if err != nil {
		return &rewards.Error{Prompt: g.Prompt.ID, Completion: -1, Err: err}
	}
	for i, c := range g.Completions {
		if err := ctx.Err(); err != nil {
			return &rewards.Error{Prompt: g.Prompt.ID, Completion: i, Err: err}
		}
		scores[i] = p.score(checks, c)
	}
	return nil
}

// Check implements rewards.Checker: it reads a row's checks and returns what is wrong with them.
func (p *Provider) Check(row *grpo.Prompt) error {
	if _, err := p.row(row); err != nil {
		return fmt.Errorf("verify: %w", &rewards.Error{Prompt: row.ID, Completion: -1, Err: err})
	}
	return nil
}

// row makes the checks of one row ready: those of the configuration and the row's own. Checks that do not apply to it
// are left out.
func (p *Provider) row(row *grpo.Prompt) ([]ready, error) {
	all := p.checks
	if p.column != "" {
		list, err := maps(row.Columns[p.column])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", p.column, err)
		}
		own, err := criteria(list)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", p.column, err)
		}
		all = append(all[:len(all):len(all)], own...)
	}
	var checks []ready
	positive := 0.0
	for _, c := range all {
		check, err := c.kind.compile(row)
		if err != nil {
			return nil, fmt.Errorf("check %s: %w", c.name, err)
		}
		if check != nil {
			checks = append(checks, ready{c, check})
			positive += max(c.weight, 0)
		}
	}
	if len(checks) > 0 && positive == 0 && p.floor == 0 {
		return nil, errors.New("no check has a weight above 0, so every value would be 0: set clip: signed")
	}
	return checks, nil
}

// score applies a row's checks to one completion.
func (p *Provider) score(checks []ready, c *grpo.Completion) rewards.Score {
	if len(checks) == 0 {
		return rewards.NotMeant("no check applies to this row")
	}
	s := rewards.Score{Parts: make([]rewards.Part, len(checks))}
	positive := 0.0
	for i, k := range checks {
		credit, reason := k.check(c)
		if math.IsNaN(credit) {
			return rewards.Unscorable(k.name + ": " + reason)
		}
		s.Parts[i] = rewards.Part{Name: k.name, Weight: k.weight, Credit: credit, Reason: reason}
		s.Value += k.weight * credit
		positive += math.Max(k.weight, 0)
	}
	if positive > 0 {
		s.Value /= positive
	}
	s.Value = math.Min(math.Max(s.Value, p.floor), 1)
	return s
}
