package trainer

import (
	"encoding/json"
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
			rows, items := recordedRows(tensors, micro)
			tr.buffer.tokens = items
			if err := tr.accumulate(rows, tr.batching.GradAccum); err != nil {
				t.Fatal(err)
			}
			if got, want := tr.loss-before, run.Micro[micro].Loss; math.Abs(got-want) > 1e-5*max(1, math.Abs(want)) {
				t.Errorf("micro-batch %d: loss %v, want %v", micro, got, want)
			}
			micro++
		}
		if err := tr.update(); err != nil {
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
	if run.LoRA == nil {
		overrides = append(overrides, "model.trainable=full")
	}
	slices.Sort(overrides)
	cfg, _, err := configs.Load(nil, append(overrides, "model.path="+golden.Path(run.Model), "reward.kind=verify", "data.train_files=[x.jsonl]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := cpu.New(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	m, err := policy.Load(t.Context(), dev, cfg.Model.Path, policy.LoadOptions{Train: cfg.Model.Trainable})
	if err != nil {
		t.Fatal(err)
	}
	set := ""
	if run.LoRA != nil {
		set = "policy"
		if err := m.AddAdapter(set, policy.LoRAConfig{R: run.LoRA.R, Alpha: run.LoRA.Alpha, TargetModules: run.LoRA.Targets}, 0); err != nil {
			t.Fatal(err)
		}
	}
	params, err := m.Params(set)
	if err != nil {
		t.Fatal(err)
	}
	if err := params.Upload(dev, flatten(t, params, tensors, "step0.")); err != nil {
		t.Fatal(err)
	}
	if err := m.Refresh(); err != nil {
		t.Fatal(err)
	}
	optim, err := policy.NewAdamW(dev, params)
	if err != nil {
		t.Fatal(err)
	}
	batching, err := cfg.Batching(1)
	if err != nil {
		t.Fatal(err)
	}
	objective, err := grpo.NewObjective(cfg.GRPO)
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := NewSchedule(cfg.Optim, 5)
	if err != nil {
		t.Fatal(err)
	}
	parts := Parts{Config: cfg, Device: dev, Model: m, Adapter: set, Now: time.Now, Console: &track.Console{W: io.Discard, Now: time.Now}}
	c := &core{Parts: parts, params: params, optim: optim, schedule: schedule, total: 5, latest: map[string]float64{}, timing: map[string]float64{}}
	return &Trainer{core: c, objective: objective, batching: batching, exact: true, entropy: grpo.NewEntropyControl(cfg.GRPO), buffer: buffer{SampledAt: -1}}
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

// recordedRows are the rows of micro-batch k, padding removed, and num_items_in_batch.
func recordedRows(tensors map[string]golden.Tensor, k int) (rows []grpo.Row, items float64) {
	get := func(name string) golden.Tensor { return tensors["micro"+string(rune('0'+k))+"."+name] }
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
	got["grad_norm"], got["learning_rate"] = tr.latest["grad_norm"], tr.latest["learning_rate"]
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
	prefix := "step" + string(rune('0'+step)) + "."
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
