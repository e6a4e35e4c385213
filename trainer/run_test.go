package trainer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// parityReward is 1 for every second completion of a group, except in the steps that flat names, where all get 0. It notes
// which prompts it learned from.
type parityReward struct {
	flat    []int
	half    bool // only the first group of a call has signal
	learned [][]string
}

func (p *parityReward) Score(_ context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	var out []rewards.Score
	for k, g := range groups {
		for i := range g.Completions {
			s := rewards.Score{Reason: "scored"}
			if !slices.Contains(p.flat, step) && !(p.half && k > 0) && i%2 == 1 {
				s.Value = 1
			}
			out = append(out, s)
		}
	}
	return out, nil
}

func (p *parityReward) Learn(_ context.Context, _ int, groups []grpo.Group) error {
	var ids []string
	for _, g := range groups {
		ids = append(ids, g.Prompt.ID)
	}
	p.learned = append(p.learned, ids)
	return nil
}

// parts are those of a run on a golden model whose clock stands still.
func parts(t *testing.T, overrides ...string) Parts {
	t.Helper()
	cfg, _, err := configs.Load(nil, append([]string{"model.path=" + golden.Path("models", "qwen2"), "data.train_files=[x.jsonl]",
		"lora.r=2", "optim.learning_rate=0.01", "rollout.max_completion_length=4", "track.logging_steps=1"}, overrides...), nil)
	check(t, err)
	dev, err := cpu.New(cpu.Options{Threads: 1})
	check(t, err)
	t.Cleanup(func() { dev.Close() })
	m, err := policy.Load(t.Context(), dev, cfg.Model.Path, policy.LoadOptions{})
	check(t, err)
	check(t, m.AddAdapter("policy", policy.LoRAConfig{R: cfg.LoRA.R, Alpha: cfg.LoRA.Alpha, TargetModules: cfg.LoRA.TargetModules}, 1))
	tok, err := token.Load(cfg.Model.Path)
	check(t, err)
	now := func() time.Time { return time.Unix(0, 0) }
	return Parts{Config: cfg, Device: dev, Model: m, Adapter: "policy", Tokenizer: tok, Now: now, Console: &track.Console{W: io.Discard, Now: now}}
}

func prompts(n int) []grpo.Prompt {
	out := make([]grpo.Prompt, n)
	for i := range out {
		out[i] = grpo.Prompt{ID: fmt.Sprint("p", i), Text: fmt.Sprint("prompt ", i), Tokens: []int32{5, int32(10 + i)}}
	}
	return out
}

// grpoRun makes a run of eight prompts.
func grpoRun(t *testing.T, p Parts, r rewards.Provider) *Trainer {
	t.Helper()
	tr, err := New(p, Task{Prompts: prompts(8), HeldOut: prompts(2), Provider: r, Name: "parity", Reference: Reference{Model: p.Model}})
	check(t, err)
	t.Cleanup(func() { tr.Close() })
	return tr
}

// A step that takes several generations writes all of them down, with what was said of each, and lets the rewards learn
// from all of them.
func TestStepWithSeveralGenerations(t *testing.T) {
	r := &parityReward{}
	p := parts(t, "num_generations=2", "per_device_train_batch_size=2", "steps_per_generation=2", "gradient_accumulation_steps=4",
		"max_steps=2", "output_dir="+t.TempDir())
	tr := grpoRun(t, p, r)
	check(t, tr.Run(t.Context()))
	var ids []string
	for step := 1; step <= 2; step++ {
		lines, err := readCompletions(tr.dir.join("completions", fmt.Sprintf("step_%d.jsonl", step)))
		check(t, err)
		for _, l := range lines {
			ids = append(ids, l.ID)
			if l.Reason != "scored" {
				t.Errorf("step %d, prompt %s: reason %q", step, l.ID, l.Reason)
			}
		}
		if len(lines) != 8 {
			t.Errorf("step %d: %d completions are written down, 8 were sampled", step, len(lines))
		}
	}
	if len(r.learned) != 2 || len(r.learned[0]) != 4 || len(r.learned[1]) != 4 {
		t.Fatalf("learned from %v, want four prompts in each of two steps", r.learned)
	}
	seen := slices.Compact(ids)
	if got := slices.Concat(r.learned...); !slices.Equal(got, seen) {
		t.Errorf("learned from %v, sampled %v", got, seen)
	}
}

// While the policy's entropy is below the target each step raises the coefficient by entropy_coef_delta; a resumed run goes on
// from there.
func TestAdaptiveEntropyMoves(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []int{2, 3} {
		tr := grpoRun(t, parts(t, "use_adaptive_entropy=true", "entropy_target=100", "entropy_coef_delta=0.5", "entropy_coef_max=10",
			"num_generations=2", "per_device_train_batch_size=2", fmt.Sprint("max_steps=", n), "checkpoint.resume=auto", "output_dir="+dir), &parityReward{})
		check(t, tr.Run(t.Context()))
		if got := tr.entropy.Coef(); got != 0.5*float64(n) {
			t.Errorf("coefficient %v after %d steps, want %v", got, n, 0.5*float64(n))
		}
		check(t, tr.Close())
	}
}

// From the log of a recorded TRL run (testdata/run/lora_linear_dapo): 16 micro-steps an epoch, two in a step.
func TestEpochIsTransformers(t *testing.T) {
	c := &core{micro: 16, steps: 8}
	for step, want := range map[int]float64{1: 0.125, 5: 0.625, 8: 1, 9: 1.125} {
		c.state.Step, c.state.Micro = step, 2*step%16
		if got := c.epoch(); got != want {
			t.Errorf("step %d: epoch %v, want %v", step, got, want)
		}
	}
}

func TestTotalSteps(t *testing.T) {
	for _, c := range []struct {
		max    int
		epochs float64
		want   int
	}{{7, 3, 7}, {-1, 3, 15}, {-1, 0.5, 3}} {
		if got := totalSteps(configs.Optim{MaxSteps: c.max, NumTrainEpochs: c.epochs}, 5); got != c.want {
			t.Errorf("max_steps %d, %v epochs of 5: %d steps, want %d", c.max, c.epochs, got, c.want)
		}
	}
}
