package trainer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/dist"
	"github.com/rubicon-rl/rubicon/internal/dist/disttest"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// lengthReward differs from completion to completion: it is the sum of the ids, modulo 7. It notes who asks it.
type lengthReward struct {
	parityReward
	fails error
}

func (l *lengthReward) Score(_ context.Context, _ int, groups []grpo.Group) ([]rewards.Score, error) {
	var out []rewards.Score
	for i, g := range groups {
		for _, c := range g.Completions {
			sum := int32(0)
			for _, id := range c.Tokens {
				sum += id
			}
			out = append(out, rewards.Score{Value: float64(sum % 7), Reason: "scored"})
			if l.half && i > 0 {
				out[len(out)-1].Value = 1
			}
		}
	}
	return out, l.fails
}

// ranks makes a GRPO run of world goroutines, and returns rank 0's trainer and what every rank says.
func ranks(t *testing.T, world int, r rewards.Provider, overrides ...string) (*Trainer, []error) {
	t.Helper()
	all := make([]Parts, world)
	for rank := range all {
		all[rank] = parts(t, overrides...)
	}
	var lead *Trainer
	errs := disttest.Each(world, func(g *dist.Group) error {
		p := all[g.Rank()]
		p.Group = g
		task := Task{Prompts: prompts(8), HeldOut: prompts(3), Name: "length", Reference: Reference{Model: p.Model}}
		if g.Rank() == 0 {
			task.Provider = r
		}
		tr, err := New(p, task)
		if err != nil {
			return err
		}
		defer tr.Close()
		if g.Rank() == 0 {
			lead = tr
		}
		return tr.Run(t.Context())
	})
	return lead, errs
}

// closeWeights bounds how far weights of around 0.1 come apart in a few steps of 0.01, because sums are made in another order.
const closeWeights = 1e-4

// compareWorlds makes a run with one process and with others, which have to sample the same, and to have the same losses,
// metrics and weights but for the order of sums.
func compareWorlds(t *testing.T, c worldCase, overrides ...string) {
	t.Helper()
	run := func(world int) (string, *Trainer) {
		dir := t.TempDir()
		reward := &lengthReward{parityReward: parityReward{half: c.half}}
		options := slices.Concat(overrides, c.overrides, []string{fmt.Sprint("per_device_train_batch_size=", c.rows/world), "output_dir=" + dir})
		tr, errs := ranks(t, world, reward, options...)
		check(t, errors.Join(errs...))
		if len(reward.learned) == 0 {
			t.Errorf("%d ranks: the reward learned nothing", world)
		}
		return dir, tr
	}
	dir1, one := run(1)
	want, err := one.params.Download(one.Device)
	check(t, err)
	for _, world := range c.worlds {
		dir, tr := run(world)
		got, err := tr.params.Download(tr.Device)
		check(t, err)
		difference, moved := 0.0, 0.0
		for i := range want {
			difference = max(difference, math.Abs(float64(got[i]-want[i])))
			moved = max(moved, math.Abs(float64(want[i])))
		}
		if difference > closeWeights || moved < 1e-3 {
			t.Errorf("%d ranks: weights differ by up to %.2g, and are up to %.2g", world, difference, moved)
		}
		sameSamples(t, world, dir1, dir)
		sameMetrics(t, world, dir1, dir)
	}
}

// sameSamples compares what was sampled. Rewards may have a KL in them, which is made of weights.
func sameSamples(t *testing.T, world int, dir1, dir string) {
	t.Helper()
	for _, folder := range []string{"completions", "eval"} {
		files, err := filepath.Glob(filepath.Join(dir1, folder, "*.jsonl"))
		check(t, err)
		if len(files) == 0 {
			t.Fatalf("there are no %s", folder)
		}
		for _, f := range files {
			want, err1 := readCompletions(f)
			got, err2 := readCompletions(filepath.Join(dir, folder, filepath.Base(f)))
			check(t, errors.Join(err1, err2))
			same := func(a, b completionLine) bool {
				return a.ID == b.ID && a.Completion == b.Completion && a.Reason == b.Reason
			}
			if !slices.EqualFunc(got, want, same) {
				t.Errorf("%d ranks: %s of %s is not that of one", world, filepath.Base(f), folder)
			}
		}
	}
}

func sameMetrics(t *testing.T, world int, dir1, dir string) {
	t.Helper()
	one, err1 := track.ReadJSONL(filepath.Join(dir1, "metrics.jsonl"))
	many, err2 := track.ReadJSONL(filepath.Join(dir, "metrics.jsonl"))
	check(t, errors.Join(err1, err2))
	if len(one) != len(many) {
		t.Fatalf("%d ranks: %d lines of metrics, one has %d", world, len(many), len(one))
	}
	for i, r := range one {
		for _, name := range slices.Sorted(maps.Keys(r.Values)) {
			got, want := many[i].Values[name], r.Values[name]
			if strings.HasPrefix(name, "timing") || strings.HasPrefix(name, "perf/") || math.IsNaN(want) && math.IsNaN(got) {
				continue
			}
			if !(math.Abs(got-want) <= 1e-4*max(1e-2, math.Abs(want))) {
				t.Errorf("%d ranks, step %d: %s = %v, one has %v", world, r.Step, name, got, want)
			}
		}
	}
}

