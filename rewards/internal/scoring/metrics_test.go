package scoring

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// Three groups by hand. A saturation share that counts unscorable completions as full, or a penalty that all incur, would
// have criteria replaced that still teach something.
func TestMetricsByHand(t *testing.T) {
	set := func(scope string, list ...criteria.Criterion) criteria.Set {
		s, err := criteria.NewSet(scope, 1, list)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	shared := set(criteria.Global, criteria.Criterion{ID: "a", Text: "A", Weight: 1, Category: "safety"}, criteria.Criterion{ID: "b", Text: "B", Weight: -1})
	own := set("p3", criteria.Criterion{ID: "c1", Text: "C", Weight: 1, Category: "safety"})
	score := func(value, a, b float64) rewards.Score {
		return rewards.Score{Value: value, Parts: []rewards.Part{{Name: "a", Weight: 1, Credit: a}, {Name: "b", Weight: -1, Credit: b}}}
	}
	groups := []Group{
		{shared, []rewards.Score{score(1, 1, 0), score(1, 1, 0)}},                                      // a and b saturated, no spread
		{shared, []rewards.Score{score(0, 1, 1), score(0.5, 1, 0.5), rewards.Unscorable("no answer")}}, // a full in all that could be scored
		{own, []rewards.Score{{Value: 0.5, Parts: []rewards.Part{{Name: "c1", Weight: 1, Credit: 0.5, Local: true}}}}},
	}
	want := map[string]float64{
		"rubric/credit/a": 1, "rubric/credit/b": 1.5 / 4,
		"rubric/saturated/a": 0.5, "rubric/saturated/b": 0.5,
		"rubric/std/a": 0, "rubric/std/b": math.Sqrt(0.125) / 2, // of 1 and 0.5: sqrt(2 * 0.25^2)
		"rubric/category/safety":  4.5 / 5,
		"rubric/saturated_frac":   2.0 / 5,
		"rubric/within_group_std": math.Sqrt(0.125) / 4,
		"rubric/zero_std_frac":    1.0 / 3,
		"rubric/unscorable_frac":  1.0 / 6,
		"rubric/reward/mean":      3.0 / 5,
		"rubric/reward/std":       math.Sqrt((2*0.16 + 0.36 + 2*0.01) / 4),
	}
	got := Metrics(groups)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if v, there := got[name]; !there || math.Abs(v-want[name]) > 1e-15 {
			t.Errorf("%s is %v, want %v", name, v, want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %v", slices.Sorted(maps.Keys(got)))
	}
}

// A step in which the judge answered nothing has no means, rather than NaN that breaks charts.
func TestMetricsWithoutScores(t *testing.T) {
	got := Metrics([]Group{{weighted(t, criteria.Global, 1), []rewards.Score{rewards.Unscorable("x"), rewards.Unscorable("x")}}})
	want := map[string]float64{"rubric/unscorable_frac": 1, "rubric/zero_std_frac": 0, "rubric/saturated_frac": 0}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Metrics(nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
