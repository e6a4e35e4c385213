package trainer

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// recordedRun is run.json: what TRL 1.16 did in a run of five optimiser steps.
type recordedRun struct {
	Model string `json:"model"`
	LoRA  *struct {
		R       int      `json:"r"`
		Alpha   float64  `json:"lora_alpha"`
		Targets []string `json:"target_modules"`
	} `json:"lora"`
	Config map[string]any `json:"config"`
	Micro  []struct {
		Step int     `json:"global_step"`
		Loss float64 `json:"loss"`
	} `json:"micro_batches"`
	Log []map[string]float64 `json:"log_history"`
}

// TestReplaysTRL feeds the micro-batches that TRL recorded through the trainer and expects its losses, gradient norms,
// learning rates, metrics, and weights after every optimiser step.
func TestReplaysTRL(t *testing.T) {
	for _, name := range []string{"lora_linear_dapo", "full_cispo"} {
		t.Run(name, func(t *testing.T) { replay(t, filepath.Join("testdata", "run", name)) })
	}
}

func replay(t *testing.T, dir string) {
	var run recordedRun
	b, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &run); err != nil {
		t.Fatal(err)
	}
	tensors := golden.Tensors(t, filepath.Join(dir, "tensors.safetensors"))
	tr := replayTrainer(t, &run, tensors)
	micro := 0
	for step := range 5 {
		for range tr.batching.GradAccum {
			before := tr.loss
			rows, items := recordedRows(tensors, fmt.Sprintf("micro%d.", micro))
			tr.buffer.tokens = items
			if err := tr.accumulate(t.Context(), rows, tr.batching.GradAccum); err != nil {
				t.Fatal(err)
			}
			if got, want := tr.loss-before, run.Micro[micro].Loss; math.Abs(got-want) > 1e-5*max(1, math.Abs(want)) {
				t.Errorf("micro-batch %d: loss %v, want %v", micro, got, want)
			}
			micro++
		}
		if err := tr.update(t.Context()); err != nil {
			t.Fatal(err)
		}
		compareLog(t, tr, run.Log[step])
		compareWeights(t, tr, tensors, step+1)
	}
}

// replayTrainer is a trainer with the recorded run's settings and initial weights.
func replayTrainer(t *testing.T, run *recordedRun, tensors map[string]golden.Tensor) *Trainer {
	var overrides []string
	for k, v := range run.Config {
		if text, err := json.Marshal(v); v == nil || err != nil {
			continue
		} else if k != "optim" && k != "generation_batch_size" { // it follows from steps_per_generation
			overrides = append(overrides, k+"="+strings.Trim(string(text), `"`))
		}
	}
	slices.Sort(overrides)
	tr := testTrainer(t, run.Model, run.LoRA != nil, overrides, func(m *policy.Model) error {
		return m.AddAdapter("policy", policy.LoRAConfig{R: run.LoRA.R, Alpha: run.LoRA.Alpha, TargetModules: run.LoRA.Targets}, 0)
	})
	if err := tr.params.Upload(tr.Device, flatten(t, tr.params, tensors, "step0.")); err != nil {
		t.Fatal(err)
	}
	if err := tr.Model.Refresh(); err != nil {
		t.Fatal(err)
	}
	return tr
}

