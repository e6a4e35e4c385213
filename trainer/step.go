package trainer

import (
	"context"
	"fmt"

	"github.com/rubicon-rl/rubicon/grpo"
)

// Step is one optimiser step of GRPO, the whole story:
//
//	prompts -> sample groups -> score -> advantages   rollout.go, score.go, grpo.Advantages
//	-> pack -> log-probs -> objective -> backward     accumulate.go, pack.go, grpo.Objective
//	-> all-reduce -> finite? -> clip -> AdamW         ranks.go, core.go
//	-> let rewards learn                              score.go
//
// Checkpoint, evaluation and tracking follow in Run (run.go), between steps.
func (t *Trainer) Step(ctx context.Context) error {
	if err := t.enter(); err != nil {
		return fmt.Errorf("step %d: %w", t.state.Step+1, err)
	}
	start := t.mark()
	var rows []grpo.Row    // that the step trains on
	var spent []grpo.Group // of the generations that it uses up
	t.batch = func() any { return badRows(rows) }
	accum := t.batching.Accumulation(t.state.Micro, t.micro)
	for range accum {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("step %d: %w", t.state.Step+1, err)
		}
		if t.buffer.spent() {
			if err := t.refill(ctx); err != nil {
				t.rewind(start)
				return fmt.Errorf("step %d: %w", t.state.Step+1, err)
			}
		}
		micro := t.buffer.next()
		rows = append(rows, micro...)
		if err := t.accumulate(ctx, micro, accum); err != nil {
			return fmt.Errorf("step %d: %w", t.state.Step+1, err)
		}
		if t.buffer.spent() {
			spent = append(spent, t.buffer.Groups...)
		}
		t.state.Micro = (t.state.Micro + 1) % t.micro
	}
	move := t.update
	if len(rows) == 0 { // dynamic sampling found no group with signal
		move = t.skip
	}
	if err := move(ctx); err != nil {
		return fmt.Errorf("step %d: update: %w", t.state.Step, err)
	}
	entropy, tokens, err := t.entropyWindow(ctx)
	if err != nil {
		return fmt.Errorf("step %d: %w", t.state.Step, err)
	}
	t.entropy.Step(entropy, tokens)
	t.state.Window.Add(t.entropy.Metrics().Values())
	if err := t.learn(ctx, spent); err != nil {
		return fmt.Errorf("step %d: let the rewards learn: %w", t.state.Step, err)
	}
	return nil
}
