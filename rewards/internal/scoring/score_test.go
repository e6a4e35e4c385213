package scoring

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

func newScorer(t testing.TB, run rewards.Run, change func(*Options)) *Scorer {
	t.Helper()
	o := DefaultOptions()
	if change != nil {
		change(&o)
	}
	s, err := New(run, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func weighted(t testing.TB, scope string, weights ...float64) criteria.Set {
	t.Helper()
	list := make([]criteria.Criterion, len(weights))
	for i, w := range weights {
		list[i] = criteria.Criterion{ID: string(rune('a' + i)), Text: "Holds.", Weight: w}
	}
	s, err := criteria.NewSet(scope, 1, list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Values by hand. A wrong divisor or clip shifts every reward of a run and no other test would see it.
func TestValueByHand(t *testing.T) {
	for name, c := range map[string]struct {
		weights, credits []float64
		normalize, clip  string
		want             float64
	}{
		// HealthBench: points met, negatives included, over the positive points: (10 + 8 - 8) / (10 + 9 + 7 + 8).
		"healthbench":          {[]float64{10, 9, 7, -10, 8, -8}, []float64{1, 0, 0, 0, 1, 1}, "positive", "none", 10.0 / 34},
		"healthbench below 0":  {[]float64{5, -10}, []float64{0, 1}, "positive", "none", -2},
		"the same in [0,1]":    {[]float64{5, -10}, []float64{0, 1}, "positive", "unit", 0},
		"the same in [-1,1]":   {[]float64{5, -10}, []float64{0, 1}, "positive", "signed", -1},
		"positive, all met":    {[]float64{5, -10}, []float64{1, 0}, "positive", "unit", 1},
		"absolute":             {[]float64{3, -1}, []float64{1, 0.5}, "absolute", "signed", 2.5 / 4},
		"absolute, worst":      {[]float64{3, -1}, []float64{0, 1}, "absolute", "signed", -0.25},
		"none":                 {[]float64{3, -1}, []float64{1, 0.5}, "none", "none", 2.5},
		"none, clipped":        {[]float64{3, -1}, []float64{1, 0.5}, "none", "signed", 1},
		"weight 0 is shown":    {[]float64{2, 0}, []float64{0.5, 1}, "positive", "unit", 0.5},
		"AMARIS case 2 before": {[]float64{1, 0.75, 0.5, 0.4, -0.5}, []float64{1, 1, 1, 1, 1}, "positive", "signed", 2.15 / 2.65},
		// RaR explicit (2507.17746, eq. 1): sum(w c) / sum(w), here essential 1, important 0.7, optional 0.3, pitfall 0.9.
		"RaR explicit": {[]float64{1, 0.7, 0.3, 0.9}, []float64{1, 0, 1, 1}, "positive", "unit", 2.2 / 2.9},
	} {
		s := newScorer(t, rewards.Run{}, func(o *Options) { o.Normalize, o.Clip = c.normalize, c.clip })
		got := s.Score(weighted(t, criteria.Global, c.weights...), Verdict{Credits: c.credits, Reasons: make([]string, len(c.credits))})
		if math.Abs(got.Value-c.want) > 1e-15 || got.Unscorable {
			t.Errorf("%s: %v, want %v", name, got.Value, c.want)
		}
	}
}

func TestScoreParts(t *testing.T) {
	s := newScorer(t, rewards.Run{}, nil)
	v := Verdict{Credits: []float64{1, 0.5}, Reasons: []string{"good", "so-so"}}
	for scope, local := range map[string]bool{criteria.Global: false, "p7": true} {
		got := s.Score(weighted(t, scope, 2, -1), v)
		want := rewards.Score{Value: 0.75, Parts: []rewards.Part{
			{Name: "a", Weight: 2, Credit: 1, Reason: "good", Local: local}, {Name: "b", Weight: -1, Credit: 0.5, Reason: "so-so", Local: local}}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", scope, got, want)
		}
	}
	if got := s.Score(weighted(t, "p", 1), Verdict{Unscorable: "no answer"}); !got.Unscorable || got.Reason != "no answer" {
		t.Errorf("unscorable: %+v", got)
	}
	one := newScorer(t, rewards.Run{}, func(o *Options) { o.Mode, o.Goal = Goal, "be good" })
	got := one.Score(criteria.Set{}, Verdict{Value: 0.3, Reasons: []string{"dull"}})
	if want := (rewards.Score{Value: 0.3, Reason: "dull"}); !reflect.DeepEqual(got, want) {
		t.Errorf("one number: %+v, want %+v", got, want)
	}
}

func TestOptionsErrors(t *testing.T) {
	for want, change := range map[string]func(*Options){
		`unknown mode "explict": did you mean "explicit"?`:           func(o *Options) { o.Mode = "explict" },
		`unknown normalize "sum"`:                                    func(o *Options) { o.Normalize = "sum" },
		`unknown clip "units": did you mean "unit"?`:                 func(o *Options) { o.Clip = "units" },
		"samples is 0: use 1 to 64":                                  func(o *Options) { o.Samples = 0 },
		"max_score is 101":                                           func(o *Options) { o.MaxScore = 101 },
		"mode is goal: set goal":                                     func(o *Options) { o.Mode = Goal },
		"set reference_column to the data column":                    func(o *Options) { o.Mode, o.Goal = GoalRef, "g" },
		"mode is goal, which shows no reference answer":              func(o *Options) { o.Mode, o.Goal, o.ReferenceColumn = Goal, "g", "r" },
		"prompt nowhere.tmpl: open nowhere.tmpl: no such file or di": func(o *Options) { o.Prompt = "nowhere.tmpl" },
	} {
		o := DefaultOptions()
		change(&o)
		if _, err := New(rewards.Run{}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
