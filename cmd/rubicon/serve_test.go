package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/internal/serve"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/trainer"
)

// TestServeScripts uses a served model as judge, embedder and policy of other commands.
func TestServeScripts(t *testing.T) {
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(golden.Path("models", "qwen2"))))
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	check(t, err)
	config = bytes.Replace(config, []byte(`"max_position_embeddings": 512`), []byte(`"max_position_embeddings": 8192`), 1) // for a judge's questions
	check(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644))
	dev, err := newDevice(1, false)
	check(t, err)
	m, err := policy.Load(t.Context(), dev, dir, policy.LoadOptions{})
	check(t, err)
	tok, err := token.Load(dir)
	check(t, err)
	work := t.TempDir()
	s, err := serve.New(serve.Options{
		Adapters: work, Model: m, Tokenizer: tok, Name: "q", EOS: trainer.EOS(m.Config(), tok), Session: policy.SessionOptions{KVTokens: 1 << 14}, Now: time.Now,
		APIKey: "secret", MaxTokens: 4096, MaxQueue: 100, MaxBody: 1 << 20, Timeout: time.Minute,
	})
	check(t, err)
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		s.Close()
		check(t, m.Close())
		check(t, dev.Close())
	})
	testscript.Run(t, testscript.Params{
		Files:       []string{"testdata/serve.txtar"},
		WorkdirRoot: work,
		Setup: func(e *testscript.Env) error {
			e.Setenv("RUBICON_LIBCUDA", "/nowhere/libcuda.so.1")
			e.Setenv("SERVE", server.URL+"/v1")
			e.Setenv("MODEL", dir)
			e.Setenv("DEMO", golden.Path("..", "..", "..", "configs", "quickstart-amaris.yaml"))
			e.Setenv("XDG_CACHE_HOME", e.Getenv("WORK")+"/cache")
			return nil
		},
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
