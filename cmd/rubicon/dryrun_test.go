package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/disk"
)

// 100 steps of which every other samples (two optimiser steps of one pass for each generation of two): 50 samplings of 3 s with 64
// completions, and 1 s beside. Checkpoints come after 40, 80 and 100 steps, evaluations before the first, after 30, 60, 90 and the last.
func TestDryRunArithmetic(t *testing.T) {
	d := &dryRunReport{
		run: configs.Default(), steps: 100, heldOut: 32, saved: 1e6, sampled: 1e4,
		batching: grpo.Batching{GradAccum: 1, StepsPerGeneration: 2, Iterations: 1, GenerationBatch: 64},
		values:   map[string]float64{"timing_s/gen": 2.5, "timing_s/reward": 0.5, "step_time": 4},
		judge:    map[string]float64{"judge/cost": 0.2},
	}
	d.run.Checkpoint.SaveSteps, d.run.Eval.EvalSteps, d.run.Eval.EvalOnStart, d.run.Eval.EvalOnEnd = 40, 30, true, true
	if steps, completions := d.sampling(); steps != 50 || completions != 64 {
		t.Errorf("%d samplings of %d, want 50 of 64", steps, completions)
	}
	if n := d.evaluations(); n != 5 {
		t.Errorf("%d evaluations, want 5", n)
	}
	for limit, want := range map[int]int{0: 3, 2: 2, 9: 3} {
		d.run.Checkpoint.SaveTotalLimit, d.run.Checkpoint.MetricForBestModel = limit, ""
		if n := d.checkpoints(); n != want {
			t.Errorf("%d checkpoints with a limit of %d, want %d", n, limit, want)
		}
		if d.run.Checkpoint.MetricForBestModel = "eval_reward"; d.checkpoints() != want+1 {
			t.Errorf("%d checkpoints with the best one, want %d", d.checkpoints(), want+1)
		}
	}
	var out strings.Builder
	d.printTime(&out)
	// 50 x 3 s + 100 x 1 s = 250 s; 32 held-out completions take half of a sampling, five times
	for _, want := range []string{"time       4m0s for 100 steps", "about 7.5s for 5 evaluations", "about 10.00 for all steps, 0.2000 for this one"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, &out)
		}
	}
	d.batching.GradAccum = 8 // four generations for a step
	if steps, completions := d.sampling(); steps != 100 || completions != 256 {
		t.Errorf("%d samplings of %d, want 100 of 256", steps, completions)
	}
	d.run.Checkpoint.SaveSteps = 0
	d.run.Checkpoint.MetricForBestModel = ""
	if n := d.checkpoints(); n != 1 {
		t.Errorf("%d checkpoints without a period, want the last one", n)
	}
}

// The disk of a folder that is not there yet is that of the nearest one above it; one that is too small is a warning.
func TestDryRunDisk(t *testing.T) {
	d := &dryRunReport{run: configs.Default(), steps: 1, batching: grpo.Batching{GradAccum: 1, StepsPerGeneration: 1, Iterations: 1}}
	dir := t.TempDir()
	d.run.OutputDir = filepath.Join(dir, "runs", "mine")
	if got := existing(d.run.OutputDir); got != dir {
		t.Errorf("the nearest folder is %s, want %s", got, dir)
	}
	_, known := disk.Free(dir)
	for bytes, small := range map[int64]bool{1: false, 1 << 60: true} {
		var out strings.Builder
		d.saved = bytes
		d.printDisk(&out)
		if strings.Contains(out.String(), "too small") != (small && known) || strings.Contains(out.String(), "are free") != known {
			t.Errorf("%d bytes: %s", bytes, &out)
		}
	}
}

// What the one step does is the run's own but for the course of the learning rate and what would leave a trace.
func TestOneStep(t *testing.T) {
	c := configs.Default()
	c.OutputDir, c.Checkpoint.Resume, c.Checkpoint.Dir, c.Judge.Record = "mine", "newest", "saved", "record"
	c.Optim.WarmupSteps, c.Eval.EvalOnEnd = 10, true
	one := oneStep(c, "tmp")
	if one.Optim.MaxSteps != 1 || one.Optim.WarmupSteps != 0 || one.Eval.EvalOnEnd || one.Checkpoint.Resume+one.Checkpoint.Dir+one.Judge.Record != "" {
		t.Errorf("%+v", one)
	}
	if !strings.HasPrefix(one.OutputDir, "tmp") || c.OutputDir != "mine" || c.Optim.WarmupSteps != 10 {
		t.Errorf("folders %s and %s", one.OutputDir, c.OutputDir)
	}
	if one.Optim.LearningRate != c.Optim.LearningRate || one.GRPO != c.GRPO {
		t.Error("the objective or its rate differs")
	}
}

func TestDuration(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{0.04: 0, 0.16: 200 * time.Millisecond, 59: 59 * time.Second, 5000: 83 * time.Minute} {
		if got := duration(seconds); got != want {
			t.Errorf("%v s is %v, want %v", seconds, got, want)
		}
	}
}
