//go:build slow

package main

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/internal/serve"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer"
)

// A run whose completions rubicon serve samples learns the quickstart as well as one that samples itself.
func TestQuickstartOnAServer(t *testing.T) {
	dir := t.TempDir()
	f := modelFlags{model: "embedded:quickstart", dtype: "auto"}
	l, err := f.load(t.Context())
	check(t, err)
	s, err := serve.New(serve.Options{
		Model: l.model, Tokenizer: l.tok, Name: "base", EOS: trainer.EOS(l.model.Config(), l.tok), Session: policy.SessionOptions{KVTokens: 1 << 14},
		Now: time.Now, Adapters: dir, MaxTokens: 64, MaxQueue: 1024, MaxBody: 1 << 20, Timeout: time.Minute,
	})
	check(t, err)
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		s.Close()
		l.close()
	})
	reward := func(name string, overrides ...string) float64 {
		folder := filepath.Join(dir, name)
		quickstart := golden.Path("..", "..", "..", "configs", "quickstart.yaml")
		args := []string{"train", "-q", "-c", quickstart, "max_steps=50", "eval.eval_steps=0", "output_dir=" + folder}
		check(t, run(t.Context(), append(args, overrides...)))
		b, err := os.ReadFile(filepath.Join(folder, "metrics.jsonl"))
		check(t, err)
		last := math.NaN()
		for line := range bytes.Lines(b) {
			var m map[string]float64
			check(t, json.Unmarshal(line, &m))
			if r, ok := m["eval_reward"]; ok {
				last = r
			}
			if gap := m["sampling/sampling_logp_difference/max"]; gap > 1e-4 {
				t.Errorf("%s, step %v: log-probabilities are up to %v apart", name, m["step"], gap)
			}
		}
		return last
	}
	local := reward("local")
	remote := reward("remote", "rollout.engine=openai", "rollout.server.urls=["+server.URL+"/v1]")
	t.Logf("held-out reward after 50 steps: %.3f on its own, %.3f on a server", local, remote)
	if !(math.Abs(local-remote) < 0.05) || !(remote > 0.8) { // it begins at 0.42
		t.Errorf("held-out reward after 50 steps: %.3f on its own, %.3f on a server", local, remote)
	}
}
