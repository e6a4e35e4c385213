package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/internal/llm/llmtest"
)

// TestCollect has a teacher that searches once and then gives the right answer to one question and a wrong one to the other.
func TestCollect(t *testing.T) {
	server := llmtest.Start(t, llmtest.Config{Models: []string{"good"}, Answer: func(r *llmtest.Request) llmtest.Response {
		asked := r.Last()
		switch {
		case strings.Contains(asked, "Annotate the 2 steps"):
			step := `{"criteria":["a","b"],"scores":[0.5,0.1]}`
			return llmtest.Response{Content: `{"steps":[` + step + `,` + step + `]}`}
		case strings.Contains(asked, "Paragraph:"):
			return llmtest.Response{Content: "Finish[Bex]"}
		}
		return llmtest.Response{Content: "Search[Norham miller]"}
	}})
	testscript.Run(t, testscript.Params{
		Files: []string{filepath.Join("testdata", "collect.txtar")},
		Setup: func(e *testscript.Env) error {
			e.Setenv("RUBICON_LIBCUDA", "/nowhere/libcuda.so.1")
			e.Setenv("MODELS", golden.Path("models"))
			e.Setenv("JUDGE", server.URL)
			return os.MkdirAll(e.Getenv("WORK"), 0o755)
		},
	})
}
