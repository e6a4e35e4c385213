package trainer

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/trainer/env"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

// answering is a policy of the little model and n questions for it.
func answering(t *testing.T, n int, overrides ...string) (*Answers, []eval.Ask) {
	p := parts(t, overrides...)
	conversation := Conversation{Tokenizer: p.Tokenizer, EOS: EOS(p.Model.Config(), p.Tokenizer)}
	asks := make([]eval.Ask, n)
	for i := range asks {
		asks[i].Item = &eval.Item{Key: fmt.Sprint(i), Messages: []grpo.Message{{Role: "user", Content: fmt.Sprint("Question ", i)}}, Task: true}
	}
	return &Answers{&Rollouts{Config: p.Config, Model: p.Model, Adapter: p.Adapter, Tokenizer: p.Tokenizer}, conversation}, asks
}

var short = eval.Sampling{MaxTokens: 4, Temperature: 1, TopP: 1, RepetitionPenalty: 1, Seed: 7}

// An answer is delivered when it is finished, also one that is cut off, and not at the end of the generation: who stops after the first has
// that one, with the answer that it has in any batch.
func TestAnswersAreDeliveredOneByOne(t *testing.T) {
	all := map[int]string{}
	p, asks := answering(t, 5)
	check(t, p.Answer(t.Context(), asks, short, func(i int, a eval.Answer) error {
		all[i] = a.Text + a.Finish
		return nil
	}))
	if len(all) != 5 {
		t.Fatalf("%d answers", len(all))
	}
	p, asks = answering(t, 5, "rollout.max_batch=1")
	enough := errors.New("enough")
	some := map[int]string{}
	err := p.Answer(t.Context(), asks, short, func(i int, a eval.Answer) error {
		some[i] = a.Text + a.Finish
		return enough
	})
	if !errors.Is(err, enough) || len(some) != 1 || some[0] != all[0] {
		t.Errorf("%v, %v; together it was %q", err, some, all[0])
	}
}

// A second try, and a repeat, draw other random numbers; the same one draws the same.
func TestTriesDrawAnew(t *testing.T) {
	p, asks := answering(t, 1)
	texts := map[string]string{}
	for name, ask := range map[string]eval.Ask{"first": {}, "again": {}, "try": {Try: 1}, "repeat": {Repeat: 1}} {
		ask.Item = asks[0].Item
		check(t, p.Answer(t.Context(), []eval.Ask{ask}, short, func(_ int, a eval.Answer) error {
			texts[name] = a.Text
			return nil
		}))
	}
	if texts["first"] != texts["again"] || texts["first"] == texts["try"] || texts["first"] == texts["repeat"] || texts["try"] == texts["repeat"] {
		t.Errorf("%q", texts)
	}
}

// Tasks are episodes: three turns here, of which the answer is what the environment took for it; one without room for them is cut off.
func TestTasksArePlayed(t *testing.T) {
	p, asks := answering(t, 3)
	p.Episodes = &Episodes{Env: answered{counting{3}}, MaxTurnLength: 3, Conversation: p.Conversation}
	for most, want := range map[int]string{60: "stop the answer", 4: "length "} {
		s := short
		s.MaxTokens = most
		n := 0
		check(t, p.Answer(t.Context(), asks, s, func(i int, a eval.Answer) error {
			n++
			if a.Finish+" "+a.Text != want || most == 60 && len(a.Turns) != 3 || len(a.Messages) != 1 || a.Messages[0].Content != "begin "+asks[i].Item.Key || a.Tokens > 9 {
				t.Errorf("%d tokens: %+v", most, a)
			}
			return nil
		}))
		if n != 3 {
			t.Errorf("%d answers", n)
		}
	}
	asks[0].Item.Task = false
	check(t, p.Answer(t.Context(), asks[:1], short, func(_ int, a eval.Answer) error {
		if a.Turns != nil || a.Text == "" {
			t.Errorf("a question that is no task: %+v", a)
		}
		return nil
	}))
}

// answered is counting whose episodes end in an answer.
type answered struct{ counting }

type answeredEpisode struct{ env.Episode }

func (e answered) Reset(ctx context.Context, row *grpo.Prompt) (env.Episode, env.Observation, error) {
	episode, o, err := e.counting.Reset(ctx, row)
	return answeredEpisode{episode}, o, err
}

func (e answeredEpisode) Step(ctx context.Context, said string) (env.Observation, error) {
	o, err := e.Episode.Step(ctx, said)
	if o.Done {
		o.Answer = "the answer"
	}
	return o, err
}