// testTrainer is a trainer of five steps on a golden model, without folder and data: update and accumulate work.
func testTrainer(t *testing.T, model string, lora bool, overrides []string, adapt func(*policy.Model) error) *Trainer {
	overrides = append(overrides, "model.path="+golden.Path(model), "data.train_files=[x.jsonl]")
	set := "policy"
	if !lora {
		set, overrides = "", append(overrides, "model.trainable=full")
	}
	cfg, _, err := configs.Load(nil, overrides, nil)
	check(t, err)
	dev, err := cpu.New(cpu.Options{Threads: 2})
	check(t, err)
	t.Cleanup(func() { dev.Close() })
	m, err := policy.Load(t.Context(), dev, cfg.Model.Path, policy.LoadOptions{Train: cfg.Model.Trainable})
	check(t, err)
	if lora {
		check(t, adapt(m))
	}
	params, err := m.Params(set)
	check(t, err)
	optim, err := policy.NewAdamW(dev, params)
	check(t, err)
	batching, err := cfg.Batching(1)
	check(t, err)
	objective, err := grpo.NewObjective(cfg.GRPO)
	check(t, err)
	schedule, err := NewSchedule(cfg.Optim, 5)
	check(t, err)
	parts := Parts{Config: cfg, Device: dev, Model: m, Adapter: set, Now: time.Now, Console: &track.Console{W: io.Discard, Now: time.Now}}
	c := &core{Parts: parts, params: params, optim: optim, schedule: schedule, total: 5, state: State{Latest: map[string]float64{}}, timing: map[string]float64{}}
	return &Trainer{core: c, objective: objective, batching: batching, exact: true, entropy: grpo.NewEntropyControl(cfg.GRPO),
		Reference: Reference{Model: m}, buffer: buffer{SampledAt: -1}}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// flatten lays the tensors prefix+name out as params are.
func flatten(t *testing.T, p *policy.Params, tensors map[string]golden.Tensor, prefix string) []float32 {
	v := make([]float32, p.Len)
	for i, name := range p.Names {
		x, ok := tensors[prefix+strings.TrimPrefix(name, "base_model.model.")]
		if !ok {
			t.Fatalf("no tensor %s%s", prefix, name)
		}
		copy(v[p.Offsets[i]:], x.Float)
	}
	return v
}

// recordedRows are the rows of a micro-batch, padding removed, and num_items_in_batch.
func recordedRows(tensors map[string]golden.Tensor, prefix string) (rows []grpo.Row, items float64) {
	get := func(name string) golden.Tensor { return tensors[prefix+name] }
	prompts, completions := get("prompt_ids"), get("completion_ids")
	pmask, cmask, old := get("prompt_mask"), get("completion_mask"), get("old_per_token_logps")
	P, C := prompts.Shape[1], completions.Shape[1]
	for i, a := range get("advantages").Float {
		c := &grpo.Completion{Advantage: float64(a)}
		for j := i * C; j < (i+1)*C && cmask.Int[j] == 1; j++ {
			c.Tokens = append(c.Tokens, int32(completions.Int[j]))
			c.Old = append(c.Old, old.Float[j])
		}
		p := &grpo.Prompt{}
		for j := i * P; j < (i+1)*P; j++ {
			if pmask.Int[j] == 1 {
				p.Tokens = append(p.Tokens, int32(prompts.Int[j]))
			}
		}
		if n := len(rows); n > 0 && slices.Equal(rows[n-1].Prompt.Tokens, p.Tokens) {
			p = rows[n-1].Prompt
		}
		rows = append(rows, grpo.Row{Prompt: p, Completion: c})
	}
	return rows, float64(get("num_items_in_batch").Int[0])
}

func compareLog(t *testing.T, tr *Trainer, want map[string]float64) {
	t.Helper()
	got := tr.state.Window.Flush()
	got["grad_norm"], got["learning_rate"] = tr.state.Latest["grad_norm"], tr.state.Latest["learning_rate"]
	for _, name := range []string{"loss", "grad_norm", "learning_rate", "entropy", "clip_ratio/low_mean", "clip_ratio/high_mean", "clip_ratio/region_mean", "cispo_clip_ratio"} {
		w, ok := want[name]
		if !ok {
			continue
		}
		// loss: five decimals, as for the loss cases; gradient norm and entropy carry the weights' error
		if g := got[name]; !(math.Abs(g-w) <= 2e-5*max(1, math.Abs(w))) {
			t.Errorf("step %d: %s = %v, want %v", tr.state.Step, name, g, w)
		}
	}
}

func compareWeights(t *testing.T, tr *Trainer, tensors map[string]golden.Tensor, step int) {
	t.Helper()
	prefix := fmt.Sprintf("step%d.", step)
	if _, ok := tensors[prefix+strings.TrimPrefix(tr.params.Names[0], "base_model.model.")]; !ok {
		return
	}
	got, err := tr.params.Download(tr.Device)
	if err != nil {
		t.Fatal(err)
	}
	worst := golden.Close(t, prefix+"weights", got, flatten(t, tr.params, tensors, prefix), 1e-5)
	t.Logf("step %d: weights differ by at most %.2g", step, worst)
}

// TestKLToReferenceMatchesPEFT computes TRL's dapo loss with beta 0.04 for an adapter that PEFT wrote: the reference is the
// model without it, as the trainer itself computes it.
func TestKLToReferenceMatchesPEFT(t *testing.T) {
	tensors := golden.Tensors(t, filepath.Join("testdata", "lora", "qwen2-all-plain.safetensors"))
	tr := testTrainer(t, "models/qwen2", true, []string{"beta=0.04", "epsilon_high=0.28", "per_device_train_batch_size=8"},
		func(m *policy.Model) error {
			return m.LoadAdapter("policy", golden.Path("lora", "qwen2-all-plain", "adapter"))
		})
	rows, items := recordedRows(tensors, "")
	var groups []grpo.Group
	for _, r := range rows {
		groups = append(groups, grpo.Group{Prompt: r.Prompt, Completions: []*grpo.Completion{r.Completion}})
	}
	check(t, tr.noteReference(t.Context(), groups))
	width := tensors["completion_ids"].Shape[1]
	for i, r := range rows {
		golden.Close(t, "reference log-probabilities", r.Completion.Ref, tensors["ref_per_token_logps"].Float[i*width:][:len(r.Completion.Ref)], 2e-5)
	}
	tr.buffer.tokens = items
	check(t, tr.accumulate(t.Context(), rows, 1))
	golden.Close(t, "loss", []float32{float32(tr.loss)}, tensors["grpo.loss"].Float, 1e-5)
	grad := make([]float32, tr.params.Len)
	check(t, tr.Device.Download(grad, tr.params.Grad, 0))
	want := flatten(t, tr.params, tensors, "grpo.grad.")
	difference, norm := 0.0, 0.0
	for i := range grad {
		difference += math.Pow(float64(grad[i]-want[i]), 2)
		norm += math.Pow(float64(want[i]), 2)
	}
	if rel := math.Sqrt(difference / norm); !(rel < 1e-4) {
		t.Errorf("gradient differs by %.2g of its norm, allowed 1e-4", rel)
	}
	// From metrics_grpo beside the golden tensors.
	check(t, tr.reduce(t.Context()))
	metrics := tr.state.Window.Flush()
	for name, want := range map[string]float64{"kl": 0.24084632098674774, "entropy": 4.2250542640686035,
		"clip_ratio/high_mean": 0.0714285746216774, "clip_ratio/high_max": 0.1666666716337204, "clip_ratio/low_mean": 0} {
		if got := metrics[name]; !(math.Abs(got-want) <= 2e-5) {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
}
