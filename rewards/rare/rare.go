// Package rare is reinforcement learning with adaptive rubric evolution: every prompt owns a rubric, and a criterion that
// all current completions of the prompt meet in full, so that it no longer tells them apart, is replaced by one that looks
// for what still differs between them. The judge scores only the replacements, on the same completions, before the policy
// is updated; every other criterion and every other credit stay as they are, bit for bit.
//
//	reward:
//	  kind: rare
//	  options:
//	    column: rubric        # the row's own first rubric
//	    polarity: negative
//
// What the paper says. Sample level: replace the criteria that all current outputs satisfy fully by checks of the remaining
// quality differences, keep all other criteria and scores; the generator proposes from the rollouts, the judge scores the
// replacements on the same rollouts before the update. Polarities: negative (full score where the flaw is absent),
// positive, mixed (with two or more updates both occur). Task level: one rubric shared by a task.
//
// What is decided here, where the paper is silent:
//
//   - A completion that cannot be scored never counts as full, so its group has no saturated criterion; at task level it
//     holds back the task's update of that step. If a replacement cannot be scored on every completion, the old criteria stay.
//   - Anchors are never replaced, and neither are criteria without a positive weight: the replacement takes the old one's
//     weight, and a negative one would turn its sense around.
//   - A replacement takes place, weight and category of the old criterion, has an id that the prompt never had (of the step
//     and the place, or a pool's own), and stays even if all completions meet it at once: the paper counts such switches
//     (20 of 100 in its Table 3).
//   - A proposal that repeats what the prompt has, ever had, or is offered beside it is rejected (Jaccard similarity of the
//     sets of three letters). With mixed polarity, rejections that leave two or more of one polarity leave the first.
//   - Two groups of one prompt in a step both start from the rubric before the step; the later one's rubric persists.
//   - Task level: a criterion is saturated if it is full in all of the task's groups of the step. The generator sees at most
//     max_rollouts completions, spread evenly over these groups.
//   - Generators beside the judge: pool takes from a list, for each saturated criterion, the unused candidate whose credits
//     differ most within the groups (mean standard deviation; none if all are 0), random any unused one, as a control.
//
// The log and what `rubicon rubrics rare` computes from it are explained in report.go.
package rare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// Provider scores by rubrics that evolve.
type Provider struct {
	options   Options
	rubrics   rubrics
	scorer    *scoring.Scorer
	generator generator // nil: nothing is ever replaced

	mu      sync.Mutex // of all below
	states  states
	journal journal
	tasks   map[string]string // task -> hash of the first rubric that a row of it has
	metrics map[string]float64
}

var (
	_ rewards.Provider = (*Provider)(nil)
	_ rewards.Checker  = (*Provider)(nil)
	_ rewards.Saver    = (*Provider)(nil)
	_ rewards.Drawer   = (*Provider)(nil)
)

// New makes a provider from settings as a configuration file has them. Unknown names and values out of range are errors
// that say what to set. Nothing is written before the first Score.
func New(run rewards.Run, settings map[string]any) (rewards.Provider, error) {
	o, err := decode(settings)
	if err != nil {
		return nil, fmt.Errorf("rare: %w", err)
	}
	p := &Provider{options: o, states: newStates(), journal: journal{Journal: criteria.Journal{Dir: run.Dir}}, tasks: map[string]string{}}
	if p.rubrics, err = newRubrics(o); err != nil {
		return nil, fmt.Errorf("rare: %w", err)
	}
	if p.scorer, err = scoring.New(run, o.Options); err != nil {
		return nil, fmt.Errorf("rare: %w", err)
	}
	if err := p.scorer.Check(nil, slices.Concat(p.rubrics.common, p.rubrics.pool)); err != nil {
		return nil, fmt.Errorf("rare: %w", err)
	}
	if p.generator, err = newGenerator(run, p); err != nil {
		return nil, fmt.Errorf("rare: %w", err)
	}
	return p, nil
}

// Score implements rewards.Provider.
func (p *Provider) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	scored, err := p.score(ctx, step, groups)
	if err != nil {
		return nil, fmt.Errorf("rare: %w", err)
	}
	return scoring.Scores(scored), nil
}

