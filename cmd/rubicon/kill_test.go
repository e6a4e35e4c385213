//go:build slow

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
	for kill := range 10 {
		run := begin(t, start(bin, config, killed))
		// The kills are counted in steps, as the machine may get faster than it was in the undisturbed run. Even ones come up
		// to a tenth of that run's time later, some of these counted from the start; odd ones while a checkpoint is written.
		if kill%4 != 0 {
			run.until(t, func() bool { return lastStep(killed) >= 2*kill })
		}
		if kill%2 == 0 {
			time.Sleep(time.Duration(random.Float64() * float64(whole) / 10))
		} else {
			run.until(t, func() bool { return run.saving(killed) })
		}
		run.cmd.Process.Kill()
		if err := <-run.done; !endedBy(err, syscall.SIGKILL) {
			t.Fatalf("the run ended before kill %d: %v\n%s", kill, err, run.log.String())
		}
	}
	if out, err := start(bin, config, killed).CombinedOutput(); err != nil {
		t.Fatalf("after the kills: %v\n%s", err, out)
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

// process is a run that the test disturbs.
type process struct {
	cmd   *exec.Cmd
	began time.Time
	done  chan error
	log   strings.Builder // whole once done
}

func begin(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, began: time.Now(), done: make(chan error, 1)}
	cmd.Stderr = &p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- cmd.Wait() }()
	return p
}

// until waits for what the process is to do before it is disturbed.
func (p *process) until(t *testing.T, happened func() bool) {
	t.Helper()
	for !happened() {
		select {
		case err := <-p.done:
			t.Fatalf("the run ended too early: %v\n%s", err, p.log.String())
		case <-time.After(200 * time.Microsecond):
		}
		if time.Since(p.began) > 2*time.Minute {
			p.cmd.Process.Kill()
			<-p.done
			t.Fatalf("the run does not get on:\n%s", p.log.String())
		}
	}
}

// saving tells whether the process, and not one before it, has begun to write a checkpoint.
func (p *process) saving(run string) bool {
	found, _ := filepath.Glob(filepath.Join(run, "checkpoints", ".tmp-*"))
	return slices.ContainsFunc(found, func(dir string) bool {
		info, err := os.Stat(dir)
		return err == nil && info.ModTime().After(p.began)
	})
}

// lastStep is the newest checkpoint's step, 0 if there is none.
func lastStep(run string) int {
	last := 0
	found, _ := filepath.Glob(filepath.Join(run, "checkpoints", "step-*"))
	for _, dir := range found {
		n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "step-"))
		last = max(last, n)
	}
	return last
}

func endedBy(err error, signal syscall.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// compareRuns compares what two runs have left: completions, evaluations, the last checkpoint, metrics.
func compareRuns(t *testing.T, calm, killed string) {
	t.Helper()
	last := fmt.Sprintf("checkpoints/step-%d/*.safetensors", lastStep(calm))
	for _, glob := range []string{"completions/*.jsonl", "eval/*.jsonl", last} {
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
	if len(want) != len(got) || len(want) == 0 {
		t.Fatalf("%d lines of metrics, want %d", len(got), len(want))
	}
	for i := range want {
		for _, k := range slices.Sorted(maps.Keys(want[i])) {
			if got[i][k] != want[i][k] {
				t.Errorf("metrics line %d: %s is %v, want %v", i+1, k, got[i][k], want[i][k])
			}
		}
		if len(got[i]) != len(want[i]) {
			t.Errorf("metrics line %d has %d, want %d", i+1, len(got[i]), len(want[i]))
		}
	}
}

// measured are the beginnings of metrics that are times, memory, or how often a judge was really asked, which no two runs share.
var measured = []string{"judge/", "timing_s/", "perf/", "amaris/seconds/", "amaris/waiting_", "step_time", "eval_runtime"}

// metrics are the lines of metrics.jsonl without what is measured.
func metrics(t *testing.T, run string) []map[string]any {
	b, err := os.ReadFile(filepath.Join(run, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for line := range strings.Lines(string(b)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(m, func(k string, _ any) bool {
			return slices.ContainsFunc(measured, func(prefix string) bool { return strings.HasPrefix(k, prefix) })
		})
		out = append(out, m)
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
	run := begin(t, start(bin, config, stopped, "save_steps=0"))
	run.until(t, func() bool { return exists(stopped, "completions", "step_9.jsonl") })
	run.cmd.Process.Signal(os.Interrupt)
	var exit *exec.ExitError
	if err := <-run.done; !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Fatalf("interrupted run: %v, want exit code 130\n%s", err, run.log.String())
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

// TestSecondInterruptStopsAtOnce interrupts a run twice in a step that takes very long.
func TestSecondInterruptStopsAtOnce(t *testing.T) {
	bin, config, dir := killSetup(t)
	folder := filepath.Join(dir, "run")
	run := begin(t, start(bin, config, folder, "gradient_accumulation_steps=100000", "num_iterations=100000"))
	run.until(t, func() bool { return exists(folder, "completions", "step_1.jsonl") })
	run.cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-run.done:
		t.Fatalf("the first interrupt ended the run: %v\n%s", err, run.log.String())
	case <-time.After(time.Second):
	}
	run.cmd.Process.Signal(os.Interrupt)
	if err := <-run.done; !endedBy(err, syscall.SIGINT) {
		t.Fatalf("second interrupt: %v, want the run killed by it\n%s", err, run.log.String())
	}
}

func exists(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return err == nil
}
