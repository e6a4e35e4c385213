package remote

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/policy"
)

// engine is one on fakes, with what it said and how long it waited.
type engine struct {
	*Engine
	notes  []string
	pauses []time.Duration
}

func open(t *testing.T, o Options, servers ...*vllm) *engine {
	t.Helper()
	e := &engine{}
	for _, v := range servers {
		o.URLs = append(o.URLs, v.url)
	}
	o.APIKey, o.Timeout, o.MaxConcurrency = "key", time.Minute, 1
	o.Notify = func(text string) { e.notes = append(e.notes, text) }
	o.Pause = func(_ context.Context, d time.Duration) error {
		e.pauses = append(e.pauses, d)
		return nil
	}
	var err error
	e.Engine, err = New(o)
	must(t, err)
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// adapter is a folder that a server takes for an adapter.
func adapter(t *testing.T) string {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte("{}"), 0o644))
	return dir
}

func params() policy.SamplingParams {
	return policy.SamplingParams{Temperature: 1, TopP: 1, RepetitionPenalty: 1, MaxNewTokens: 5, EOS: []int32{end}}
}

func requests(prompts ...int32) []policy.Request {
	var list []policy.Request
	for _, p := range prompts {
		list = append(list, policy.Request{Prompt: []int32{p, 3}, N: 2, Stream: []uint64{1, uint64(p)}})
	}
	return list
}

// Samples are the tokens and log-probabilities of the server, in the order of the prompts and of index.
func TestGenerate(t *testing.T) {
	v := fake(t)
	e := open(t, Options{}, v)
	must(t, e.Load(t.Context(), "a1", adapter(t)))
	got, err := e.Generate(t.Context(), requests(4, 5), params())
	must(t, err)
	for i, p := range []int32{4, 5} {
		for k := range 2 {
			s := got[i][k]
			if !slices.Equal(s.Tokens, []int32{p, int32(k), end}) || !slices.Equal(s.LogP, []float32{-0.5, -float32(k), 0}) ||
				!slices.Equal(s.Filtered, s.LogP) || s.Finish != policy.FinishEOS {
				t.Errorf("prompt %d, sample %d: %+v", i, k, s)
			}
		}
	}
	q := v.asked[0]
	for name, want := range map[string]any{
		"model": "a1", "n": 2.0, "max_tokens": 5.0, "temperature": 1.0, "top_p": 1.0, "top_k": -1.0, "min_p": 0.0, "repetition_penalty": 1.0,
	} {
		if q[name] != want { // what is left out a server takes from the model's generation_config.json
			t.Errorf("%s is %v, want %v", name, q[name], want)
		}
	}
	if q["seed"] == v.asked[1]["seed"] {
		t.Error("two prompts have one seed")
	}
	r := requests(4)
	r[0].MaxTokens = 3
	p := params()
	p.Greedy = true
	_, err = e.Generate(t.Context(), r, p)
	must(t, err)
	if q := v.asked[2]; q["max_tokens"] != 3.0 || q["temperature"] != 0.0 {
		t.Errorf("max_tokens %v, temperature %v", q["max_tokens"], q["temperature"])
	}
}

// A new adapter replaces the old one everywhere; one that is there already is not loaded again.
func TestLoad(t *testing.T) {
	one, two := fake(t), fake(t)
	two.loaded = []string{"a1"}
	e := open(t, Options{}, one, two)
	must(t, e.Load(t.Context(), "a1", adapter(t)))
	must(t, e.Load(t.Context(), "a2", adapter(t)))
	must(t, e.Load(t.Context(), "a2", adapter(t)))
	for i, want := range [][]string{{"load a1", "load a2", "unload a1"}, {"load a2", "unload a1"}} {
		if v := []*vllm{one, two}[i]; !slices.Equal(v.calls, want) || !slices.Equal(v.loaded, []string{"a2"}) {
			t.Errorf("server %d: %q, loaded %q", i, v.calls, v.loaded)
		}
	}
	if err := e.Load(t.Context(), "a3", t.TempDir()); err == nil || !strings.Contains(err.Error(), "--enable-lora") {
		t.Errorf("a folder without an adapter: %v", err)
	}
	got, err := e.Generate(t.Context(), requests(4), params())
	must(t, err)
	if len(got[0]) != 2 || one.asked[0]["model"] != "a2" {
		t.Errorf("after a load that failed the last one counts, not %v", one.asked[0]["model"])
	}
}