// score is the method: credits by the current rubrics, replacements for what is saturated, credits of these alone. Nothing of
// p changes before the last line.
func (p *Provider) score(ctx context.Context, step int, groups []grpo.Group) ([]scoring.Group, error) {
	visits, err := p.visits(step, groups)
	if err != nil {
		return nil, err
	}
	if err := p.credit(ctx, step, visits); err != nil {
		return nil, err
	}
	if step == rewards.HeldOut {
		return p.scored(visits, len(groups)), nil
	}
	if p.generator != nil {
		p.saturate(visits)
		if err := p.propose(ctx, step, visits); err != nil {
			return nil, err
		}
		if err := p.rescore(ctx, visits); err != nil {
			return nil, err
		}
		for _, v := range visits {
			v.replace(step)
		}
	}
	scored := p.scored(visits, len(groups))
	return scored, p.commit(step, visits, scored)
}

// credit asks for the credit of every criterion, and of the replaced ones if they are to be followed.
func (p *Provider) credit(ctx context.Context, step int, visits []*visit) error {
	return each(ctx, visits, func(ctx context.Context, v *visit, g int) (err error) {
		group := v.groups[g]
		if v.verdicts[g], err = p.scorer.Credits(ctx, group.Prompt, group.Completions, v.set.List()); err != nil {
			return err
		}
		if old := v.start.retired(); p.options.Retention && step != rewards.HeldOut && len(old) > 0 {
			v.retired[g], err = p.scorer.Credits(ctx, group.Prompt, group.Completions, old)
		}
		return err
	})
}

// propose asks the generator about every visit with criteria to replace. One that gives no answer keeps them.
func (p *Provider) propose(ctx context.Context, step int, visits []*visit) error {
	work, ctx := errgroup.WithContext(ctx)
	for _, v := range visits {
		if len(v.asked) == 0 {
			continue
		}
		work.Go(func() error {
			err := p.generator.propose(ctx, step, v)
			if errors.Is(err, rewards.ErrNoAnswer) {
				v.silence = "the generator gave no usable answer"
				return nil
			}
			return place(err, v.groups[0].Prompt.ID)
		})
	}
	return work.Wait()
}

// rescore has the judge score the replacements, and nothing else, on the completions that the old criteria were scored on.
func (p *Provider) rescore(ctx context.Context, visits []*visit) error {
	var open []*visit
	for _, v := range visits {
		if len(v.proposals) > 0 && v.tried == nil {
			v.tried = make([][]scoring.Verdict, len(v.groups))
			open = append(open, v)
		}
	}
	return each(ctx, open, func(ctx context.Context, v *visit, g int) (err error) {
		v.tried[g], err = p.scorer.Credits(ctx, v.groups[g].Prompt, v.groups[g].Completions, v.proposed())
		return err
	})
}

// scored are the scores of the n groups of the visits, by the rubrics as they are after them.
func (p *Provider) scored(visits []*visit, n int) []scoring.Group {
	out := make([]scoring.Group, n)
	for _, v := range visits {
		for g, at := range v.at {
			out[at].Set = v.next
			for _, verdict := range v.final[g] {
				out[at].Scores = append(out[at].Scores, p.scorer.Score(v.next, verdict))
			}
		}
	}
	return out
}

// Close closes the run's rubric log.
func (p *Provider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.journal.Close()
}

// each calls f for every group of every visit, all at the same time; the judge and the checks bound the work themselves.
func each(ctx context.Context, visits []*visit, f func(ctx context.Context, v *visit, g int) error) error {
	work, ctx := errgroup.WithContext(ctx)
	for _, v := range visits {
		for g := range v.groups {
			work.Go(func() error {
				err := ctx.Err()
				if err == nil {
					err = f(ctx, v, g)
				}
				return place(err, v.groups[g].Prompt.ID)
			})
		}
	}
	return work.Wait()
}

// place says at which prompt an error occurred, if it does not say so itself.
func place(err error, prompt string) error {
	var at *rewards.Error
	if err == nil || errors.As(err, &at) {
		return err
	}
	return &rewards.Error{Prompt: prompt, Completion: -1, Err: err}
}
