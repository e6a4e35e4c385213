package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy"
)

// accumulate adds the gradient of this rank's share of one micro-batch. accum is the number of micro-batches in this optimiser
// step.
func (t *Trainer) accumulate(ctx context.Context, micro []grpo.Row, accum int) error {
	t.Console.Tick(t.state.Step+1, "learning")
	all := byPrompt(micro)
	if len(all) == 0 {
		return nil // everything is masked: loss and gradient are 0
	}
	if t.fresh() {
		t.state.Window.Add(map[string]float64{"sampling/sampling_logp_difference/mean": 0, "sampling/sampling_logp_difference/max": 0})
	}
	rows := t.share(all)
	t.parts = append(t.parts, nil)
	if len(rows) == 0 { // fewer groups than ranks
		_, err := t.whole(ctx, all, nil)
		return err
	}
	defer t.clock("timing_s/update_actor", t.Now())
	return t.pull(ctx, rows, all, accum)
}

// pull adds the gradient of rows, which are this rank's of all: they are packed as a forest, the model gives their
// log-probabilities, the objective its loss and gradient in these, and the model pulls that back.
func (t *Trainer) pull(ctx context.Context, rows, all []grpo.Row, accum int) error {
	forest := pack(rows)
	t.tokens += forest.Tokens()
	pass, err := t.Model.Forward(forest, policy.ForwardOptions{
		Adapter: t.Adapter, Temperature: float32(t.Config.Rollout.Temperature), Entropy: true,
		Grad: true, Train: true, KeepAll: !t.Config.Model.GradientCheckpointing,
		Step: uint64(t.state.Step), Seed: uint64(t.Config.Seed),
	})
	if err != nil {
		return fmt.Errorf("forward: %w", err)
	}
	in, err := t.inputs(rows, pass.Output, accum)
	if err == nil {
		in.Whole, err = t.whole(ctx, all, pass.Output.Entropy)
	}
	if err != nil {
		pass.Release()
		return err
	}
	res, err := t.objective.Eval(in)
	if errors.Is(err, grpo.ErrNonFinite) {
		pass.Release()
		fmt.Fprintln(t.Console, err)
		t.loss = math.NaN()
		return nil // update will move nothing and write the batch down
	}
	if err != nil {
		pass.Release()
		return err
	}
	if err := pass.Backward(policy.Gradients{LogP: gather(rows, res.DLogP), Entropy: gather(rows, res.DEntropy)}); err != nil {
		return fmt.Errorf("backward: %w", err)
	}
	t.loss += res.Loss
	t.entropy.Add(res)
	t.parts[len(t.parts)-1] = res.Metrics
	return nil
}

// fresh reports whether the policy is the one that sampled the generation, and the device promises the same bits.
func (t *Trainer) fresh() bool { return t.exact && t.buffer.SampledAt == t.state.Step }

// inputs is what the objective sees of a micro-batch. The first time that a generation is used, before the policy has
// moved, the trainer's log-probabilities must be the sampler's, bit for bit, on a device that promises it.
func (t *Trainer) inputs(rows []grpo.Row, out policy.Output, accum int) (grpo.Inputs, error) {
	in, err := grpo.Pack(rows, t.sampled)
	if err != nil {
		return in, err
	}
	in.LogP, in.Entropy = spread(rows, out.LogP), spread(rows, out.Entropy)
	if t.fresh() {
		if err := sameBits(rows, in.LogP); err != nil {
			return in, err
		}
	}
	in.NumItems, in.GradAccum, in.StepsPerGen = t.buffer.tokens, accum, t.batching.StepsPerGeneration
	in.EntropyCoef = t.entropy.Coef()
	return in, nil
}

// sameBits compares the trainer's log-probabilities with those noted when the tokens were drawn.
func sameBits(rows []grpo.Row, logp []float32) error {
	for _, r := range rows {
		for i, m := range scored(r) {
			if m && math.Float32bits(logp[i]) != math.Float32bits(r.Completion.LogP[i]) {
				return fmt.Errorf("prompt %q, token %d: the trainer's log-probability %v is not the sampler's %v: the engine is broken on this machine; report it with the output of rubicon version",
					r.Prompt.ID, i, logp[i], r.Completion.LogP[i])
			}
		}
		logp = logp[len(r.Completion.Tokens):]
	}
	return nil
}
