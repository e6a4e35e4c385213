package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
)

// judge answers every question alike and notes what it was asked.
type judge struct {
	answer string
	err    error

	mu    sync.Mutex
	asked []string
}

func (j *judge) Ask(_ context.Context, q rewards.Question) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked = append(j.asked, q.User)
	return j.answer, j.err
}

func (j *judge) Metrics() map[string]float64 {
	return map[string]float64{"judge/calls": float64(len(j.asked))}
}

func question(user string) rewards.Question {
	return rewards.Question{Tier: rewards.TierScore, User: user, Schema: json.RawMessage(`{"properties":{
		"a":{"properties":{"reason":{},"score":{"type":"integer","enum":[0,1,2,3,4]}}},
		"b":{"properties":{"score":{"minimum":0,"maximum":20}}}}}`)}
}

// By hand: a is (4-1)/4 too generous, b (5-15)/20 too strict.
func TestCompareIsInCredits(t *testing.T) {
	run := &judge{answer: `{"a":{"reason":"x","score":4},"b":{"score":5}}`}
	other := &judge{answer: `{"a":{"score":1},"b":{"score":15}}`}
	j := New(run, other, 10, 1)
	ask(t, j, "before")
	j.Listen()
	ask(t, j, "one", "two", "two")
	if _, err := j.Ask(t.Context(), rewards.Question{Tier: rewards.TierAnalyze, User: "analysis"}); err != nil {
		t.Fatal(err)
	}
	m, err := j.Compare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m["judge/audit/calls"] != 2 {
		t.Errorf("metrics %v, want the independent judge's own two calls", m)
	}
	if m["judge/audit/questions"] != 2 || math.Abs(m["judge/audit/bias"]-0.125) > 1e-12 || math.Abs(m["judge/audit/difference"]-0.625) > 1e-12 {
		t.Errorf("metrics %v, want 2 questions, bias (0.75-0.5)/2, difference (0.75+0.5)/2", m)
	}
	slices.Sort(other.asked)
	if !slices.Equal(other.asked, []string{"one", "two"}) {
		t.Errorf("the independent judge was asked %q, want what was scored since Listen, once", other.asked)
	}
}

func ask(t *testing.T, j *Judge, users ...string) {
	t.Helper()
	for _, u := range users {
		if _, err := j.Ask(t.Context(), question(u)); err != nil {
			t.Fatal(err)
		}
	}
}

// The sample is the same whatever the order of the questions.
func TestSampleDoesNotDependOnOrder(t *testing.T) {
	var users []string
	for i := range 50 {
		users = append(users, fmt.Sprint("question ", i))
	}
	sample := func(seed uint64) []string {
		other := &judge{answer: `{"a":{"score":1},"b":{"score":1}}`}
		j := New(&judge{answer: other.answer}, other, 7, seed)
		j.Listen()
		ask(t, j, users...)
		if m, err := j.Compare(t.Context()); err != nil || m["judge/audit/difference"] != 0 || m["judge/audit/questions"] != 7 {
			t.Fatal(m, err)
		}
		slices.Sort(other.asked)
		return other.asked
	}
	first := sample(1)
	slices.Reverse(users)
	if again := sample(1); !slices.Equal(first, again) {
		t.Errorf("sampled %q in one order and %q in the other", first, again)
	}
	if slices.Equal(first, sample(2)) {
		t.Error("another seed samples the same questions")
	}
}

// A question without a usable answer is left out; an independent judge that is gone is an error, and the run's judge has answered.
func TestFaultsOfTheOtherJudge(t *testing.T) {
	run := &judge{answer: `{"a":{"score":4},"b":{"score":5}}`}
	j := New(run, &judge{err: fmt.Errorf("%w: nonsense", rewards.ErrNoAnswer)}, 10, 1)
	j.Listen()
	ask(t, j, "one")
	if m, err := j.Compare(t.Context()); err != nil || len(m) != 2 || m["judge/audit/questions"] != 0 {
		t.Errorf("metrics %v, %v, want that no question was answered by both", m, err)
	}
	j = New(run, &judge{err: errors.New("no route")}, 10, 1)
	j.Listen()
	ask(t, j, "one")
	if _, err := j.Compare(t.Context()); err == nil || !strings.Contains(err.Error(), "no route") {
		t.Errorf("error %v, want that of the judge", err)
	}
}
