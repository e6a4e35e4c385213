package trainer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
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
	p.Episodes = &Episodes{Env: counting{3}, MaxTurnLength: 3, Conversation: p.Conversation}
	for most, want := range map[int]string{60: "stop after 3", 4: "length after 1"} {
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

// tasks is a benchmark of two tasks of several turns.
type tasks struct{}

func (tasks) Items() []eval.Item {
	out := []eval.Item{{Key: "a"}, {Key: "b"}}
	for i := range out {
		out[i].Task, out[i].Row, out[i].Messages = true, map[string]any{"n": 1.0}, []grpo.Message{{Role: "user", Content: "in one turn"}}
	}
	return out
}

func (tasks) Score(_ context.Context, _ *eval.Item, answer string) (eval.Verdict, error) {
	return eval.Verdict{Values: map[string]float64{"three": float64(strings.Count(answer, "after 3"))}}, nil
}

func (tasks) Metrics(v []eval.Verdict) []eval.Metric {
	return []eval.Metric{{Name: "three", Value: (v[0].Values["three"] + v[1].Values["three"]) / 2, Of: "three"}}
}

func (tasks) Official(s eval.Sampling) eval.Sampling {
	s.Temperature, s.MaxTokens = 0.7, 50
	return s
}

// A task is played in the run's environment, and every turn of it is kept; without an environment it is a question.
func TestTasksAreEpisodes(t *testing.T) {
	tr := episodeRun(t, t.TempDir(), "max_steps=1")
	for _, episodes := range []*Episodes{tr.rollouts.Episodes, nil} {
		r := tr.rollouts
		r.Episodes = episodes
		file := filepath.Join(t.TempDir(), "a.jsonl")
		m := Measured{Name: "tasks", Benchmark: tasks{}}
		result, err := eval.Run(t.Context(), eval.Job{Setting: m.Setting(r.Config), Benchmark: tasks{}, Policy: &Answers{&r, tr.rollouts.Episodes.Conversation}, File: file})
		check(t, err)
		_, records, err := eval.Read(file)
		check(t, err)
		for _, rec := range records {
			asked := rec.Messages[0].Content
			if episodes != nil && (len(rec.Turns) != 3 || rec.Answer != "after 3" || asked != "begin "+rec.Key || rec.Turns[0].Observation != "seen 1") {
				t.Errorf("an episode is kept as %+v", rec)
			}
			if episodes == nil && (len(rec.Turns) != 0 || asked != "in one turn") {
				t.Errorf("a question is kept as %+v", rec)
			}
		}
		if want := map[bool]float64{true: 1, false: 0}[episodes != nil]; result.Metrics[0].Value != want {
			t.Errorf("%v with an environment: %v, want %v", episodes != nil, result.Metrics[0].Value, want)
		}
	}
}

// The authors' sampling counts where it is asked for; the environment stands in the settings of a benchmark that has tasks.
func TestSettings(t *testing.T) {
	c := configs.Default()
	c.Rollout.MaxCompletionLength, c.Env.Kind, c.Env.Options = 200, "qa", map[string]any{"searches": 2}
	m := Measured{Name: "tasks", Benchmark: tasks{}}
	s := m.Setting(c)
	if s.Generation.MaxTokens != 200 || s.Generation.Temperature != 0 || s.Environment["kind"] != "qa" || !maps.Equal(s.Environment["options"].(map[string]any), c.Env.Options) {
		t.Errorf("%+v", s)
	}
	c.Eval.OfficialSampling = true
	if s = m.Setting(c); s.Generation.MaxTokens != 50 || s.Generation.Temperature != 0.7 {
		t.Errorf("%+v", s)
	}
}
