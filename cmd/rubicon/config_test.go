package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func runConfig(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := configCommand()
	var out, errs bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.Execute()
	return out.String(), errs.String(), err
}

// What print writes is a configuration file that gives the same again, whatever it was made from.
func TestConfigPrint(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(file, []byte("num_generations: 4\nvllm_mode: server\ndata: {columns: {Ref: Answer}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, notes, err := runConfig(t, "print", "-c", file, "model.trainable=full", "eval.temperature=0.5")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"num_generations: 4", "Ref: Answer", "learning_rate: 1.0e-06", "run_name: mine"} {
		if !strings.Contains(first, want) {
			t.Errorf("lacks %q:\n%s", want, first)
		}
	}
	if !strings.Contains(notes, "mine.yaml:2: vllm_mode: ignored") {
		t.Errorf("notes %q", notes)
	}
	again := filepath.Join(dir, "again.yaml")
	if err := os.WriteFile(again, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	second, notes, err := runConfig(t, "print", "-c", again)
	if err != nil || second != first || notes != "" {
		t.Errorf("printed again: %v, notes %q, equal %v", err, notes, second == first)
	}
}

func TestConfigCheck(t *testing.T) {
	out, _, err := runConfig(t, "check", "per_device_train_batch_size=4", "num_generations=4", "gradient_accumulation_steps=2")
	if err != nil || !strings.Contains(out, "ok: 2 prompts x 4 completions = 8 per generation") {
		t.Errorf("%q, %v", out, err)
	}
	_, _, err = runConfig(t, "check", "rollout.top_p=5", "optim.learning_rat=1")
	if err == nil || !strings.Contains(err.Error(), "did you mean optim.learning_rate?") || !strings.Contains(err.Error(), "rollout.top_p is 5") {
		t.Errorf("error %v", err)
	}
	if _, _, err = runConfig(t, "check", "num_generations=5"); err == nil || !strings.Contains(err.Error(), "whole groups of num_generations 5") {
		t.Errorf("error %v", err)
	}
	_, notes, err := runConfig(t, "check", "loss_type=cispo")
	if err != nil || !strings.Contains(notes, "grpo.epsilon_high") {
		t.Errorf("notes %q, %v", notes, err)
	}
}

func TestConfigSchema(t *testing.T) {
	out, _, err := runConfig(t, "schema")
	if err != nil || !strings.Contains(out, `"$schema": "https://json-schema.org/draft/2020-12/schema"`) {
		t.Errorf("%.80q, %v", out, err)
	}
	if _, _, err := runConfig(t, "schema", "x"); err == nil {
		t.Error("schema takes no arguments")
	}
}

// What the tests themselves are told by environment variables must not be taken for mistyped keys.
func TestConfigIgnoresVariablesOfTests(t *testing.T) {
	t.Setenv("RUBICON_CPU_TIER", "portable")
	t.Setenv("RUBICON_CI_CACHE", "somewhere")
	t.Setenv("RUBICON_TEST_SMOLLM2", "somewhere")
	t.Setenv("RUBICON_SEED", "123")
	out, _, err := runConfig(t, "print")
	if err != nil || !strings.Contains(out, "seed: 123") {
		t.Errorf("%v\n%s", err, out)
	}
}
