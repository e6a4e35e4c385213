package arco

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// directions embeds texts by their first letter: equal letters point the same way, different ones stand at right angles.
type directions struct{}

func (directions) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, 26)
		out[i][text[0]-'a'] = 2
	}
	return out, nil
}

func (directions) Name() string { return "directions" }

// By hand: the first step has themes a (two criteria, one of them twice in the text) and b; the second has three.
func TestThemes(t *testing.T) {
	w, err := Themes(t.Context(), []Step{
		{Criteria: []string{"a1", "a1", "a2", "b"}, Scores: []float64{0.1, 0.5, -0.1, 1}},
		{Criteria: []string{"a", "b", "c", "d"}, Scores: []float64{0, 0, 0, 0}},
		{Criteria: []string{"", ""}, Scores: []float64{0, 0}}, // nothing was written
	}, directions{}, 1)
	check(t, err)
	want := Width{Steps: 2, K: 4, Themes: 3, ThemeRatio: 0.75, Exact: 0.125, Duplicates: 0.25, Range: 0.6}
	for _, c := range [][2]float64{{w.K, want.K}, {w.Themes, want.Themes}, {w.ThemeRatio, want.ThemeRatio}, {w.Exact, want.Exact}, {w.Duplicates, want.Duplicates}, {w.Range, want.Range}} {
		if math.Abs(c[0]-c[1]) > 1e-12 || w.Steps != 2 {
			t.Fatalf("%+v, want %+v", w, want)
		}
	}
}

// finder finds the action that the criteria name, gives every action the mark 4, and has no answer about criteria that are lost.
type finder struct{}

func (finder) Ask(_ context.Context, q rewards.Question) (string, error) {
	criteria, choices, _ := strings.Cut(q.User, "The actions:")
	switch {
	case q.Name == "mark":
		return `{"mark": 4}`, nil
	case strings.Contains(criteria, "lost"):
		return "", rewards.ErrNoAnswer
	}
	number := "1"
	for word := range strings.FieldsSeq(choices) {
		if n, ok := strings.CutSuffix(word, "."); ok {
			number = n
		}
		for _, name := range []string{"x1", "x2", "x3"} {
			if strings.Contains(criteria, name) && strings.Contains(word, name) {
				return `{"action": ` + number + `}`, nil
			}
		}
	}
	return `{"action": 1}`, nil
}

func TestBinding(t *testing.T) {
	e := Episode{Task: "t", Steps: []Move{{Action: "Search[x1]", Observation: "a"}, {Action: "Search[x2]", Observation: "b"}, {Action: "Search[x3]", Observation: "c"}, {Action: "Finish[x4]", Observation: ""}}}
	marks := []Step{{Criteria: []string{"about x1"}}, {Criteria: []string{"about x2"}}, {Criteria: []string{"lost"}}, {Criteria: []string{"anything"}}}
	short := Episode{Task: "t", Steps: []Move{{Action: "Search[x1]", Observation: ""}, {Action: "Search[x1]", Observation: ""}, {Action: "Search[x2]", Observation: ""}, {Action: "Finish[x]", Observation: ""}}}
	got, err := Bindings(t.Context(), finder{}, []Episode{e, short}, [][]Step{marks, marks}, 5)
	check(t, err)
	search, finish, all := got["Search"], got["Finish"], got["all"]
	if search.Steps != 2 || search.Bind != 1 || search.Spec != 4 || search.Lost != 1 || all.Steps != 3 || finish.Steps != 1 || all.Lost != 1 {
		t.Errorf("search %+v, finish %+v, all %+v", search, finish, all)
	}
	down := errors.New("down")
	if _, err := Bindings(t.Context(), failing{down}, []Episode{e}, [][]Step{marks}, 5); !errors.Is(err, down) {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Ask(context.Context, rewards.Question) (string, error) { return "", f.err }

// By hand: the right steps score 0.5 and 0.1, the wrong ones 0.3, 0.1 and -1. Of the six pairs 0.5 wins three, 0.1 wins one and ties one:
// 4.5 of 6. A step that the environment says nothing of is not counted.
func TestKnown(t *testing.T) {
	var k Known
	for _, s := range []struct {
		verdict grpo.Verdict
		scores  []float64
	}{{grpo.Right, []float64{0.5}}, {grpo.Right, []float64{0.5, -0.3}}, {0, []float64{9}}, {grpo.Wrong, []float64{0.3}}, {grpo.Wrong, []float64{0.1}}, {grpo.Wrong, []float64{-1}}} {
		k.Add(Move{Verdict: s.verdict}, Step{Scores: s.scores})
	}
	if k.Steps() != 5 || k.AUC() != 4.5/6 {
		t.Errorf("%d steps, AUC %v, want 5 and 0.75", k.Steps(), k.AUC())
	}
	var none Known
	none.Add(Move{Verdict: grpo.Right}, Step{Scores: []float64{1}})
	if !math.IsNaN(none.AUC()) {
		t.Errorf("AUC of right steps alone is %v", none.AUC())
	}
}
