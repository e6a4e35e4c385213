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
	began := t.Now()
	within, done := t.whileWanted(ctx)
	scored, err := t.rollouts.Score(within, t.state.Step, groups)
	done()
	if context.Cause(within) == ErrInterrupted && err != nil {
		err = ErrInterrupted
	}
	if err != nil {
		return nil, unscored{err}
	}
	t.clock("timing_s/reward", began)
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
		if err := t.noteReference(groups); err != nil {
			return nil, fmt.Errorf("reference policy: %w", err)
		}
	}
	return grpo.Shape(t.Config.GRPO, scored.Columns, groups)
}

// noteReference sets the log-probabilities under the reference policy, per_device_train_batch_size rows at a time.
func (t *Trainer) noteReference(groups []grpo.Group) error {
	defer t.clock("timing_s/ref", t.Now())
	cfg := t.Config.GRPO
	if cfg.KLInReward { // the reward is about every completion, also one that is not trained on
		cfg.MaskTruncatedCompletions = false
	}
	rows := grpo.Rows(cfg, groups)
	for len(rows) > 0 {
		n := min(len(rows), t.batching.PerDevice)
		err := t.logps(rows[:n], t.Reference, func(c *grpo.Completion, logp []float32) { c.Ref = logp })
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// learn lets a provider that changes between steps see the groups of the generations that the step has used up.
func (t *Trainer) learn(ctx context.Context, groups []grpo.Group) error {
	l, ok := t.rollouts.Provider.(rewards.Learner)
	if !ok || len(groups) == 0 {
		return nil
	}
	defer t.clock("timing_s/learn", t.Now())
	return t.rollouts.asking(func() error { return l.Learn(ctx, t.state.Step, groups) })
}
