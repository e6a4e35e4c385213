package arco

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/rewards"
)

func annotated() []Annotated {
	var out []Annotated
	for i, g := range played() {
		for k, c := range g.Completions {
			a := Annotated{Episode: Episode{ID: g.Prompt.ID, Task: task(g.Prompt), Reward: c.Rewards[0]}}
			for t, s := range c.Episode.Steps {
				a.Steps = append(a.Steps, Move{Action: s.Action, Observation: s.Observation})
				x := number(100*i + 10*k + t)
				a.Marks = append(a.Marks, Step{Criteria: []string{"names a", "x", "y"}, Scores: []float64{x, -x, 2 * x}})
			}
			out = append(out, a)
		}
	}
	return out
}

// The cross-entropy is that of every step's criteria computed by itself, whatever is computed together.
func TestTeachingLoss(t *testing.T) {
	var metrics []map[string]float64
	for _, once := range []int{50, 100000} {
		p := bound(t, map[string]any{"tokens_once": once})
		examples, err := p.model.examples(annotated())
		check(t, err)
		if n := len(examples); n != 8 {
			t.Fatalf("%d examples of 8 steps", n)
		}
		m, err := p.model.teach(examples)
		check(t, err)
		metrics = append(metrics, m)
	}
	for name, v := range metrics[0] {
		if math.Abs(v-metrics[1][name]) > 1e-4*math.Abs(v) {
			t.Errorf("%s is %v in small passes and %v in one", name, v, metrics[1][name])
		}
	}
	p := bound(t, nil)
	examples, err := p.model.examples(annotated())
	check(t, err)
	nll, tokens := 0.0, 0.0
	for _, e := range examples { // each by itself
		j := e.judged
		score := make([]bool, len(j.tokens))
		for i := j.from; i < len(score); i++ {
			score[i] = true
		}
		f := &policy.Forest{Segments: []policy.Segment{{Parent: policy.Root, Tokens: j.tokens, Score: score}}}
		pass, err := p.model.lm.Forward(f, policy.ForwardOptions{Adapter: trained, Temperature: 1})
		check(t, err)
		for _, logp := range pass.Output.LogP {
			nll -= float64(logp)
			tokens++
		}
		pass.Release()
	}
	m := metrics[0]
	if math.Abs(m["lm"]-nll/tokens) > 1e-5*nll/tokens || math.Abs(m["loss"]-m["lm"]-10*m["mse"]) > 1e-9 {
		t.Errorf("metrics %v, cross-entropy of each by itself %v", m, nll/tokens)
	}
}

func TestWarmRefuses(t *testing.T) {
	p := bound(t, nil)
	bad := annotated()
	bad[1].Marks = bad[1].Marks[:1]
	w := Warming{Batch: 1, Total: 1, Rate: func(int) float64 { return 1 }, Told: func(int, map[string]float64) {}}
	if err := p.Warm(t.Context(), bad, w); err == nil || !strings.Contains(err.Error(), "annotations of 1") {
		t.Errorf("error %v", err)
	}
	if err := p.Warm(t.Context(), nil, w); err == nil || !strings.Contains(err.Error(), "no step") {
		t.Errorf("error %v", err)
	}
	examples, err := p.model.examples(annotated()[:1])
	check(t, err)
	sum := 0.0
	for _, e := range examples {
		for _, s := range e.scores {
			sum += s / 3
		}
	}
	if math.Abs(sum-1) > 1e-9 || slices.ContainsFunc(examples, func(e example) bool { return len(e.scores) != 3 }) {
		t.Errorf("the scores of a success sum up to %v", sum)
	}
}

// Without criteria of its own, a rubric model is warmed up on what it will read, and learns no text.
func TestWarmingUpOnFixedCriteria(t *testing.T) {
	for _, settings := range []map[string]any{{"criteria": "none"}, {"criteria": "fixed", "fixed": []any{"a", "b", "c"}}} {
		p := bound(t, settings)
		groups := played()
		list, _ := p.episodes(groups, make([]rewards.Score, 4))
		judged, err := p.model.judge(t.Context(), list)
		check(t, err)
		examples, err := p.model.examples(annotated())
		check(t, err)
		for _, steps := range judged {
			for _, j := range steps {
				if !slices.Equal(j.tokens, examples[0].judged.tokens) {
					t.Errorf("%v: %q is scored, %q was learned from", settings, p.model.tok.Decode(j.tokens, false), p.model.tok.Decode(examples[0].judged.tokens, false))
				}
				examples = examples[1:]
			}
		}
		examples, err = p.model.examples(annotated())
		check(t, err)
		m, err := p.model.teach(examples)
		check(t, err)
		if m["lm"] != 0 || m["mse"] == 0 {
			t.Errorf("%v: metrics %v", settings, m)
		}
	}
}