// worldCase is a run that is made with several numbers of ranks.
type worldCase struct {
	worlds    []int
	rows      int  // of a micro-step, over all ranks
	half      bool // only the first group of a generation has signal
	overrides []string
}

// The same run with one to four ranks: groups are even, or so few are left that some ranks have nothing, or rows and not
// groups are cut; with each way to reduce a loss, an entropy threshold and bonus, a reference, several generations in a step
// and a generation for several steps.
func TestRanksMakeTheRunOfOne(t *testing.T) {
	common := []string{"max_steps=3", "eval.files=[x.jsonl]", "eval.temperature=1", "eval.eval_steps=2", "rollout.max_completion_length=8",
		"rollout.stop=[a,e,t]"} // completions of one to eight tokens
	for name, c := range map[string]worldCase{
		"dapo": {[]int{2, 4}, 8, false, []string{"num_generations=2"}},
		"bnpo, three, masks": {[]int{3}, 12, false, []string{"num_generations=4", "loss_type=bnpo", "mask_truncated_completions=true",
			"rollout.max_completion_length=3"}},
		"grpo, KL": {[]int{2}, 4, false, []string{"num_generations=2", "loss_type=grpo", "beta=0.1", "steps_per_generation=2", "num_iterations=2",
			"gradient_accumulation_steps=2"}},
		"a group is cut, KL in the reward": {[]int{2}, 4, false, []string{"num_generations=4", "loss_type=dr_grpo", "beta=0.1", "grpo.kl_in_reward=true",
			"gradient_accumulation_steps=2", "steps_per_generation=1"}},
		"entropy": {[]int{2, 4}, 8, false, []string{"num_generations=2", "loss_type=bnpo", "top_entropy_quantile=0.5", "use_adaptive_entropy=true",
			"entropy_coef=0.1", "entropy_target=100"}},
		"batch advantage, dropout": {[]int{2}, 8, false, []string{"num_generations=2", "scale_rewards=batch", "lora.dropout=0.2", "num_iterations=2"}},
		"idle ranks":               {[]int{4}, 8, true, []string{"num_generations=2", "grpo.dynamic_sampling=true", "grpo.max_num_gen_batches=1", "entropy_coef=0.01"}},
	} {
		t.Run(name, func(t *testing.T) { compareWorlds(t, c, common...) })
	}
}

// Three groups on two and four ranks, of which one then has none.
func TestShareKeepsGroupsWhole(t *testing.T) {
	var rows []grpo.Row
	for _, p := range prompts(3) {
		for range 4 {
			rows = append(rows, grpo.Row{Prompt: &p})
		}
	}
	for world, want := range map[int]string{1: "[12]", 2: "[4 8]", 3: "[4 4 4]", 4: "[4 0 4 4]"} {
		sizes := make([]int, world)
		errs := disttest.Each(world, func(g *dist.Group) error {
			tr := &Trainer{core: &core{Parts: Parts{Group: g}}, batching: grpo.Batching{PerDevice: 8, Generations: 4}}
			sizes[g.Rank()] = len(tr.share(rows))
			return nil
		})
		check(t, errors.Join(errs...))
		if got := fmt.Sprint(sizes); got != want {
			t.Errorf("%d ranks have %s rows, want %s", world, got, want)
		}
	}
}

func TestSFTOnRanks(t *testing.T) {
	var examples []Example
	for i := range int32(7) { // the last micro-batch of an epoch has one row, for three ranks
		examples = append(examples, example(1, 5, 10+i, 20+i, 30, 40+2*i))
	}
	run := func(world int) ([]float32, string) {
		dir := t.TempDir()
		all := make([]Parts, world)
		for rank := range all {
			all[rank] = parts(t, "optim.max_steps=4", fmt.Sprint("per_device_train_batch_size=", 6/world), "output_dir="+dir)
		}
		var weights []float32
		errs := disttest.Each(world, func(g *dist.Group) error {
			p := all[g.Rank()]
			p.Group = g
			s, err := NewSFT(p, examples, examples[:4])
			if err != nil {
				return err
			}
			defer s.Close()
			if err := s.Run(t.Context()); err != nil || g.Rank() > 0 {
				return err
			}
			weights, err = s.params.Download(s.Device)
			return err
		})
		check(t, errors.Join(errs...))
		return weights, dir
	}
	want, dir1 := run(1)
	for _, world := range []int{2, 3} {
		got, dir := run(world)
		for i := range want {
			if d := math.Abs(float64(got[i] - want[i])); d > closeWeights {
				t.Fatalf("%d ranks: weight %d differs by %.2g", world, i, d)
			}
		}
		sameMetrics(t, world, dir1, dir)
	}
}

