// Package amaris is memory-augmented rubric improvement: while the policy learns, every completion is analysed, the analyses
// of a step are summarised, and the rubric is changed on the ground of this summary and of what a persistent memory of
// earlier analyses, summaries and changes says. All of it happens beside the training; a step is scored at once by the
// rubric in force.
//
//	reward:
//	  kind: amaris
//	  options:
//	    goal: Correct and well explained answers to questions of science.
//	    anchors: [{id: a0, text: The final answer is correct., weight: 1}]
//
// What the paper says: the stages (analyze.go, summarize.go, meta.go, query.go, retrieve.go, update.go), six operations, three
// strategies, the two scopes, the cold start, chunks of 32, N=4, K=10, at most one version of staleness.
//
// What is decided here, where the paper is silent:
//
//   - What is in force depends on steps only, never on how long something took: the update made from step s is in force from
//     step s+1+max_staleness on, and the training waits for it there if it is not ready. So a run can be repeated, and
//     resumed bit for bit. In sync the training waits after every step, and step s+1 is scored by the update from step s.
//     With update_interval u an update is made from u steps and is in force as late after the last of them.
//   - The first step's completions make the first global rubric (cold start) and are not analysed a second time.
//   - A prompt's own rubric is improved after every visit, which takes effect at the next one.
//   - A question without a usable answer is no failure: that completion has no analysis, that chunk no summary; an update without
//     one of its stages keeps the rubric (Maintenance) and says so in its record. A judge that cannot be reached is a
//     failure: the update is tried again when the next step begins or ends, and after max_update_failures tries
//     the step that waits for it fails, which pauses the run.
//   - D, the documents for each search, is 3; static retrieval takes the latest N summaries of the scope, whatever their steps.
//   - New ids continue the numbers of the rubric's own (C5 is followed by C6) and never come back.
//
// A checkpoint holds the rubrics in force, the memory up to the last update in force, and the inputs of the updates that
// are not in force yet. These are made again on resume, whether they were ready or not; the judge's cache has their answers.
package amaris

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// Provider scores by rubrics that improve beside the training.
type Provider struct {
	options  Options
	origin   origin
	scorer   *scoring.Scorer
	workshop *workshop // nil: rubrics stay as they are, and nothing is to be made at the start

	background context.Context // of what runs beside the training; Close ends it
	stop       context.CancelFunc
	turn       chan struct{} // who runs jobs has put something in
	running    errgroup.Group

	mu      sync.Mutex // of all below
	state   state
	driving bool // a job is being run in the background, or is about to be
	failed  float64
	paused  time.Duration // that the last Learn waited for updates
	journal journal
	metrics map[string]float64
}

var (
	_ rewards.Provider = (*Provider)(nil)
	_ rewards.Learner  = (*Provider)(nil)
	_ rewards.Checker  = (*Provider)(nil)
	_ rewards.Saver    = (*Provider)(nil)
	_ rewards.Drawer   = (*Provider)(nil)
)

// New makes a provider from settings as a configuration file has them. Unknown names and values out of range are errors
// that say what to set. Nothing is written before the first Score.
func New(run rewards.Run, settings map[string]any) (rewards.Provider, error) {
	p, err := open(run, settings)
	if err != nil {
		return nil, fmt.Errorf("amaris: %w", err)
	}
	return p, nil
}

func open(run rewards.Run, settings map[string]any) (*Provider, error) {
	o, err := decode(settings)
	if err != nil {
		return nil, err
	}
	p := &Provider{options: o, turn: make(chan struct{}, 1), state: newState(), journal: journal{Journal: criteria.Journal{Dir: run.Dir}}}
	if p.origin, err = newOrigin(o); err != nil {
		return nil, err
	}
	run.Judge = p.journal.watch.over(run.Judge)
	if p.scorer, err = scoring.New(run, o.Options); err != nil {
		return nil, err
	}
	if err := p.scorer.Check(nil, append(p.origin.anchors, p.origin.common...)); err != nil {
		return nil, err
	}
	if !o.Frozen || p.origin.cold() {
		if p.workshop, err = newWorkshop(run, o); err != nil {
			return nil, err
		}
	}
	p.background, p.stop = context.WithCancel(context.Background())
	return p, nil
}

