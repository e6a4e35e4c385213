package main

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/llm/llmtest"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/env"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// askServer has a server asked one question.
func askServer(t *testing.T, c llmtest.Config, e *trainer.Episodes, change func(s *configs.EvalServer)) (got eval.Answer, err error) {
	server := llmtest.StartInMemory(t, c)
	cfg := configs.Default()
	cfg.Eval.Server.URL, cfg.Eval.Server.Model = server.URL, "m"
	if change != nil {
		change(&cfg.Eval.Server)
	}
	return askOne(t, &served{cfg: cfg, episodes: e, console: io.Discard, way: server.RoundTripper})
}

func askOne(t *testing.T, p *served) (got eval.Answer, err error) {
	row := map[string]any{"question": "Where?", "answer": "Bex", "context": []any{[]any{"T", []any{"It is in Bex."}}}}
	item := eval.Item{Key: "q", Messages: []grpo.Message{{Role: "user", Content: "Where?"}}, Task: true, Row: row}
	err = p.Answer(t.Context(), []eval.Ask{{Item: &item}}, eval.Sampling{MaxTokens: 50, TopP: 1, RepetitionPenalty: 1}, func(_ int, a eval.Answer) error {
		got = a
		return nil
	})
	return got, err
}

// at says so to the n-th request on (from 0), up to some number of them.
func at(n, times int64, bad llmtest.Response) func(*llmtest.Request) llmtest.Response {
	var requests atomic.Int64
	return func(*llmtest.Request) llmtest.Response {
		if i := requests.Add(1) - 1; i >= n && i < n+times {
			return bad
		}
		return llmtest.Response{Content: "Bex"}
	}
}

// probes is how many requests a client makes before it asks questions.
const probes = 2

// What passes is waited for, and what does not is told with what to set.
func TestAServersFaults(t *testing.T) {
	const always = 1 << 40
	for name, c := range map[string]struct {
		server llmtest.Config
		change func(s *configs.EvalServer)
		want   string // "": it answers Bex
	}{
		"429 passes":     {server: llmtest.Config{Answer: at(probes, 3, llmtest.Response{Fault: llmtest.RetryAfter})}},
		"a cut passes":   {server: llmtest.Config{Answer: at(probes, 2, llmtest.Response{Fault: llmtest.Cut})}},
		"500 passes":     {server: llmtest.Config{Answer: at(probes, 2, llmtest.Response{Fault: llmtest.ServerError})}},
		"a cut stays":    {server: llmtest.Config{Answer: at(probes, always, llmtest.Response{Fault: llmtest.Cut})}, want: "the server is down"},
		"429 stays":      {server: llmtest.Config{Answer: at(probes, always, llmtest.Response{Fault: llmtest.TooManyRequests})}, want: "HTTP 429"},
		"a web page":     {server: llmtest.Config{Answer: at(0, always, llmtest.Response{Fault: llmtest.HTML})}, want: "eval.server.url"},
		"another model":  {server: llmtest.Config{Models: []string{"n"}, Answer: at(0, 0, llmtest.Response{})}, want: "eval.server.model"},
		"the key":        {server: llmtest.Config{Key: "secret", Answer: at(0, 0, llmtest.Response{})}, want: "set eval.server.api_key_env"},
		"no environment": {change: func(s *configs.EvalServer) { s.APIKeyEnv = "NOT_SET_ANYWHERE" }, want: "export it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := askServer(t, c.server, nil, c.change)
				switch {
				case c.want == "" && (err != nil || got.Text != "Bex" || got.Finish != eval.Stopped):
					t.Errorf("%+v, %v", got, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "judge")):
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		})
	}
}

// instead is a way to a server that gives another reply to what follows the client's first requests.
type instead struct {
	http.RoundTripper
	code int
	body string
	most int64 // requests; 0: all
	seen *atomic.Int64
}

func (w instead) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := w.RoundTripper.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		return reply, err
	}
	if n := w.seen.Add(1); n <= probes || w.most > 0 && n > probes+w.most {
		return reply, nil
	}
	reply.Body.Close()
	reply.StatusCode, reply.ContentLength, reply.Body = w.code, int64(len(w.body)), io.NopCloser(strings.NewReader(w.body))
	return reply, nil
}

// A question that the server refuses is delivered as refused, the others with what they got; a server that refuses all is an error, and so are a
// reply without choices and sampling that OpenAI's protocol has no words for.
func TestAServersRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := llmtest.StartInMemory(t, llmtest.Config{Answer: at(0, 0, llmtest.Response{})})
		cfg := configs.Default()
		cfg.Eval.Server.URL, cfg.Eval.Server.Model, cfg.Eval.Server.MaxConcurrency = server.URL, "m", 1
		var said strings.Builder
		p := &served{cfg: cfg, console: &said}
		for name, c := range map[string]struct {
			way  instead
			want string
		}{
			"all refused": {instead{code: http.StatusBadRequest, body: `{"error":{"message":"too long"}}`}, "refuses all 1 questions"},
			"no choices":  {instead{code: http.StatusOK, body: `{"choices":[]}`}, "has no choices"},
		} {
			c.way.RoundTripper, c.way.seen = server.RoundTripper, &atomic.Int64{}
			p.way = c.way
			if _, err := askOne(t, p); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		p.way = instead{server.RoundTripper, http.StatusBadRequest, `{"error":{"message":"too long"}}`, 1, &atomic.Int64{}}
		got := map[string]int{}
		asks := []eval.Ask{{Item: &eval.Item{Key: "a"}}, {Item: &eval.Item{Key: "b"}}}
		err := p.Answer(t.Context(), asks, eval.Sampling{MaxTokens: 50, TopP: 1, RepetitionPenalty: 1}, func(_ int, a eval.Answer) error {
			got[a.Finish]++
			return nil
		})
		if err != nil || got[eval.Refused] != 1 || got[eval.Stopped] != 1 || !strings.Contains(said.String(), "too long") {
			t.Errorf("%v, %v, %s", got, err, said.String())
		}
		if err := p.takes(eval.Sampling{MinP: 0.1, RepetitionPenalty: 1}); err == nil || !strings.Contains(err.Error(), "official_sampling") {
			t.Errorf("%v", err)
		}
	})
}

// A task is played with the server's turns: it searches, and finishes.
func TestAServerPlaysEpisodes(t *testing.T) {
	qa, err := env.NewQA(env.Run{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := llmtest.Config{Answer: func(r *llmtest.Request) llmtest.Response {
		if strings.Contains(r.Last(), "It is in Bex.") {
			return llmtest.Response{Content: "Finish[Bex]"}
		}
		return llmtest.Response{Content: "Search[bex]"}
	}}
	synctest.Test(t, func(t *testing.T) {
		got, err := askServer(t, c, &trainer.Episodes{Env: qa}, nil)
		if err != nil || got.Text != "Bex" || len(got.Turns) != 2 || got.Turns[0].Kind != string(env.Result) || len(got.Messages) != 2 {
			t.Errorf("%+v, %v", got, err)
		}
		c.Answer = func(*llmtest.Request) llmtest.Response {
			return llmtest.Response{Content: "What?", CompletionTokens: 30}
		}
		if got, err = askServer(t, c, &trainer.Episodes{Env: qa}, nil); err != nil || got.Text != "" || got.Finish != eval.CutOff || len(got.Turns) != 2 || got.Turns[1].Kind != trainer.CutOff {
			t.Errorf("an episode of 50 tokens: %+v, %v", got, err)
		}
	})
}
