package trainer

import (
	"context"
	"fmt"
	"maps"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// score asks the provider for the groups' rewards and adds those that the configuration itself gives (soft overlong
// punishment, KL to the reference); reference log-probabilities are noted on the way, where the objective needs them.
func (t *Trainer) score(ctx context.Context, groups []grpo.Group) ([]grpo.Column, error) {
	t.Console.Tick(t.state.Step+1, "scoring")
	scored, err := t.rollouts.ScoreForAll(ctx, groups, func() (Scored, error) { return t.scoreAndAudit(ctx, groups) })
	if err != nil {
		return nil, unscored{err}
	}
	maps.Copy(t.details, scored.Details)
	t.state.Window.Add(map[string]float64{"rewards/unscorable_frac": scored.Unscorable})
	t.state.Window.Add(scored.Criteria)
	if d, ok := t.rollouts.Provider.(rewards.Drawer); ok {
		t.state.Window.Add(d.Metrics())
	}
	if t.judge != nil {
		t.state.Window.Add(t.judge.Metrics())
		t.state.Window.Add(map[string]float64{"judge/unscorable_frac": scored.Unscorable})
	}
	if t.Config.GRPO.NeedsReference() {
		if err := t.noteReference(ctx, groups); err != nil {
			return nil, fmt.Errorf("reference policy: %w", err)
		}
	}
	return grpo.Shape(t.Config.GRPO, scored.Columns, groups)
}

// scoreAndAudit has rank 0 score all completions, and audit its judge when it is time.
func (t *Trainer) scoreAndAudit(ctx context.Context, groups []grpo.Group) (Scored, error) {
	began := t.Now()
	within, done := t.whileWanted(ctx)
	defer done()
	if t.audits() {
		t.auditor.Listen()
	}
	scored, err := t.rollouts.Score(within, t.state.Step, groups)
	t.clock("timing_s/reward", began)
	if err == nil && t.audits() {
		t.audit(within)
	}
	if context.Cause(within) == ErrInterrupted && err != nil {
		err = ErrInterrupted
	}
	return scored, err
}

// audits reports whether the judge is audited in this step.
func (t *Trainer) audits() bool {
	every := t.Config.Judge.Audit.Steps.Every(t.total)
	return t.auditor != nil && every > 0 && (t.state.Step+1)%every == 0
}

// audit logs how far the judge is from an independent one. That one's faults are told and stop nothing.
func (t *Trainer) audit(ctx context.Context) {
	defer t.clock("timing_s/audit", t.Now())
	var values map[string]float64
	err := t.rollouts.asking(func() (err error) {
		values, err = t.auditor.Compare(ctx)
		return err
	})
	if err != nil {
		fmt.Fprintf(t.Console, "note: the judge was not audited in step %d: %v\n", t.state.Step+1, err)
		return
	}
	t.state.Window.Add(values)
}

// noteReference sets the log-probabilities under the reference policy.
func (t *Trainer) noteReference(ctx context.Context, groups []grpo.Group) error {
	defer t.clock("timing_s/ref", t.Now())
	cfg := t.Config.GRPO
	if cfg.KLInReward { // the reward is about every completion, also one that is not trained on
		cfg.MaskTruncatedCompletions = false
	}
	rows := grpo.Rows(cfg, groups)
	logps, err := t.logps(ctx, rows, t.Reference)
	if err != nil {
		return err
	}
	for i, r := range rows {
		r.Completion.Ref = logps[i]
	}
	return nil
}

// learn lets a provider that changes between steps see the groups of the generations that the step has used up.
func (t *Trainer) learn(ctx context.Context, groups []grpo.Group) error {
	if len(groups) == 0 {
		return nil
	}
	defer t.clock("timing_s/learn", t.Now())
	_, err := lead(ctx, t.Group, "what the rewards learn", func() (bool, error) {
		l, ok := t.rollouts.Provider.(rewards.Learner)
		if !ok {
			return false, nil
		}
		return true, t.rollouts.asking(func() error { return l.Learn(ctx, t.state.Step, groups) })
	})
	return err
}