// What a server cannot answer the next one does; pauses are only between rounds; a server that has lost the adapter is given it.
func TestServersFail(t *testing.T) {
	busy, well := fake(t), fake(t)
	busy.fault = func(int) int { return 503 }
	e := open(t, Options{MaxRetries: 3}, busy, well)
	must(t, e.Load(t.Context(), "a1", adapter(t)))
	_, err := e.Generate(t.Context(), requests(4, 5, 6), params())
	must(t, err)
	if len(well.asked) != 3 || len(e.pauses) != 0 || len(e.notes) != 2 {
		t.Errorf("%d answered, pauses %v, notes %q", len(well.asked), e.pauses, e.notes)
	}
	well.fault = busy.fault
	if _, err := e.Generate(t.Context(), requests(4), params()); err == nil || !strings.Contains(err.Error(), "after 4 tries") {
		t.Errorf("nobody answers: %v", err)
	}
	if !slices.Equal(e.pauses, []time.Duration{firstPause}) {
		t.Errorf("pauses %v", e.pauses)
	}

	again := fake(t)
	e = open(t, Options{MaxRetries: 1}, again)
	must(t, e.Load(t.Context(), "a1", adapter(t)))
	again.loaded = nil // it was started again
	_, err = e.Generate(t.Context(), requests(4), params())
	must(t, err)
}

// A server that is down while an adapter is loaded is passed over, and has it when it is asked.
func TestServerComesBack(t *testing.T) {
	there, away := fake(t), fake(t)
	e := open(t, Options{MaxRetries: 2}, there, away)
	url := away.url
	e.o.URLs[1] = "http://127.0.0.1:1/v1"
	must(t, e.Load(t.Context(), "a1", adapter(t)))
	if len(e.notes) != 1 {
		t.Errorf("notes %q", e.notes)
	}
	e.o.URLs[1] = url
	_, err := e.Generate(t.Context(), requests(4, 5), params())
	must(t, err)
	if !slices.Equal(away.loaded, []string{"a1"}) {
		t.Errorf("loaded %q", away.loaded)
	}
}

// An answer that is not what was asked for is an error at once, not a sample.
func TestAnswersThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(c map[string]any)
	}{
		{"return_token_ids", func(c map[string]any) { delete(c, "token_ids") }},
		{"another prompt", func(c map[string]any) { c["prompt_token_ids"] = []int{1} }},
		{"not as many log-probabilities", func(c map[string]any) { c["logprobs"] = nil }},
		{"not as many log-probabilities", func(c map[string]any) { c["token_ids"] = []int{1, end} }},
		{"no log-probability of token 0", func(c map[string]any) {
			c["logprobs"] = map[string]any{"token_logprobs": []any{nil, -1, -1}}
		}},
		{"no log-probability of token 0", func(c map[string]any) {
			c["logprobs"] = map[string]any{"token_logprobs": []any{0.5, -1, -1}}
		}},
		{"max_tokens was 5", func(c map[string]any) { c["token_ids"] = []int{1, 2, 3, 4, 5, 6} }},
		{"ended with", func(c map[string]any) { c["finish_reason"] = "abort" }},
		{"ended with", func(c map[string]any) { c["token_ids"] = []int{1, 2, 3} }},
		{"one too many", func(c map[string]any) { c["index"] = 1 }},
	} {
		v := fake(t)
		v.spoil = c.spoil
		e := open(t, Options{MaxRetries: 5}, v)
		must(t, e.Load(t.Context(), "a1", adapter(t)))
		if _, err := e.Generate(t.Context(), requests(4), params()); err == nil || !strings.Contains(err.Error(), c.want) || len(v.asked) != 1 {
			t.Errorf("want %q at the first try, got %v at try %d", c.want, err, len(v.asked))
		}
	}
}

// A request that is wrong is not tried again.
func TestRefusedRequest(t *testing.T) {
	v := fake(t)
	v.fault = func(int) int { return 400 }
	e := open(t, Options{MaxRetries: 5}, v)
	must(t, e.Load(t.Context(), "a1", adapter(t)))
	if _, err := e.Generate(t.Context(), requests(4), params()); err == nil || !strings.Contains(err.Error(), "out of order") || len(v.asked) != 1 {
		t.Errorf("%v at try %d", err, len(v.asked))
	}
}
