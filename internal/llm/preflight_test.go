package llm

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/llm/llmtest"
)

func ready(*llmtest.Request) llmtest.Response { return llmtest.Response{Content: `{"ready": true}`} }

// gone is an address at which nobody listens.
func gone(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/v1"
}

// What is wrong must be found before the first rollout, with the setting that mends it.
func TestPreflightErrors(t *testing.T) {
	listed := llmtest.Start(t, llmtest.Config{Answer: ready, Models: []string{"qwen3-8b", "llama3:latest"}})
	keyed := llmtest.Start(t, llmtest.Config{Answer: ready, Key: secret})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<!doctype html>")) }))
	defer site.Close()
	unlisted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error": "model \"qwen\" not found, try pulling it first"}`, http.StatusNotFound)
	}))
	defer unlisted.Close()
	picky := llmtest.Start(t, llmtest.Config{Answer: ready, Formats: []string{}})
	for name, c := range map[string]struct {
		o     OpenAIOptions
		model string
		want  []string
	}{
		"no server":          {OpenAIOptions{URL: gone(t)}, "m", []string{"judge.url", "refused"}},
		"wrong path":         {OpenAIOptions{URL: strings.TrimSuffix(keyed.URL, "/v1"), APIKey: secret}, "m", []string{"judge.url", "/v1"}},
		"a website":          {OpenAIOptions{URL: site.URL}, "m", []string{"judge.url", "/v1"}},
		"no key":             {OpenAIOptions{URL: keyed.URL}, "m", []string{"judge.api_key_env", "wants an API key"}},
		"wrong key":          {OpenAIOptions{URL: keyed.URL, APIKey: "sk-another-key-0123456789"}, "m", []string{"judge.api_key_env", "refuses the API key"}},
		"unknown model":      {OpenAIOptions{URL: listed.URL}, "qwen3-9b", []string{"judge.model", `did you mean "qwen3-8b"?`}},
		"unlisted model":     {OpenAIOptions{URL: unlisted.URL}, "qwen", []string{"judge.model", "try pulling it first"}},
		"no model":           {OpenAIOptions{URL: listed.URL}, "", []string{"set judge.model"}},
		"unsupported format": {OpenAIOptions{URL: picky.URL, ResponseFormat: formatObject}, "m", []string{"judge.response_format", "unsupported"}},
	} {
		err := open(t, c.o).Preflight(t.Context(), c.model)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		if err != nil && strings.Contains(err.Error(), "sk-") {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

// A server on the loopback address without keys and without a list of models must do, whatever formats it takes, and
// calls must then use the best of these.
func TestPreflightFindsTheFormat(t *testing.T) {
	for want, formats := range map[string][]string{
		formatSchema: nil,
		formatObject: {formatObject},
		"":           {},
	} {
		var used string
		s := llmtest.Start(t, llmtest.Config{Formats: formats, Models: []string{"vendor/m:free"}, Answer: func(r *llmtest.Request) llmtest.Response {
			used = r.ResponseFormat.Type
			return ready(r)
		}})
		server := open(t, OpenAIOptions{URL: s.URL})
		if err := server.Preflight(t.Context(), "vendor/m:free"); err != nil {
			t.Fatal(err)
		}
		used, before := "?", s.Requests()
		call := &Call{Model: "vendor/m:free", Schema: verdictSchema, Name: "verdict", MaxTokens: 1}
		if _, err := server.Complete(t.Context(), call); err != nil || used != want || s.Requests() != before+1 {
			t.Errorf("formats %v: %q used, %d requests, %v", formats, used, s.Requests()-before, err)
		}
	}
}

// Some servers break down over a format that they do not know.
func TestPreflightAfterABreakdown(t *testing.T) {
	s := llmtest.Start(t, llmtest.Config{Answer: func(r *llmtest.Request) llmtest.Response {
		if r.ResponseFormat.Type == formatSchema {
			return llmtest.Response{Fault: llmtest.ServerError}
		}
		return ready(r)
	}})
	server := open(t, OpenAIOptions{URL: s.URL})
	if err := server.Preflight(t.Context(), "m"); err != nil || server.formatOf("m") != formatObject {
		t.Errorf("%s, %v", server.formatOf("m"), err)
	}
}

// A schema that the server does not take must not cost the answer.
func TestRefusedSchema(t *testing.T) {
	s := llmtest.Start(t, llmtest.Config{Answer: ready, Formats: []string{}})
	call := &Call{Model: "m", Schema: verdictSchema, Name: "verdict", MaxTokens: 1}
	if reply, err := open(t, OpenAIOptions{URL: s.URL}).Complete(t.Context(), call); err != nil || reply.Text == "" {
		t.Errorf("auto: %v", err)
	}
	if _, err := open(t, OpenAIOptions{URL: s.URL, ResponseFormat: formatSchema}).Complete(t.Context(), call); statusOf(err) != http.StatusBadRequest {
		t.Errorf("json_schema: %v", err)
	}
}

func TestServes(t *testing.T) {
	for _, c := range []struct {
		listed, model string
		want          bool
	}{
		{"llama3:latest", "llama3", true},                     // Ollama
		{"models/gemini-2.0-flash", "gemini-2.0-flash", true}, // Google
		{"vendor/m", "vendor/m:online", true},                 // OpenRouter
		{"llama3", "llama", false},
		{"vendor/m", "m2", false},
	} {
		if got := serves([]string{"other", c.listed}, c.model); got != c.want {
			t.Errorf("serves(%s, %s) = %v", c.listed, c.model, got)
		}
	}
}

func TestPreflightEndsWithItsContext(t *testing.T) {
	s := llmtest.Start(t, llmtest.Config{Answer: func(*llmtest.Request) llmtest.Response { return llmtest.Response{Fault: llmtest.Hang} }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := open(t, OpenAIOptions{URL: s.URL}).Preflight(ctx, "m"); err == nil {
		t.Error("no error")
	}
}