func newWorkshop(run rewards.Run, o Options) (*workshop, error) {
	if o.goalless() {
		return nil, errors.New("goal is empty: say what the training is for; the analyses and updates are made for it")
	}
	if run.Judge == nil {
		return nil, errors.New("updates need a judge: configure section judge, or set frozen with a rubric")
	}
	w := &workshop{options: o, run: run}
	var err error
	if w.store, err = newStore(run, o.Embedder); err != nil {
		return nil, err
	}
	if w.prompts, err = openPrompts(o.Prompts); err != nil {
		return nil, err
	}
	if w.forms, err = openForms(); err != nil {
		return nil, err
	}
	if w.judge, err = run.Judge(); err != nil {
		return nil, err
	}
	return w, nil
}

// Score implements rewards.Provider.
func (p *Provider) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	scored, err := p.score(ctx, step, groups)
	if err != nil {
		return nil, fmt.Errorf("amaris: %w", err)
	}
	return scoring.Scores(scored), nil
}

// score puts the updates in force that are due, scores by what is in force then, and notes it. Nothing of p's state
// changes before the last line.
func (p *Provider) score(ctx context.Context, step int, groups []grpo.Group) ([]scoring.Group, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if step == rewards.HeldOut {
		return p.credit(ctx, groups, p.inForce())
	}
	began := time.Now()
	next, err := p.due(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.begin(ctx, next, step, groups); err != nil {
		return nil, err
	}
	waited := time.Since(began)
	scored, err := p.credit(ctx, groups, next.rubrics)
	if err != nil {
		return nil, err
	}
	return scored, p.commit(step, next, waited, scored)
}

// inForce is a copy of the rubrics in force.
func (p *Provider) inForce() map[string]rubric {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.state.rubrics)
}

// credit scores groups by rubrics, and adds to these the first ones of scopes that have none. Without a rubric, which only
// held-out prompts before the first step can be, completions are unscorable.
func (p *Provider) credit(ctx context.Context, groups []grpo.Group, rubrics map[string]rubric) ([]scoring.Group, error) {
	out := make([]scoring.Group, len(groups))
	for i, g := range groups {
		scope := p.scopeOf(g.Prompt)
		if _, there := rubrics[scope]; !there {
			r, err := p.firstOf(g.Prompt)
			if err != nil {
				return nil, place(err, g.Prompt.ID)
			}
			rubrics[scope] = r
		}
		out[i].Set = rubrics[scope].Set
	}
	work, ctx := errgroup.WithContext(ctx)
	for i, g := range groups {
		work.Go(func() error { return place(p.scoreGroup(ctx, g, &out[i]), g.Prompt.ID) })
	}
	return out, work.Wait()
}

func (p *Provider) scoreGroup(ctx context.Context, g grpo.Group, out *scoring.Group) error {
	if _, err := p.reference(g.Prompt); err != nil {
		return err
	}
	if out.Set.Len() == 0 {
		for range g.Completions {
			out.Scores = append(out.Scores, rewards.Unscorable("there is no rubric before the first training step: set eval.eval_on_start to false, or give a rubric"))
		}
		return ctx.Err()
	}
	verdicts, err := p.scorer.Credits(ctx, g.Prompt, g.Completions, out.Set.List())
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		out.Scores = append(out.Scores, p.scorer.Score(out.Set, v))
	}
	return nil
}

// place says at which prompt an error occurred, if it does not say so itself.
func place(err error, prompt string) error {
	var at *rewards.Error
	if err == nil || errors.As(err, &at) {
		return err
	}
	return &rewards.Error{Prompt: prompt, Completion: -1, Err: err}
}

// Close ends what runs beside the training and closes the files. What is not finished is made again on resume.
func (p *Provider) Close() error {
	p.stop()
	err := p.running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.workshop != nil {
		err = errors.Join(err, p.workshop.store.close())
	}
	return errors.Join(err, p.journal.Close())
}
