// Package rubric scores completions by fixed rubrics, and by judges that give one number: Rubrics as Rewards (explicit and
// implicit, arXiv:2507.17746) and the baselines Scalar-Goal and Scalar-Goal+Ref of AMARIS (appendix F.2). The rubric stands in
// the configuration, in a file, in a column of the data, or in the configuration and a column together:
//
//	reward:
//	  kind: rubric
//	  options:
//	    mode: explicit
//	    rubric:
//	      - {id: correct, text: The final answer is right., weight: 3}
//	      - {id: rude, text: The answer is rude., weight: -1}
//	    column: rubric            # rows may add their own
//
// Package scoring says how credits and values come about, package criteria which forms of rubrics are read.
package rubric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/options"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// Options are the provider's settings.
type Options struct {
	Rubric []any  `json:"rubric"` // criteria for every row
	File   string `json:"file"`   // instead of rubric: a JSON file that holds them
	Column string `json:"column"` // column with a row's own rubric; empty: none
	Format string `json:"format"` // of rubric, file and column, as package criteria lists them
	scoring.Options
}

// Default are the settings that New starts from: no rubric, formats told by their fields, mode explicit.
func Default() Options { return Options{Format: "auto", Options: scoring.DefaultOptions()} }

// Provider scores by a fixed rubric. It keeps no state but the last step's metrics.
type Provider struct {
	options Options
	scorer  *scoring.Scorer
	dir     string       // of the run
	global  criteria.Set // empty: there is none

	mu      sync.Mutex
	logged  bool // the global set stands in the run's log
	metrics map[string]float64
}

var (
	_ rewards.Provider = (*Provider)(nil)
	_ rewards.Checker  = (*Provider)(nil)
	_ rewards.Drawer   = (*Provider)(nil)
)

// New makes a provider from settings as a configuration file has them. It opens the judge if the rubric of the
// configuration needs one.
func New(run rewards.Run, settings map[string]any) (rewards.Provider, error) {
	p, err := open(run, settings)
	if err != nil {
		return nil, fmt.Errorf("rubric: %w", err)
	}
	return p, nil
}

func open(run rewards.Run, settings map[string]any) (*Provider, error) {
	p := &Provider{options: Default(), dir: run.Dir}
	o := &p.options
	err := options.Decode(settings, o)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return nil, err
	}
	if p.scorer, err = scoring.New(run, o.Options); err != nil {
		return nil, err
	}
	if p.global, err = o.global(); err != nil {
		return nil, err
	}
	if p.global.Len() > 0 || o.ByGoal() {
		err = p.scorer.Check(nil, p.global.List())
	}
	return p, err
}

// check says what does not go together.
func (o *Options) check() error {
	given := len(o.Rubric) > 0 || o.File != "" || o.Column != ""
	switch {
	case len(o.Rubric) > 0 && o.File != "":
		return errors.New("rubric and file are set: use one of the two")
	case o.ByGoal() && given:
		return fmt.Errorf("mode %s shows the judge no rubric: remove rubric, file and column, or use mode explicit or implicit", o.Mode)
	case !o.ByGoal() && !given:
		return errors.New("there is no rubric: set rubric, file, or column to the data column that holds it")
	case !o.ByGoal() && o.Goal != "":
		return fmt.Errorf("goal has no effect in mode %s: remove it, or use mode goal", o.Mode)
	}
	return nil
}

// global reads the rubric for every row; empty: there is none.
func (o *Options) global() (criteria.Set, error) {
	if o.File != "" {
		s, err := criteria.Load(o.File, o.Format)
		if err != nil || s.Scope() == criteria.Global {
			return s, err
		}
		return criteria.NewSet(criteria.Global, s.Version(), s.List()) // another prompt's or run's rubric serves all here
	}
	if len(o.Rubric) == 0 {
		return criteria.Set{}, nil
	}
	list, err := criteria.Parse(o.Rubric, o.Format)
	if err != nil {
		return criteria.Set{}, err
	}
	return criteria.NewSet(criteria.Global, 1, list)
}

