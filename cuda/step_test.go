//go:build slow

package cuda

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// everySecond is 1 for every second completion of a group.
type everySecond struct{}

func (everySecond) Score(_ context.Context, _ int, groups []grpo.Group) ([]rewards.Score, error) {
	var out []rewards.Score
	for _, g := range groups {
		for i := range g.Completions {
			out = append(out, rewards.Score{Value: float64(i % 2)})
		}
	}
	return out, nil
}

// One whole step of GRPO, prompts to updated adapter, by the trainer itself: in float32 the completions are the CPU's to the
// last token, and so are, but for the order of sums, the metrics and the update. In bfloat16 a draw may go another way, and
// with it all that follows; here the sampler and the trainer agree with each other.
func TestStep(t *testing.T) {
	for name, weights := range map[driver.Type]string{driver.F32: "float32", driver.BF16: "bfloat16"} {
		t.Run(weights, func(t *testing.T) {
			host, err := cpu.New(cpu.Options{})
			check(t, err)
			got, want := step(t, simulated(name)(t), weights), step(t, host, weights)
			gap, measured := got.metrics["sampling/sampling_logp_difference/max"]
			if !measured || !(gap <= types[name].close.logp) {
				t.Errorf("sampler and trainer differ by %v nats (%v), more than %v", gap, measured, types[name].close.logp)
			}
			if name == driver.F32 {
				got.equals(t, want)
			}
		})
	}
}

// result is what a step leaves.
type result struct {
	completions string
	metrics     map[string]float64
	update      []float32
}

func (got result) equals(t *testing.T, want result) {
	t.Helper()
	if got.completions != want.completions {
		t.Errorf("completions\n%son the CPU\n%s", got.completions, want.completions)
	}
	for _, name := range []string{"loss", "grad_norm", "entropy", "reward", "kl", "completions/mean_length"} {
		a, ok := got.metrics[name]
		b, there := want.metrics[name]
		if d := a - b; !ok || !there || !(d*d <= 1e-8*max(1, b*b)) {
			t.Errorf("%s is %v, on the CPU %v (%v, %v)", name, a, b, ok, there)
		}
	}
	if d := distance(got.update, want.update); !(d <= types[driver.F32].close.step) {
		t.Errorf("the update differs by %.2g of its norm", d)
	}
}

// step makes one step on a golden model: four prompts, two completions each, with a penalty of the KL to the base.
func step(t *testing.T, dev device.Device, weights string) result {
	t.Helper()
	t.Cleanup(func() { check(t, dev.Close()) })
	dir := filepath.Join(t.TempDir(), "run")
	cfg, _, err := configs.Load(nil, []string{
		"model.path=" + golden.Path("models", "qwen2"), "data.train_files=[x.jsonl]", "output_dir=" + dir, "lora.r=4",
		"optim.learning_rate=0.01", "rollout.max_completion_length=6", "track.logging_steps=1", "max_steps=1",
		"num_generations=2", "per_device_train_batch_size=4", "gradient_accumulation_steps=2", "beta=0.1",
	}, nil)
	check(t, err)
	m, err := policy.Load(t.Context(), dev, cfg.Model.Path, policy.LoadOptions{DType: weights})
	check(t, err)
	t.Cleanup(func() { check(t, m.Close()) })
	check(t, m.AddAdapter("policy", policy.LoRAConfig{R: cfg.LoRA.R, Alpha: cfg.LoRA.Alpha, TargetModules: cfg.LoRA.TargetModules}, 1))
	params, err := m.Params("policy")
	check(t, err)
	before, err := params.Download(dev)
	check(t, err)
	tok, err := token.Load(cfg.Model.Path)
	check(t, err)
	now := func() time.Time { return time.Unix(0, 0) }
	run, err := trainer.New(
		trainer.Parts{Config: cfg, Device: dev, Model: m, Adapter: "policy", Tokenizer: tok, Now: now, Console: &track.Console{W: io.Discard, Now: now}},
		trainer.Task{Prompts: stepPrompts(), Provider: everySecond{}, Name: "every second", Reference: trainer.Reference{Model: m}})
	check(t, err)
	defer run.Close()
	check(t, run.Run(t.Context()))
	after, err := params.Download(dev)
	check(t, err)
	for i := range after {
		after[i] -= before[i]
	}
	return result{read(t, dir, "completions", "step_1.jsonl"), lastMetrics(t, dir), after}
}

func stepPrompts() []grpo.Prompt {
	prompts := make([]grpo.Prompt, 4)
	for i := range prompts {
		prompts[i] = grpo.Prompt{ID: fmt.Sprint("p", i), Text: fmt.Sprint("prompt ", i), Tokens: []int32{5, int32(10 + i), 17}}
	}
	return prompts
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	check(t, err)
	return string(b)
}

// lastMetrics are the numbers of the last line of metrics.jsonl that has a loss.
func lastMetrics(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(read(t, dir, "metrics.jsonl")), "\n")
	for _, line := range slices.Backward(lines) {
		var values map[string]any
		check(t, json.Unmarshal([]byte(line), &values))
		if values["loss"] == nil {
			continue
		}
		numbers := map[string]float64{}
		for name, v := range values {
			if x, ok := v.(float64); ok {
				numbers[name] = x
			}
		}
		return numbers
	}
	t.Fatalf("no loss in %q", lines)
	return nil
}
