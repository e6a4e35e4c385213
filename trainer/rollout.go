package trainer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/dist"
	"github.com/rubicon-rl/rubicon/policy"
)

// Random streams of a run, beside the sampling of training completions.
const (
	streamSample = iota
	streamEval
	streamSplit
	streamBenchmark
)

// refill makes a new generation batch: groups are sampled and scored, with dynamic sampling until enough of them have
// signal, get their advantages, and are cut into micro-batches.
func (t *Trainer) refill(ctx context.Context) error {
	var all []grpo.Group
	var kept []int // groups of all that are trained on
	var columns []grpo.Column
	t.details = map[*grpo.Completion]Detail{}
	for draws := 1; ; draws++ {
		groups, err := t.sample(ctx)
		if err != nil {
			return fmt.Errorf("rollout: %w", err)
		}
		if columns, err = t.score(ctx, groups); err != nil {
			return fmt.Errorf("reward: %w", err)
		}
		signal, err := grpo.HasSignal(columns, groups)
		if err != nil {
			return err
		}
		for i, g := range groups {
			if signal[i] || !t.Config.GRPO.DynamicSampling {
				kept = append(kept, len(all))
			}
			all = append(all, g)
		}
		if !grpo.DrawAgain(t.Config.GRPO, len(kept), t.batching.Prompts, draws) {
			break
		}
	}
	if err := t.note(columns, all); err != nil {
		return err
	}
	t.buffer = buffer{Groups: all, Kept: kept[:min(len(kept), t.batching.Prompts)], Serves: t.batching.MicroSteps(), SampledAt: t.state.Step}
	if _, err := grpo.Advantages(t.Config.GRPO, columns, t.buffer.kept()); err != nil {
		return err
	}
	if err := grpo.SetTurnAdvantages(t.Config.GRPO, t.buffer.kept()); err != nil {
		return fmt.Errorf("reward: %w", err)
	}
	return t.cut(ctx)
}

// sample draws num_generations completions for the next prompts of the data.
func (t *Trainer) sample(ctx context.Context) ([]grpo.Group, error) {
	t.Console.Tick(t.state.Step+1, "sampling")
	defer t.clock("timing_s/gen", t.Now())
	prompts := make([]*grpo.Prompt, 0, t.batching.Prompts)
	for _, i := range t.state.Cursor.Next(t.batching.Prompts) {
		prompts = append(prompts, &t.Prompts[i])
	}
	t.state.Draws++
	groups, err := t.rollouts.Sample(ctx, prompts, t.batching.Generations, t.Config.Rollout.Sampling, streamSample, t.state.Draws)
	for _, g := range groups {
		for _, c := range g.Completions {
			t.state.NumTokens += int64(len(g.Prompt.Tokens) + len(c.Tokens))
		}
	}
	return groups, err
}

// cut shuffles the rows of the generation batch and cuts them into micro-batches. Whole groups stay together where the
// micro-batch holds whole groups: their prompt is then computed once.
func (t *Trainer) cut(ctx context.Context) error {
	rows := grpo.Rows(t.Config.GRPO, t.buffer.kept())
	unit := 1
	if g := t.batching.Generations; t.batching.PerDevice%g == 0 {
		unit = g
	}
	key := device.NewKey(uint64(t.Config.Seed), streamSplit, t.state.Draws)
	random := rand.New(rand.NewPCG(uint64(key[0]), uint64(key[1])))
	perm := make([]int, 0, len(rows))
	for _, u := range random.Perm(len(rows) / unit) {
		for i := range unit {
			perm = append(perm, u*unit+i)
		}
	}
	t.buffer.Perm = perm
	if err := t.layOut(&t.buffer); err != nil || !t.batching.NeedsOld() {
		return err
	}
	return t.noteOld(ctx)
}

// noteOld sets the log-probabilities of the policy as it is now: the sampler's own where the two give the same bits.
func (t *Trainer) noteOld(ctx context.Context) error {
	rows := slices.Concat(t.buffer.micro...)
	if t.exact {
		for _, r := range rows {
			r.Completion.Old = r.Completion.LogP
		}
		return nil
	}
	logps, err := t.logps(ctx, rows, Reference{t.Model, t.Adapter})
	if err != nil {
		return err
	}
	for i, r := range rows {
		r.Completion.Old = logps[i]
	}
	return nil
}

// logps gives each row's log-probabilities, 0 at tokens that are not trained on, under a policy that is not trained. Each rank
// computes a part, per_device_train_batch_size rows at a time.
func (t *Trainer) logps(ctx context.Context, rows []grpo.Row, under Reference) ([][]float32, error) {
	from, to := t.Group.Share(len(rows))
	var mine [][]float32
	for batch := range slices.Chunk(rows[from:to], t.batching.PerDevice) {
		logps, err := t.forward(batch, under)
		if err != nil {
			return nil, err
		}
		mine = append(mine, logps...)
	}
	all, err := dist.Gather(ctx, t.Group, "log-probabilities", mine)
	return slices.Concat(all...), err
}

// forward is logps in one pass of this rank.
func (t *Trainer) forward(rows []grpo.Row, under Reference) ([][]float32, error) {
	out := make([][]float32, len(rows))
	at := make(map[*grpo.Completion]int, len(rows))
	for i, r := range rows {
		out[i] = make([]float32, len(r.Completion.Tokens))
		at[r.Completion] = i
	}
	rows = byPrompt(rows)
	if len(rows) == 0 {
		return out, nil
	}
	pass, err := under.Model.Forward(pack(rows), policy.ForwardOptions{
		Adapter: under.Adapter, Temperature: float32(t.Config.Rollout.Temperature),
	})
	if err != nil {
		return nil, err
	}
	defer pass.Release()
	logp := spread(rows, pass.Output.LogP)
	for _, r := range rows {
		n := len(r.Completion.Tokens)
		out[at[r.Completion]] = logp[:n:n]
		logp = logp[n:]
	}
	return out, nil
}

// note keeps the metrics of all sampled groups and writes their completions down.
func (t *Trainer) note(columns []grpo.Column, groups []grpo.Group) error {
	m, err := grpo.Advantages(t.Config.GRPO, columns, groups)
	if err != nil {
		return err
	}
	t.state.Window.Add(m.Values())
	t.state.Window.Add(grpo.LengthMetrics(groups).Values())
	t.state.Window.Add(episodeMetrics(groups))
	t.shown = table{columns, groups}
	if !t.leads() {
		return nil
	}
	mode := os.O_TRUNC
	if t.noted == t.state.Step+1 { // a further generation of the step
		mode = os.O_APPEND
	}
	t.noted = t.state.Step + 1
	return writeCompletions(t.dir.join("completions", fmt.Sprintf("step_%d.jsonl", t.noted)), t.shown, t.details, mode)
}