// rowPrefix stands before the ids of a row's own criteria where the configuration has some too.
const rowPrefix = "row."

// rubric is the rubric of a row.
func (p *Provider) rubric(row *grpo.Prompt) (criteria.Set, error) {
	column := p.options.Column
	if column == "" {
		return p.global, nil
	}
	value, there := row.Columns[column]
	if !there {
		return criteria.Set{}, fmt.Errorf("the row has no column %s: set column to the one that holds the rubric, or map it in data.columns", column)
	}
	if value == nil && p.global.Len() > 0 {
		return p.global, nil
	}
	own, err := criteria.Parse(value, p.options.Format)
	if err == nil && p.global.Len() > 0 {
		for i := range own {
			own[i].ID = rowPrefix + own[i].ID
		}
	}
	if err != nil {
		return criteria.Set{}, fmt.Errorf("column %s: %w", column, err)
	}
	s, err := criteria.NewSet(row.ID, 1, append(p.global.List(), own...))
	if err != nil {
		return criteria.Set{}, fmt.Errorf("column %s: %w", column, err)
	}
	return s, nil
}

// Check implements rewards.Checker: it reads a row's rubric and returns what is wrong with it.
func (p *Provider) Check(row *grpo.Prompt) error {
	s, err := p.rubric(row)
	if err == nil {
		err = p.scorer.Check(row, s.List())
	}
	if err != nil {
		return fmt.Errorf("rubric: %w", &rewards.Error{Prompt: row.ID, Completion: -1, Err: err})
	}
	return nil
}

// Score implements rewards.Provider. All groups are scored at the same time.
func (p *Provider) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	scored := make([]scoring.Group, len(groups))
	work, ctx := errgroup.WithContext(ctx)
	for i, g := range groups {
		work.Go(func() error {
			if err := p.scoreGroup(ctx, g, &scored[i]); err != nil {
				return fmt.Errorf("rubric: %w", &rewards.Error{Prompt: g.Prompt.ID, Completion: -1, Err: err})
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	if err := p.note(step); err != nil {
		return nil, fmt.Errorf("rubric: %w", err)
	}
	if step != rewards.HeldOut {
		m := scoring.Metrics(scored)
		p.mu.Lock()
		p.metrics = m
		p.mu.Unlock()
	}
	return scoring.Scores(scored), nil
}

func (p *Provider) scoreGroup(ctx context.Context, g grpo.Group, out *scoring.Group) error {
	set, err := p.rubric(g.Prompt)
	if err != nil {
		return err
	}
	verdicts, err := p.scorer.Credits(ctx, g.Prompt, g.Completions, set.List())
	if err != nil {
		return err
	}
	if p.options.Credited() {
		out.Set = set
	}
	out.Scores = make([]rewards.Score, len(verdicts))
	for i, v := range verdicts {
		s := p.scorer.Score(set, v)
		for k := range s.Parts[:min(len(s.Parts), p.global.Len())] {
			s.Parts[k].Local = false // the configuration's criteria come first
		}
		out.Scores[i] = s
	}
	return nil
}

// Metrics implements rewards.Drawer: those of the last step.
func (p *Provider) Metrics() map[string]float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.metrics)
}

// note writes the configuration's rubric to the run's log, once: a resumed run finds it there.
func (p *Provider) note(step int) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.logged || p.dir == "" || p.global.Len() == 0 {
		return nil
	}
	log, err := criteria.OpenLog(p.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	events, err := criteria.ReadLog(criteria.LogPath(p.dir))
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Set != nil && e.Set.Equal(p.global) {
			p.logged = true
			return nil
		}
	}
	err = log.Append(criteria.Event{Step: max(step, 0), Kind: criteria.Init, Set: &p.global})
	p.logged = err == nil
	return err
}
