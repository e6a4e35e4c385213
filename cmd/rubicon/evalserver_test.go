package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// A question that the server refuses is delivered as refused, the others with what they got; a server that refuses all is an error,
// and so is sampling that OpenAI's protocol has no words for.
func TestServedAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct{ Content string }
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &req)
		if len(req.Messages) > 0 && strings.Contains(req.Messages[0].Content, "too long") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error": {"message": "this model's maximum context length is 8 tokens"}}`)
			return
		}
		fmt.Fprint(w, `{"choices": [{"message": {"role": "assistant", "content": "So it is."}, "finish_reason": "length"}], "usage": {"completion_tokens": 3}}`)
	}))
	defer server.Close()
	c := configs.Default()
	c.Eval.Server.URL, c.Eval.Server.Model = server.URL+"/v1", "m"
	p := &served{c, io.Discard}
	item := func(text string) eval.Ask {
		return eval.Ask{Item: &eval.Item{Key: text, Messages: []grpo.Message{{Role: "user", Content: text}}}}
	}
	sampling := eval.Sampling{MaxTokens: 8, TopP: 1, RepetitionPenalty: 1}
	got := make([]eval.Answer, 3)
	deliver := func(i int, a eval.Answer) error {
		got[i] = a
		return nil
	}
	if err := p.Answer(t.Context(), []eval.Ask{item("a"), item("too long"), item("b")}, sampling, deliver); err != nil {
		t.Fatal(err)
	}
	whole := eval.Answer{Text: "So it is.", Finish: eval.CutOff, Tokens: 3}
	for i, want := range []eval.Answer{whole, {Finish: eval.Refused}, whole} {
		if g := got[i]; g.Text != want.Text || g.Finish != want.Finish || g.Tokens != want.Tokens {
			t.Errorf("question %d: %+v, want %+v", i, g, want)
		}
	}
	if err := p.Answer(t.Context(), []eval.Ask{item("too long")}, sampling, deliver); err == nil || !strings.Contains(err.Error(), "refuses all 1 questions") || !strings.Contains(err.Error(), "maximum context length") {
		t.Errorf("a server that refuses all: %v", err)
	}
	sampling.MinP = 0.1
	if err := p.Answer(t.Context(), []eval.Ask{item("a")}, sampling, deliver); err == nil || !strings.Contains(err.Error(), "official_sampling") {
		t.Errorf("min_p: %v", err)
	}
}
