package trainer

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// stages are two prompts with two completions in the first two steps, then four with one, then two with two again and a reference.
const stages = "optim.stages=[{from_step: 2, num_generations: 1, advantage: reinforce_pp, learning_rate: 0.003}, {from_step: 4, beta: 0.1, learning_rate: 0.001}]"

func stagedRun(t *testing.T, dir string, overrides ...string) *Trainer {
	t.Helper()
	return grpoRun(t, parts(t, append([]string{"num_generations=2", "per_device_train_batch_size=4", "optim.lr_scheduler_type=constant", "learning_rate=0.002",
		"track.logging_steps=1", "output_dir=" + dir, stages}, overrides...)...), &parityReward{})
}

// Every step has the group size, the rate and the reference of its stage, and epochs count the prompts that were used: of eight prompts two a
// step, then four, then two.
func TestStages(t *testing.T) {
	dir := t.TempDir()
	tr := stagedRun(t, dir, "max_steps=5")
	defer tr.Close()
	check(t, tr.Run(t.Context()))
	for step, prompts := range []int{2, 2, 4, 4, 2} {
		lines, err := readCompletions(tr.dir.join("completions", fmt.Sprintf("step_%d.jsonl", step+1)))
		check(t, err)
		different := map[string]bool{}
		for _, l := range lines {
			different[l.ID] = true
		}
		if len(lines) != 4 || len(different) != prompts {
			t.Errorf("step %d has %d completions of %d prompts, want 4 of %d", step+1, len(lines), len(different), prompts)
		}
	}
	records, err := track.ReadJSONL(tr.dir.metrics())
	check(t, err)
	var rates, epochs []float64
	for _, r := range records {
		if rate, trained := r.Values["learning_rate"]; trained {
			rates, epochs = append(rates, rate), append(epochs, r.Values["epoch"])
			if _, kl := r.Values["kl"]; kl != (r.Step == 5) {
				t.Errorf("step %d: a divergence from the reference: %v", r.Step, kl)
			}
		}
	}
	if !slices.Equal(rates, []float64{0.002, 0.002, 0.003, 0.003, 0.001}) {
		t.Errorf("rates %v", rates)
	}
	for i, want := range []float64{0.25, 0.5, 1, 1.5, 1.75} {
		if math.Abs(epochs[i]-want) > 1e-12 {
			t.Errorf("epochs %v", epochs)
		}
	}
}

// A run that is stopped before, at and after the beginning of a stage and resumed ends with the bits of one that was not, and keeps its
// configuration as it was given.
func TestStagesResume(t *testing.T) {
	read := func(dir string, file string) string {
		b, err := os.ReadFile(filepath.Join(dir, file))
		check(t, err)
		return string(b)
	}
	whole, cut := t.TempDir(), t.TempDir()
	tr := stagedRun(t, whole, "max_steps=5")
	check(t, tr.Run(t.Context()))
	check(t, tr.Close())
	for steps := 1; steps <= 5; steps++ {
		tr := stagedRun(t, cut, fmt.Sprint("max_steps=", steps), "checkpoint.resume=auto")
		check(t, tr.Run(t.Context()))
		check(t, tr.Close())
	}
	for _, file := range []string{"checkpoints/step-5/adapter_model.safetensors", "completions/step_3.jsonl", "completions/step_5.jsonl"} {
		if read(whole, file) != read(cut, file) {
			t.Errorf("%s differs from the undisturbed run's", file)
		}
	}
	if c := read(cut, "config.yaml"); !strings.Contains(c, "num_generations: 2") || !strings.Contains(c, "from_step: 4") {
		t.Errorf("the configuration that was written is\n%s", c)
	}
}
