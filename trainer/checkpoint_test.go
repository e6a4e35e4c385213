package trainer

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
)

// Only bad steps in a row end a run.
func TestBadStepsInARow(t *testing.T) {
	tr := grpoRun(t, parts(t, "optim.max_bad_steps=2", "output_dir="+t.TempDir()), &parityReward{})
	tr.schedule = func(int) float64 { return 0 }
	tr.batch = func() any { return nil }
	for i, loss := range []float64{math.NaN(), 1, math.Inf(1)} {
		tr.loss = loss
		if err := tr.update(); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
	}
	tr.loss = math.NaN()
	if err := tr.update(); !errors.Is(err, ErrDiverged) {
		t.Errorf("two bad steps in a row: %v, want ErrDiverged", err)
	}
}

// A checkpoint of another kind of run is refused.
func TestResumeRefusesAnotherKind(t *testing.T) {
	dir := t.TempDir()
	tr := grpoRun(t, parts(t, "max_steps=1", "num_generations=2", "per_device_train_batch_size=2", "output_dir="+dir), &parityReward{})
	check(t, tr.Run(t.Context()))
	check(t, tr.Close())
	s, err := NewSFT(parts(t, "checkpoint.resume=newest", "output_dir="+dir), []Example{example(1, 5, 10)}, nil)
	check(t, err)
	defer s.Close()
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "it is of a grpo run") {
		t.Errorf("sft from a checkpoint of grpo: %v", err)
	}
}

// A run that is stopped after a step at which an evaluation is due, and in which a step was skipped since the last log line,
// goes on to the same metrics.
func TestStoppedRunLogsTheSame(t *testing.T) {
	run := func(dir, resume string, stop chan struct{}) error {
		p := parts(t, "num_generations=2", "per_device_train_batch_size=4", "grpo.dynamic_sampling=true", "grpo.max_num_gen_batches=1",
			"max_steps=4", "track.logging_steps=4", "eval.files=[x.jsonl]", "eval.eval_steps=1", "checkpoint.resume="+resume, "output_dir="+dir)
		p.Stop = stop
		tr := grpoRun(t, p, &parityReward{flat: []int{0}})
		defer tr.Close()
		return tr.Run(t.Context())
	}
	whole, stopped := t.TempDir(), t.TempDir()
	check(t, run(whole, "", nil))
	stop := make(chan struct{})
	close(stop)
	if err := run(stopped, "", stop); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("stopped run: %v, want ErrInterrupted", err)
	}
	if b, err := os.ReadFile(filepath.Join(stopped, "metrics.jsonl")); err != nil || len(b) > 0 {
		t.Errorf("the stopped run did more than finish its step: %s %v", b, err)
	}
	check(t, run(stopped, "newest", nil))
	memory := regexp.MustCompile(`,"perf/(max_memory_allocated|disk_free)_gb":[^,}]*`)
	read := func(dir string) string {
		b, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
		check(t, err)
		return memory.ReplaceAllString(string(b), "")
	}
	want, got := read(whole), read(stopped)
	if got != want {
		t.Errorf("metrics differ:\n%s\nwant\n%s", got, want)
	}
	if strings.Count(want, `"eval_reward":`) != 4 || !strings.Contains(want, `"skipped_steps":1`) {
		t.Errorf("want four evaluations and a skipped step in\n%s", want)
	}
}

func TestJudgeBest(t *testing.T) {
	down := false
	for name, c := range map[string]struct {
		o      configs.Checkpoint
		values []float64
		best   float64
		step   int
	}{
		"rises":          {configs.Checkpoint{MetricForBestModel: "reward"}, []float64{0.1, 0.3, 0.3, 0.2}, 0.3, 1},
		"a loss falls":   {configs.Checkpoint{MetricForBestModel: "eval_loss"}, []float64{0.3, 0.1, 0.2}, 0.1, 1},
		"told to fall":   {configs.Checkpoint{MetricForBestModel: "eval_reward", GreaterIsBetter: &down}, []float64{0.3, 0.1}, 0.1, 1},
		"unscorable":     {configs.Checkpoint{MetricForBestModel: "eval_reward"}, []float64{math.NaN(), 0.2, math.NaN()}, 0.2, 1},
		"first is first": {configs.Checkpoint{MetricForBestModel: "eval_reward"}, []float64{0.5, 0.2}, 0.5, 0},
	} {
		r := &core{Parts: Parts{Config: &configs.Config{Checkpoint: c.o}}}
		for i, v := range c.values {
			r.state.Step = i
			improved, err := r.judgeBest(map[string]float64{"eval_reward": v, "eval_loss": v})
			if err != nil || improved != (r.state.Best != nil && r.state.Best.Step == i) {
				t.Errorf("%s: value %d: improved %v, %v", name, i, improved, err)
			}
		}
		if r.state.Best == nil || *r.state.Best != (best{c.step, c.best}) {
			t.Errorf("%s: best %+v, want %v at %d", name, r.state.Best, c.best, c.step)
		}
		if _, err := r.judgeBest(map[string]float64{"other": 1}); err == nil {
			t.Errorf("%s: no error without the metric", name)
		}
	}
}

// The newest stay, and the best; what a killed process left goes.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"step-1", "step-2", "step-3", "step-10", ".tmp-step-7", ".tmp-old-step-3", ".tmp-mine"} {
		writeFile(t, filepath.Join(dir, name, "a"), "x")
	}
	c := &core{Parts: Parts{Config: &configs.Config{Checkpoint: configs.Checkpoint{SaveTotalLimit: 1}}}, dir: &Dir{saved: dir}}
	c.state.Best = &best{Step: 2}
	check(t, c.prune())
	entries, err := os.ReadDir(dir)
	check(t, err)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".tmp-mine", "step-10", "step-2"}; !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
}

// A row that went wrong is written down whatever its numbers are.
func TestBadRowsKeepNaN(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.json")
	nan := float32(math.NaN())
	c := &grpo.Completion{Tokens: []int32{3}, LogP: []float32{nan}, Rewards: []float64{math.Inf(1)}, Advantage: 0.5}
	check(t, writeJSON(path, badRows([]grpo.Row{{Prompt: &grpo.Prompt{ID: "p"}, Completion: c}})))
	b, err := os.ReadFile(path)
	check(t, err)
	for _, want := range []string{`"id": "p"`, `"NaN"`, `"+Inf"`, `"advantage": 0.5`, `"old_logps": null`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}
