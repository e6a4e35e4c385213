package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy/gguf/gguftest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rubicon": main})
}

// TestScripts runs the transcripts in testdata/script: what a user types, sees, and finds on disk.
func TestScripts(t *testing.T) {
	judge, mortal := judges(t, 7, 10, 7, 6) // the preflight asks two or three times; a step of two prompts with two completions four times
	trlReward, err := filepath.Abs(filepath.Join("..", "..", "scripts", "trl_reward.py"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("RUBICON_LIBCUDA", "/nowhere/libcuda.so.1") // the transcripts are of the CPU
			e.Setenv("MODELS", golden.Path("models"))
			e.Setenv("TRL_REWARD", trlReward)
			e.Setenv("QUICKSTART", golden.Path("..", "..", "embedded", "quickstart"))
			e.Setenv("JUDGE", judge)
			e.Setenv("MORTAL", mortal[0])
			e.Setenv("MORTAL2", mortal[1])
			e.Setenv("MORTAL3", mortal[2])
			port, err := freePort("127.0.0.1")
			if err != nil {
				return err
			}
			e.Setenv("PORT", strconv.Itoa(port))
			e.Setenv("MORTAL4", mortal[3])
			e.Setenv("XDG_CACHE_HOME", e.Getenv("WORK")+"/cache")
			file := gguftest.Model(t, golden.Path("models", "qwen2"))
			if err := file.Quantise(); err != nil {
				return err
			}
			if err := os.WriteFile(e.Getenv("WORK")+"/model.gguf", file.Bytes(), 0o644); err != nil {
				return err
			}
			return os.WriteFile(e.Getenv("WORK")+"/base.yaml", []byte(`
data: {train_files: [train.jsonl], chat: true}
rollout: {max_completion_length: 8}
grpo: {num_generations: 2}
optim: {per_device_train_batch_size: 4, max_steps: 2, learning_rate: 0.001}
lora: {r: 2, alpha: 4}
reward: {kind: verify, options: {checks: [{kind: regex, pattern: "a"}]}}
track: {logging_steps: 1, progress: plain}
`), 0o644)
		},
	})
}
