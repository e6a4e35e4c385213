package llm

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/llm/llmtest"
	"github.com/rubicon-rl/rubicon/rewards"
)

func TestOptionErrors(t *testing.T) {
	f, _ := says("x")
	for want, change := range map[string]func(*Options){
		"set judge.url":                 func(o *Options) { o.Transport = nil },
		"judge.temperature":             func(o *Options) { nan := math.NaN(); o.Temperature = &nan },
		"judge.tiers.update.top_p":      func(o *Options) { zero := 0.0; o.Tiers = map[rewards.Tier]Settings{"update": {TopP: &zero}} },
		`did you mean "score"`:          func(o *Options) { o.Tiers = map[rewards.Tier]Settings{"scores": {}} },
		"judge.max_retries":             func(o *Options) { o.MaxRetries = -1 },
		"judge.retry_max":               func(o *Options) { o.RetryMax = o.RetryMin / 2 },
		"judge.prompt_price":            func(o *Options) { o.BudgetMoney = 1 },
		"judge.cache_mb":                func(o *Options) { o.Cache, o.CacheBytes = t.TempDir(), 1 },
		"not both":                      func(o *Options) { o.Record, o.Replay = "a", "b" },
		"judge.response_format":         func(o *Options) { o.ResponseFormat = "xml" },
		"judge.max_concurrency":         func(o *Options) { o.MaxConcurrency = -1 },
		"judge.replay":                  func(o *Options) { o.Replay = filepath.Join(t.TempDir(), "none.jsonl") },
		"spent.json: invalid character": func(o *Options) { o.SpentFile = write(t, "spent.json", "?") },
		"judge.api_key_env":             func(o *Options) { o.Transport, o.URL, o.APIKey = nil, "http://127.0.0.1:1/v1", "a b" },
	} {
		o := options(f)
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each tier asks with its own settings, and the key of one server never goes to another.
func TestTiers(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]string{}
	start := func(name string) *llmtest.Server {
		return llmtest.Start(t, llmtest.Config{Answer: func(r *llmtest.Request) llmtest.Response {
			mu.Lock()
			defer mu.Unlock()
			seen[r.Last()] = fmt.Sprint(name, r.Model, *r.Temperature, *r.TopP, r.MaxTokens, r.Header.Get("Authorization"))
			return llmtest.Response{Content: "ok"}
		}})
	}
	a, b := start("A"), start("B")
	local, calls := says("from here")
	half, hot := 0.5, 1.0
	o := options(nil)
	o.Transport, o.URL, o.APIKey, o.Model, o.MaxTokens = nil, a.URL, secret, "base", 100
	o.Tiers = map[rewards.Tier]Settings{
		rewards.TierAnalyze:   {Model: "big", Temperature: &hot, TopP: &half, MaxTokens: 7},
		rewards.TierSummarize: {URL: b.URL},
		rewards.TierQuery:     {URL: b.URL, APIKey: "another"},
		rewards.TierUpdate:    {Transport: local},
	}
	c := client(t, o)
	for _, name := range tiers() {
		if _, err := c.Ask(t.Context(), rewards.Question{Tier: name, User: string(name)}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"score":     fmt.Sprint("A", "base", 0.0, 1.0, 100, "Bearer "+secret),
		"analyze":   fmt.Sprint("A", "big", 1.0, 0.5, 7, "Bearer "+secret),
		"summarize": fmt.Sprint("B", "base", 0.0, 1.0, 100, ""),
		"query":     fmt.Sprint("B", "base", 0.0, 1.0, 100, "Bearer another"),
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("got %v\nwant %v", seen, want)
	}
	if len(*calls) != 1 || (*calls)[0].Model != "base" {
		t.Errorf("the given transport got %v", *calls)
	}
}

// A judge that works must pass, with one request to each model that is used, and what it refuses must name its tier.
func TestClientPreflight(t *testing.T) {
	var models atomic.Value
	models.Store("")
	s := llmtest.Start(t, llmtest.Config{Models: []string{"good", "late"}, Answer: func(r *llmtest.Request) llmtest.Response {
		if r.Temperature != nil { // not the transport's own request
			models.Store(models.Load().(string) + r.Model + " ")
		}
		return llmtest.Response{Content: "ready"}
	}})
	o := options(nil)
	o.Transport, o.URL, o.Model = nil, s.URL, "good"
	o.Tiers = map[rewards.Tier]Settings{rewards.TierUpdate: {Model: "late"}}
	if err := client(t, o).Preflight(t.Context()); err != nil || models.Load() != "good late " {
		t.Errorf("%v, asked %q", err, models.Load())
	}
	o.Tiers = map[rewards.Tier]Settings{rewards.TierUpdate: {Model: "lake"}}
	if err := client(t, o).Preflight(t.Context()); err == nil || !strings.Contains(err.Error(), "judge.tiers.update: ") {
		t.Error(err)
	}
	o = options(nil)
	o.Transport, o.URL, o.Model = nil, gone(t), "good"
	o.Sleep = func(context.Context, time.Duration) error {
		t.Error("it waits for a server that is not there")
		return nil
	}
	if err := client(t, o).Preflight(t.Context()); err == nil || !strings.Contains(err.Error(), "judge.url") {
		t.Error(err)
	}
	o = options(fake(func(context.Context, *Call) (*Reply, error) { return &Reply{}, ErrEmpty }))
	if err := client(t, o).Preflight(t.Context()); err != nil {
		t.Errorf("a model that says nothing to nothing: %v", err)
	}
	tries := 0
	o = options(fake(func(_ context.Context, c *Call) (*Reply, error) {
		tries++
		return nil, &StatusError{Code: http.StatusBadRequest, Body: "temperature must be 1"}
	}))
	if err := client(t, o).Preflight(t.Context()); err == nil || tries != 1 || !strings.Contains(err.Error(), "temperature must be 1; set what it takes") {
		t.Errorf("%v after %d tries", err, tries)
	}
}
