package amaris

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// state is what a checkpoint holds. It depends on the steps made, never on how far the background is.
type state struct {
	tick    int               // steps learnt from
	last    int               // tick of the newest update in force
	rubrics map[string]rubric // in force, by scope
	jobs    []*job            // not in force yet, the oldest first
	end     mark              // of the memory, after the last update in force
	start   *coldStart        // nil: there was none
}

// coldStart is what the first global rubric was made from.
type coldStart struct {
	Step    int      `json:"step"`
	Prompts []string `json:"prompts"`
}

func newState() state { return state{rubrics: map[string]rubric{}} }

// ahead is what the state is going to be when a step has been scored.
type ahead struct {
	rubrics map[string]rubric
	jobs    []*job     // that come into force
	cold    *job       // the cold start, if this step makes it
	start   *coldStart // likewise
}

// due waits until the updates that come into force at this step are ready.
func (p *Provider) due(ctx context.Context) (*ahead, error) {
	p.mu.Lock()
	next := &ahead{rubrics: maps.Clone(p.state.rubrics)}
	for i, j := range p.state.jobs {
		if j.Closes && j.Tick <= p.state.tick-p.options.delay() {
			next.jobs = p.state.jobs[: i+1 : i+1]
		}
	}
	p.mu.Unlock()
	p.kick()
	for _, j := range next.jobs {
		if err := p.wait(ctx, j); err != nil {
			return nil, err
		}
		for _, c := range j.result.changes {
			next.rubrics[c.scope] = c.after
		}
	}
	return next, nil
}

// begin makes the first global rubric from a step's completions, if it is to be made. A step that is scored again makes it
// again; other prompts of the same step are scored by it.
func (p *Provider) begin(ctx context.Context, next *ahead, step int, groups []grpo.Group) error {
	p.mu.Lock()
	tick, start := p.state.tick, p.state.start
	p.mu.Unlock()
	if !p.origin.cold() || len(groups) == 0 {
		return nil
	}
	if start != nil && (tick > 0 || step != start.Step || !slices.ContainsFunc(groups, start.has)) {
		return nil
	}
	base, err := p.origin.global()
	if err != nil {
		return err
	}
	j := newJob(0, step, true)
	j.Sets[criteria.Global] = base.Set
	if err := p.fill(j, groups); err != nil {
		return err
	}
	now := func(string) rubric { return base }
	if j.result, err = p.workshop.improveAll(ctx, []*job{j}, now, mark{}); err != nil {
		return fmt.Errorf("make %v: %w", j, err)
	}
	made := &j.result.changes[0]
	if len(made.record.Ops) == 0 {
		return fmt.Errorf("make %v: the judge wrote no criterion that can be used (%s): set rubric, or ask another model (judge.tiers.update)",
			j, made.record.why())
	}
	next.cold, next.start = j, &coldStart{Step: step}
	for _, g := range groups {
		next.start.Prompts = append(next.start.Prompts, g.Prompt.ID)
	}
	next.rubrics[criteria.Global] = made.after
	return nil
}

// why says in short why nothing came of an update.
func (r Record) why() string {
	switch {
	case r.Missing != "":
		return "no usable answer to " + r.Missing
	case len(r.Dropped) > 0:
		return r.Dropped[0].Why
	}
	return "it wrote none"
}

func (s *coldStart) has(g grpo.Group) bool {
	return s != nil && slices.Contains(s.Prompts, g.Prompt.ID)
}

// fill puts groups into a job.
func (p *Provider) fill(j *job, groups []grpo.Group) error {
	for _, g := range groups {
		reference, err := p.reference(g.Prompt)
		if err != nil {
			return place(err, g.Prompt.ID)
		}
		text := scoring.Conversation(g.Prompt)
		for _, c := range g.Completions {
			j.Rollouts = append(j.Rollouts, rollout{p.scopeOf(g.Prompt), g.Prompt.ID, text, c.Text, reference})
		}
	}
	return nil
}

// Learn implements rewards.Learner: the step's groups enter the pipeline. It fails only if a row cannot be read; what the
// pipeline meets is seen by the step that waits for it.
func (p *Provider) Learn(ctx context.Context, step int, groups []grpo.Group) error {
	if p.options.Frozen {
		return nil
	}
	if err := p.enter(step, groups); err != nil {
		return fmt.Errorf("amaris: %w", err)
	}
	if p.options.Execution == executionAsync {
		p.kick()
		return nil
	}
	began := time.Now()
	p.finish(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = time.Since(began)
	return nil
}

// enter makes the step's job.
func (p *Provider) enter(step int, groups []grpo.Group) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	tick := p.state.tick + 1
	if tick == 1 { // the cold start has analysed them
		groups = slices.DeleteFunc(slices.Clone(groups), p.state.start.has)
	}
	j := newJob(tick, step, tick%p.options.UpdateInterval == 0)
	if err := p.fill(j, groups); err != nil {
		return err
	}
	for _, g := range groups {
		scope := p.scopeOf(g.Prompt)
		r, there := p.state.rubrics[scope]
		if !there {
			var err error
			if r, err = p.firstOf(g.Prompt); err != nil {
				return place(err, g.Prompt.ID)
			}
		}
		j.Sets[scope] = r.Set
	}
	p.state.tick = tick
	open := len(p.state.jobs) > 0 && !p.state.jobs[len(p.state.jobs)-1].Closes
	if len(j.Rollouts) > 0 || j.Closes && open {
		p.state.jobs = append(p.state.jobs, j)
	}
	return nil
}