// A run that four ranks have begun goes on with one, and with three, as with four.
func TestCheckpointDoesNotDependOnTheRanks(t *testing.T) {
	options := func(world, steps int, dir string) []string {
		return []string{"num_generations=2", fmt.Sprint("per_device_train_batch_size=", 12/world), "steps_per_generation=1", "num_iterations=2",
			fmt.Sprint("max_steps=", steps), "lr_scheduler_type=constant", "eval.files=[x.jsonl]", "checkpoint.resume=auto", "output_dir=" + dir}
	}
	finish := func(begun, ended int) ([]float32, string) {
		dir := t.TempDir()
		_, errs := ranks(t, begun, &lengthReward{}, options(begun, 1, dir)...) // in the middle of a generation
		check(t, errors.Join(errs...))
		tr, errs := ranks(t, ended, &lengthReward{}, options(ended, 4, dir)...)
		check(t, errors.Join(errs...))
		w, err := tr.params.Download(tr.Device)
		check(t, err)
		return w, dir
	}
	want, dir4 := finish(4, 4)
	for _, ended := range []int{1, 3} {
		got, dir := finish(4, ended)
		for i := range want {
			if d := math.Abs(float64(got[i] - want[i])); d > closeWeights {
				t.Fatalf("%d ranks: weight %d differs by %.2g", ended, i, d)
			}
		}
		sameSamples(t, ended, dir4, dir)
	}
	_, errs := ranks(t, 2, &lengthReward{}, append(options(2, 5, dir4), "per_device_train_batch_size=8", "gradient_accumulation_steps=1")...)
	check(t, errors.Join(errs...)) // between generations the batch may be another one
}

// What fails at one rank fails at all, for the same reason; a reward that cannot score pauses all, and they go on.
func TestRanksFailTogether(t *testing.T) {
	dir := t.TempDir()
	options := []string{"num_generations=2", "per_device_train_batch_size=4", "max_steps=2", "checkpoint.resume=auto", "output_dir=" + dir}
	_, errs := ranks(t, 2, &lengthReward{fails: errors.New("the judge is gone")}, options...)
	for r, err := range errs {
		if !errors.Is(err, ErrPaused) || !strings.Contains(err.Error(), "the judge is gone") {
			t.Errorf("rank %d: %v, want a pause and its reason", r, err)
		}
	}
	tr, errs := ranks(t, 2, &lengthReward{}, options...)
	check(t, errors.Join(errs...))
	if tr.state.Step != 2 {
		t.Errorf("the resumed run ended at step %d", tr.state.Step)
	}
}

// The roll call names the rank that differs, and in what.
func TestRollCall(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Parts)
		want   string
	}{
		"configuration": {func(p *Parts) { p.Config.Optim.LearningRate = 0.5 }, "rank 2: its configuration"},
		"weights": {func(p *Parts) {
			w, _ := p.Model.Params("policy")
			p.Device.Upload(w.W, 0, []float32{7})
		}, "rank 2: its weights"},
	} {
		all := make([]Parts, 3)
		dir := t.TempDir()
		for r := range all {
			all[r] = parts(t, "num_generations=2", "per_device_train_batch_size=4", "max_steps=1", "output_dir="+dir)
		}
		c.change(&all[2])
		errs := disttest.Each(3, func(g *dist.Group) error {
			p := all[g.Rank()]
			p.Group = g
			tr, err := New(p, Task{Prompts: prompts(8), Provider: &lengthReward{}, Name: "length"})
			if err != nil {
				return err
			}
			defer tr.Close()
			return tr.Run(t.Context())
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: rank %d says %v, want %q", name, r, err, c.want)
			}
		}
	}
}

// A request to stop at any rank stops all after the same step, with a checkpoint.
func TestAnyRankStopsAll(t *testing.T) {
	var once sync.Once
	stop := make(chan struct{})
	dir := t.TempDir()
	all := []Parts{}
	for range 2 {
		all = append(all, parts(t, "num_generations=2", "per_device_train_batch_size=4", "max_steps=9", "output_dir="+dir))
	}
	errs := disttest.Each(2, func(g *dist.Group) error {
		p := all[g.Rank()]
		p.Group = g
		if g.Rank() == 1 {
			p.Stop = stop
			once.Do(func() { close(stop) })
		}
		tr, err := New(p, Task{Prompts: prompts(8), Provider: &lengthReward{}, Name: "length"})
		if err != nil {
			return err
		}
		defer tr.Close()
		return tr.Run(t.Context())
	})
	for r, err := range errs {
		if !errors.Is(err, ErrInterrupted) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if steps, err := stepFolders(filepath.Join(dir, "checkpoints")); err != nil || !slices.Equal(steps, []int{1}) {
		t.Errorf("checkpoints %v, want that of step 1: %v", steps, err)
	}
}
