package rewardtest

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// byText keys scores by prompt and text.
func byText(groups []grpo.Group, scores []rewards.Score) map[string]rewards.Score {
	m := map[string]rewards.Score{}
	for _, g := range groups {
		for _, c := range g.Completions {
			m[g.Prompt.ID+"\x00"+c.Text] = scores[0]
			scores = scores[1:]
		}
	}
	return m
}

func same(t testing.TB, how string, got, want map[string]rewards.Score) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !equal(got[key], want[key]) {
			t.Errorf("%q scored %s: %+v, before %+v", key, how, got[key], want[key])
		}
	}
}

// equal compares all of two scores, NaN being equal to itself.
func equal(a, b rewards.Score) bool {
	return reflect.DeepEqual(withoutNaN(a), withoutNaN(b))
}

// withoutNaN replaces NaN, which differs from itself, by a number that no score has.
func withoutNaN(x rewards.Score) rewards.Score {
	fill := func(v float64) float64 {
		if math.IsNaN(v) {
			return math.Inf(-1)
		}
		return v
	}
	x.Value, x.Columns = fill(x.Value), slices.Clone(x.Columns)
	for i := range x.Columns {
		x.Columns[i].Value = fill(x.Columns[i].Value)
	}
	return x
}
