package trainer

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/dist"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/internal/remote"
	"github.com/rubicon-rl/rubicon/internal/serve"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// server is rubicon serve on the golden model, which loads adapters below dir.
func server(t *testing.T, dir string) (url string) {
	t.Helper()
	path := golden.Path("models", "qwen2")
	dev, err := cpu.New(cpu.Options{Threads: 1})
	check(t, err)
	m, err := policy.Load(t.Context(), dev, path, policy.LoadOptions{})
	check(t, err)
	tok, err := token.Load(path)
	check(t, err)
	s, err := serve.New(serve.Options{
		Model: m, Tokenizer: tok, Name: "q", EOS: EOS(m.Config(), tok), Session: policy.SessionOptions{KVTokens: 4096}, Now: time.Now,
		Adapters: dir, MaxTokens: 64, MaxQueue: 64, MaxBody: 1 << 20, Timeout: time.Minute,
	})
	check(t, err)
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.Close()
		s.Close()
		check(t, m.Close())
		check(t, dev.Close())
	})
	return h.URL + "/v1"
}

// Samples of a server are those of the policy as it is: at every step, the trainer's log-probabilities of them are the server's up to
// rounding, though the learning rate moves the policy much further than that. The adapters of steps that are over are gone.
func TestStepsOnAServer(t *testing.T) {
	dir := t.TempDir()
	p := parts(t, "num_generations=4", "per_device_train_batch_size=8", "max_steps=4", "rollout.engine=openai", "rollout.server.urls=[x]",
		"optim.learning_rate=0.1", "output_dir="+dir, "eval.files=[y.jsonl]", "eval.eval_on_start=true")
	e, err := remote.New(remote.Options{URLs: []string{server(t, dir)}, Timeout: time.Minute, MaxConcurrency: 4, Notify: func(text string) { t.Error(text) }})
	check(t, err)
	tr, err := New(p, Task{Prompts: prompts(8), HeldOut: prompts(2), Provider: &parityReward{}, Name: "parity", Reference: Reference{Model: p.Model}, Engine: e})
	check(t, err)
	t.Cleanup(func() { tr.Close() })
	check(t, os.MkdirAll(filepath.Join(dir, "rollout", "of-a-killed-run"), 0o755))
	check(t, tr.Run(t.Context()))
	b, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	check(t, err)
	steps := 0
	for line := range bytes.Lines(b) {
		var m map[string]float64
		check(t, json.Unmarshal(line, &m))
		gap, ok := m["sampling/sampling_logp_difference/max"]
		if !ok {
			continue
		}
		steps++
		if gap > 1e-4 {
			t.Errorf("step %v: the server's log-probabilities are up to %v off: it samples another policy", m["step"], gap)
		}
	}
	if steps != 4 {
		t.Errorf("%d of 4 steps say how far the server's log-probabilities are off", steps)
	}
	kept, err := os.ReadDir(filepath.Join(dir, "rollout"))
	check(t, err)
	if len(kept) != 1 || kept[0].Name() == "of-a-killed-run" {
		t.Errorf("adapters kept for the server: %v, want the last one", kept)
	}
}

// two is a link of the first of two processes, which nothing is sent over.
type two struct{ dist.Link }

func (two) Rank() int  { return 0 }
func (two) World() int { return 2 }

// Servers sample for a run of one process: of two, each would have them load its own adapters.
func TestServersServeOneProcess(t *testing.T) {
	p := parts(t, "num_generations=2", "per_device_train_batch_size=2", "max_steps=1", "rollout.engine=openai", "rollout.server.urls=[x]", "output_dir="+t.TempDir())
	p.Group = dist.NewGroup(two{}, time.Minute)
	e, err := remote.New(remote.Options{URLs: []string{"x"}})
	check(t, err)
	if _, err := New(p, Task{Prompts: prompts(8), Provider: &parityReward{}, Engine: e}); err == nil || !strings.Contains(err.Error(), "serves runs of one process, this one has 2") {
		t.Errorf("a run of two processes: %v", err)
	}
}
