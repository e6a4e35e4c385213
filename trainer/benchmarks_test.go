package trainer

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/trainer/eval"
)

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
	if s.Generation.MaxTokens != 200 || s.Generation.Temperature != 0 || s.Environment != `qa{"searches":2}` {
		t.Errorf("%+v", s)
	}
	c.Eval.OfficialSampling = true
	if s = m.Setting(c); s.Generation.MaxTokens != 50 || s.Generation.Temperature != 0.7 {
		t.Errorf("%+v", s)
	}
}
