package trainer

import (
	"context"
	"fmt"
	"maps"
	"os"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// Evaluate samples the held-out prompts with the settings of section eval, has the completions scored, and returns the
// metrics under eval_ names. The random numbers are the same at every step, so that two evaluations differ by the policy
// alone. The completions go to the file out.
func (r *Rollouts) Evaluate(ctx context.Context, heldOut []grpo.Prompt, out string) (map[string]float64, error) {
	prompts := make([]*grpo.Prompt, len(heldOut))
	for i := range heldOut {
		prompts[i] = &heldOut[i]
	}
	cfg := r.Config.Eval
	groups, err := r.Sample(ctx, prompts, cfg.NumGenerationsEval, evalSampling(r.Config), streamEval)
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	scored, err := r.ScoreForAll(ctx, groups, func() (Scored, error) { return r.Score(ctx, rewards.HeldOut, groups) })
	if err != nil {
		return nil, fmt.Errorf("reward: %w", err)
	}
	m, err := grpo.Advantages(r.Config.GRPO, scored.Columns, groups)
	if err != nil {
		return nil, err
	}
	m.Merge(grpo.LengthMetrics(groups))
	values := map[string]float64{"eval_rewards/unscorable_frac": scored.Unscorable}
	for _, metrics := range []map[string]float64{m.Values(), scored.Criteria, episodeMetrics(groups)} {
		for name, v := range metrics {
			values["eval_"+name] = v
		}
	}
	if r.Group.Rank() > 0 {
		return values, nil
	}
	return values, writeCompletions(out, table{scored.Columns, groups}, scored.Details, os.O_TRUNC)
}

// evalSampling is section eval's sampling, with the rollout's where it says so.
func evalSampling(c *configs.Config) configs.Sampling {
	s := c.Eval.Sampling
	if s.MaxCompletionLength == 0 {
		s.MaxCompletionLength = c.Rollout.MaxCompletionLength
	}
	if len(s.Stop) == 0 {
		s.Stop = c.Rollout.Stop
	}
	return s
}

// Evaluate measures the held-out prompts and the benchmarks; nil if there are none.
func (t *Trainer) Evaluate(ctx context.Context, step int) (map[string]float64, error) {
	var values map[string]float64
	if len(t.HeldOut) > 0 {
		var err error
		if values, err = t.rollouts.Evaluate(ctx, t.HeldOut, t.evalFile(step)); err != nil {
			return nil, err
		}
	}
	if len(t.Config.Eval.Benchmarks) == 0 {
		return values, nil
	}
	measured, err := lead(ctx, t.Group, "benchmarks", func() (map[string]float64, error) {
		return t.rollouts.Measure(ctx, t.benchmarks, &Answers{&t.rollouts, t.conversation}, t.dir.join("eval", "training"), step)
	})
	if values == nil {
		values = map[string]float64{}
	}
	maps.Copy(values, measured)
	return values, err
}
