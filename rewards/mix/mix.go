// Package mix is the weighted sum of several reward providers. Each keeps its own column, so that the trainer can log
// them one by one, and can normalise each before it adds them up (grpo.multi_objective_aggregation: normalize_then_sum).
package mix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// Part is one provider of a mix.
type Part struct {
	Name     string // of its column, and of its folder in a checkpoint
	Weight   float64
	Provider rewards.Provider
}

// Provider adds up its parts. Of a completion that some part has nothing to say about (rewards.NotMeant) the others' sum
// counts; one that some part fails to score is unscorable.
type Provider struct{ parts []Part }

var (
	_ rewards.Provider    = (*Provider)(nil)
	_ rewards.Checker     = (*Provider)(nil)
	_ rewards.Preflighter = (*Provider)(nil)
	_ rewards.Learner     = (*Provider)(nil)
	_ rewards.Saver       = (*Provider)(nil)
	_ rewards.Drawer      = (*Provider)(nil)
	_ io.Closer           = (*Provider)(nil)
)

// New makes a mix. Names must be different and fit for a folder, weights finite.
func New(parts ...Part) (*Provider, error) {
	if len(parts) == 0 {
		return nil, errors.New("mix: has no parts: give at least one")
	}
	seen := map[string]bool{}
	for _, p := range parts {
		switch {
		case p.Name == "" || p.Name[0] == '.' || strings.ContainsAny(p.Name, `/\:`):
			return nil, fmt.Errorf(`mix: %q is no name for a part: use one without / \ : that does not begin with a dot`, p.Name)
		case seen[strings.ToLower(p.Name)]:
			return nil, fmt.Errorf("mix: two parts are called %s: give each its own name", p.Name)
		case math.IsNaN(p.Weight) || math.IsInf(p.Weight, 0):
			return nil, fmt.Errorf("mix: the weight of %s is %v: give a finite number", p.Name, p.Weight)
		}
		seen[strings.ToLower(p.Name)] = true
	}
	return &Provider{parts}, nil
}

// Score implements rewards.Provider. The parts score at the same time; the first error ends the others. A part that was done
// by then keeps what it learned of the step, until the step is scored again.
func (m *Provider) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	total := 0
	for _, g := range groups {
		total += len(g.Completions)
	}
	columns := make([][]rewards.Score, len(m.parts)) // part -> one score per completion
	work, ctx := errgroup.WithContext(ctx)
	for i, p := range m.parts {
		work.Go(func() error {
			scores, err := p.Provider.Score(ctx, step, groups)
			if err == nil && len(scores) != total {
				err = fmt.Errorf("returned %d scores for %d completions", len(scores), total)
			}
			if err != nil {
				return fmt.Errorf("reward %s: %w", p.Name, err)
			}
			columns[i] = scores
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	out := make([]rewards.Score, total)
	for i := range out {
		failed := false
		for k, p := range m.parts {
			failed = failed || columns[k][i].Unscorable && !columns[k][i].NotMeant
			if err := add(&out[i], p, columns[k][i]); err != nil {
				return nil, fmt.Errorf("reward %s: %w", p.Name, err)
			}
		}
		finish(&out[i], failed)
	}
	return out, nil
}

// add puts part p's score s into sum. The columns of a mix inside a mix become columns of this one.
func add(sum *rewards.Score, p Part, s rewards.Score) error {
	columns := s.Columns
	if len(columns) == 0 {
		columns = []rewards.Column{{Weight: 1, Value: s.Value}}
	}
	for _, c := range columns {
		if s.Unscorable {
			c.Value = math.NaN()
		}
		name := strings.TrimSuffix(p.Name+"/"+c.Name, "/")
		sum.Columns = append(sum.Columns, rewards.Column{Name: name, Weight: p.Weight * c.Weight, Value: c.Value})
	}
	for _, part := range s.Parts {
		part.Name = p.Name + "/" + part.Name
		sum.Parts = append(sum.Parts, part)
	}
	if s.Reason != "" {
		sum.Reason = strings.TrimPrefix(sum.Reason+"; "+p.Name+": "+s.Reason, "; ")
	}
	if s.Unscorable || s.Turns == nil {
		return nil
	}
	if sum.Turns == nil {
		sum.Turns = make([]float64, len(s.Turns))
	}
	if len(s.Turns) != len(sum.Turns) {
		return fmt.Errorf("values %d turns, another part %d", len(s.Turns), len(sum.Turns))
	}
	for i, v := range s.Turns {
		sum.Turns[i] += p.Weight * v
	}
	return nil
}

// finish computes the value: the weighted sum of the columns that have one. If a part failed, there is none: the sum of the
// others would be a judgement that nobody made.
func finish(sum *rewards.Score, failed bool) {
	sum.Unscorable = true
	for i := range sum.Columns {
		c := &sum.Columns[i]
		if failed {
			c.Value = math.NaN()
		}
		if !math.IsNaN(c.Value) {
			sum.Value += c.Weight * c.Value
			sum.Unscorable = false
		}
	}
	if sum.Unscorable {
		sum.Value, sum.NotMeant, sum.Turns = math.NaN(), !failed, nil
	}
}

// Check implements rewards.Checker: every part that reads columns must be able to score the row.
func (m *Provider) Check(row *grpo.Prompt) error {
	return each(m, func(_ Part, c rewards.Checker) error { return c.Check(row) })
}

// Preflight implements rewards.Preflighter: the parts are tried in their order, up to the first that fails.
func (m *Provider) Preflight(ctx context.Context) error {
	return each(m, func(_ Part, p rewards.Preflighter) error { return p.Preflight(ctx) })
}

// Close closes all parts that can be closed, whatever their errors.
func (m *Provider) Close() error {
	var errs []error
	for _, p := range m.parts {
		if c, ok := p.Provider.(io.Closer); ok {
			if err := c.Close(); err != nil {
				errs = append(errs, fmt.Errorf("reward %s: %w", p.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Learn implements rewards.Learner: the parts that learn do so one after the other, in their order.
func (m *Provider) Learn(ctx context.Context, step int, groups []grpo.Group) error {
	return each(m, func(p Part, l rewards.Learner) error { return l.Learn(ctx, step, groups) })
}

// Save implements rewards.Saver: each part that has a state writes it to the folder with its name.
func (m *Provider) Save(dir string) error {
	return each(m, func(p Part, s rewards.Saver) error {
		dir := filepath.Join(dir, p.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return s.Save(dir)
	})
}

// Load implements rewards.Saver.
func (m *Provider) Load(dir string) error {
	return each(m, func(p Part, s rewards.Saver) error { return s.Load(filepath.Join(dir, p.Name)) })
}

// Metrics implements rewards.Drawer: the parts' metrics under their names.
func (m *Provider) Metrics() map[string]float64 {
	all := map[string]float64{}
	for _, p := range m.parts {
		if d, ok := p.Provider.(rewards.Drawer); ok {
			for name, v := range d.Metrics() {
				all[p.Name+"/"+name] = v
			}
		}
	}
	return all
}

// each calls f for the parts that are a T, up to the first error.
func each[T any](m *Provider, f func(Part, T) error) error {
	for _, p := range m.parts {
		if t, ok := p.Provider.(T); ok {
			if err := f(p, t); err != nil {
				return fmt.Errorf("reward %s: %w", p.Name, err)
			}
		}
	}
	return nil
}
