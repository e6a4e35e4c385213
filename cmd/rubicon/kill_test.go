//go:build slow

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

// killConfig is a run whose generation batch outlives several optimiser steps, so that checkpoints have to carry it, with
// a log window and evaluations that do not fall on checkpoints.
const killConfig = `
model: {path: %q}
lora: {r: 4, alpha: 8}
data: {train_files: [%q], chat: true}
rollout: {max_completion_length: 12}
grpo: {num_generations: 4, num_iterations: 2, steps_per_generation: 4, beta: 0.01}
optim: {per_device_train_batch_size: 4, gradient_accumulation_steps: 1, max_steps: 30, learning_rate: 0.01}
reward: {kind: verify, options: {checks: [{kind: count, unit: chars, min: 1, max: 20}, {kind: regex, pattern: "e", weight: 2}]}}
checkpoint: {save_steps: 1, save_total_limit: 3}
eval: {files: [%q], eval_steps: 7, max_rows: 4}
track: {logging_steps: 3, progress: plain}
`

// TestKilledRunEndsAsTheUndisturbedOne kills a real process ten times, half of the times while it is saving, and resumes
// it; weights, samples and metrics must be those of a run that nobody disturbed, bit for bit.
func TestKilledRunEndsAsTheUndisturbedOne(t *testing.T) {
	bin, config, dir := killSetup(t)
	calm, killed := filepath.Join(dir, "calm"), filepath.Join(dir, "killed")
	began := time.Now()
	if out, err := start(bin, config, calm).CombinedOutput(); err != nil {
		t.Fatalf("undisturbed run: %v\n%s", err, out)
	}
	whole := time.Since(began)
	random := rand.New(rand.NewPCG(1, 2))
	kills := 0
	for finished := false; !finished; {
		cmd := start(bin, config, killed)
		var log strings.Builder
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		if kills < 10 {
			// Even kills come after a random time, odd ones as soon as a checkpoint is being written after such a time.
			wait := time.After(time.Duration(random.Float64() * float64(whole) / 4))
			select {
			case err := <-done:
				t.Fatalf("the run ended before kill %d: %v\n%s", kills, err, log.String())
			case <-wait:
			}
			if kills%2 == 1 {
				untilSaving(t, killed)
			}
			cmd.Process.Kill()
			kills++
		}
		err := <-done
		var exit *exec.ExitError
		switch {
		case err == nil:
			finished = true
		case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		default:
			t.Fatalf("after %d kills: %v\n%s", kills, err, log.String())
		}
	}
	if kills < 10 {
		t.Fatalf("the run was killed %d times only", kills)
	}
	compareRuns(t, calm, killed)
}

// killSetup builds the binary and writes a run's data and configuration.
func killSetup(t *testing.T) (bin, config, dir string) {
	dir = t.TempDir()
	bin = filepath.Join(dir, "rubicon")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	data := filepath.Join(dir, "data.jsonl")
	var rows strings.Builder
	for i := range 24 {
		fmt.Fprintf(&rows, "{\"prompt\": \"Say word number %d.\"}\n", i)
	}
	if err := os.WriteFile(data, []byte(rows.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	config = filepath.Join(dir, "run.yaml")
	text := fmt.Sprintf(killConfig, golden.Path("models", "qwen2"), data, data)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return bin, config, dir
}

func start(bin, config, run string, overrides ...string) *exec.Cmd {
	args := []string{"train", "-c", config, "--resume=auto", "output_dir=" + run}
	return exec.Command(bin, append(args, overrides...)...)
}

// untilSaving waits for a checkpoint's temporary folder to appear.
func untilSaving(t *testing.T, run string) {
	for range 20000 {
		if found, _ := filepath.Glob(filepath.Join(run, "checkpoints", ".tmp-*")); len(found) > 0 {
			return
		}
		time.Sleep(200 * time.Microsecond)
	}
	t.Error("no checkpoint was written in time")
}

func compareRuns(t *testing.T, calm, killed string) {
	for _, glob := range []string{"completions/*.jsonl", "eval/*.jsonl", "checkpoints/step-30/*.safetensors"} {
		files, err := filepath.Glob(filepath.Join(calm, glob))
		if err != nil || len(files) == 0 {
			t.Fatalf("the undisturbed run has no %s", glob)
		}
		for _, f := range files {
			rel, _ := filepath.Rel(calm, f)
			want, err1 := os.ReadFile(f)
			got, err2 := os.ReadFile(filepath.Join(killed, rel))
			if err := errors.Join(err1, err2); err != nil {
				t.Error(err)
			} else if string(got) != string(want) {
				t.Errorf("%s differs from the undisturbed run's", rel)
			}
		}
	}
	want, got := metrics(t, calm), metrics(t, killed)
	if len(want) != len(got) || len(want) < 10 {
		t.Fatalf("%d lines of metrics, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("metrics line %d:\n got %s\nwant %s", i+1, got[i], want[i])
		}
	}
}

// metrics are the lines of metrics.jsonl without times and memory.
func metrics(t *testing.T, run string) []string {
	b, err := os.ReadFile(filepath.Join(run, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		for k := range m {
			if strings.HasPrefix(k, "timing_s/") || strings.HasPrefix(k, "perf/") || k == "step_time" || k == "eval_runtime" {
				delete(m, k)
			}
		}
		b, _ := json.Marshal(m)
		out = append(out, string(b))
	}
	return out
}

// TestFirstInterruptFinishesTheStep interrupts a run once: it saves what it has finished, exits with 130, and the resumed
// run ends as if nothing had happened.
func TestFirstInterruptFinishesTheStep(t *testing.T) {
	bin, config, dir := killSetup(t)
	calm, stopped := filepath.Join(dir, "calm"), filepath.Join(dir, "stopped")
	if out, err := start(bin, config, calm, "save_steps=0").CombinedOutput(); err != nil {
		t.Fatalf("undisturbed run: %v\n%s", err, out)
	}
	cmd := start(bin, config, stopped, "save_steps=0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 20000 { // until the run is under way
		if _, err := os.Stat(filepath.Join(stopped, "completions", "step_9.jsonl")); err == nil {
			break
		}
		time.Sleep(200 * time.Microsecond)
	}
	cmd.Process.Signal(os.Interrupt)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Fatalf("interrupted run: %v, want exit code 130", err)
	}
	saved, err := filepath.Glob(filepath.Join(stopped, "checkpoints", "step-*", "MANIFEST"))
	if err != nil || len(saved) != 1 {
		t.Fatalf("checkpoints %v, want one", saved)
	}
	if out, err := start(bin, config, stopped, "save_steps=0").CombinedOutput(); err != nil {
		t.Fatalf("resumed run: %v\n%s", err, out)
	}
	compareRuns(t, calm, stopped)
}

// TestSecondInterruptStopsAtOnce interrupts a run twice in a step that would take very long; the run is then resumable as
// after any kill.
func TestSecondInterruptStopsAtOnce(t *testing.T) {
	bin, config, dir := killSetup(t)
	run := filepath.Join(dir, "run")
	cmd := start(bin, config, run, "gradient_accumulation_steps=100000", "steps_per_generation=4", "num_train_epochs=100000", "max_steps=-1")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 20000 {
		if _, err := os.Stat(filepath.Join(run, "completions", "step_1.jsonl")); err == nil {
			break
		}
		time.Sleep(200 * time.Microsecond)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-done:
		t.Fatalf("the first interrupt ended the run: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	cmd.Process.Signal(os.Interrupt)
	var exit *exec.ExitError
	if err := <-done; !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Fatalf("second interrupt: %v, want the run killed by it\n%s", err, log.String())
	}
}
