package rewardtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// flawed is a provider with one flaw at a time; without one it values a completion by its length and its own state, which
// grows by what it sees.
type flawed struct {
	flaw   string
	calls  *atomic.Int64 // of all providers of a test
	gate   chan struct{} // not nil: Score waits until it is closed
	waits  chan struct{}
	closed int
	memory
}

// memory is the state of a flawed provider.
type memory struct {
	State  float64
	Step   int     // scored last, from 1
	Before float64 // State before it was
}

func (f *flawed) Score(ctx context.Context, step int, groups []grpo.Group) ([]rewards.Score, error) {
	if err := f.begin(ctx); err != nil {
		return nil, err
	}
	f.calls.Add(1)
	base := f.base(step)
	grown := base
	var out []rewards.Score
	for _, g := range groups {
		for i, c := range g.Completions {
			if c.Text == "?" {
				return nil, f.failure(g.Prompt.ID, i)
			}
			out = append(out, f.value(c, i, len(groups), base))
			grown += float64(len(c.Text) * (i + 1))
		}
	}
	if step != rewards.HeldOut || f.flaw == "studies the held-out" {
		f.memory = memory{grown, step + 1, base}
	}
	if f.flaw == "short" {
		out = out[1:]
	}
	return out, nil
}

// begin waits where the provider is to wait, and tells whether the context has ended.
func (f *flawed) begin(ctx context.Context) error {
	if f.gate != nil {
		ended := ctx.Done()
		if f.flaw == "sleeps on" {
			ended = nil
		}
		f.waits <- struct{}{}
		if f.flaw == "notes early" {
			f.State++
		}
		select {
		case <-f.gate:
		case <-ended:
		}
	}
	if f.flaw == "deaf" || ctx.Err() == nil {
		return nil
	}
	if f.flaw == "leaves a trace" {
		f.State++
	}
	return ctx.Err()
}

// base is the state that a step is scored with.
func (f *flawed) base(step int) float64 {
	if step+1 == f.Step && step != rewards.HeldOut && f.flaw != "counts twice" {
		return f.Before
	}
	return f.State
}

func (f *flawed) failure(prompt string, completion int) error {
	if f.flaw == "anonymous" {
		return errors.New("cannot score")
	}
	if f.flaw == "halfway" {
		f.State++
	}
	return fmt.Errorf("flawed: %w", &rewards.Error{Prompt: prompt, Completion: completion, Err: errors.New("cannot score")})
}

// value is a completion's score in a state.
func (f *flawed) value(c *grpo.Completion, i, groups int, state float64) rewards.Score {
	if c.Text == "" && f.flaw != "silent zero" {
		return rewards.Unscorable("empty")
	}
	s := rewards.Score{Value: float64(len(c.Text)) + state}
	switch f.flaw {
	case "by index":
		s.Value = float64(i)
	case "by batch":
		s.Value += float64(groups)
	case "random":
		s.Value += float64(f.calls.Load())
	case "credit":
		s.Parts = []rewards.Part{{Name: "length", Credit: 2}}
	case "nan":
		s.Value = math.NaN()
	case "by processor":
		s.Value += float64(runtime.GOMAXPROCS(0))
	case "changes":
		c.Reward = 1
	}
	return s
}

func (f *flawed) Learn(_ context.Context, _ int, groups []grpo.Group) error {
	f.State += groups[0].Completions[0].Reward
	return nil
}

func (f *flawed) Save(dir string) error {
	m := f.memory
	if f.flaw == "forgets the step" {
		m.Step, m.Before = 0, 0
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "state"), data, 0o644)
}

func (f *flawed) Load(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "state"))
	if err != nil || f.flaw == "forgets" {
		return err
	}
	return json.Unmarshal(data, &f.memory)
}

func (f *flawed) Close() error {
	if f.closed++; f.closed > 1 && f.flaw == "closes once" {
		return errors.New("closed already")
	}
	return nil
}

// recorder takes a check's failures instead of failing the test.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Error(...any)          { r.failed = true }
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatal(...any)          { r.failed = true; runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; runtime.Goexit() }

// suite describes a provider with a flaw.
func suite(flaw string) Suite {
	var calls atomic.Int64
	groups := func() []grpo.Group {
		return []grpo.Group{
			{Prompt: &grpo.Prompt{ID: "p"}, Completions: []*grpo.Completion{{Text: "a"}, {Text: "abc"}}},
			{Prompt: &grpo.Prompt{ID: "q"}, Completions: []*grpo.Completion{{Text: ""}, {Text: "ab"}}},
		}
	}
	bad := groups()
	bad[1].Completions[1].Text = "?"
	return Suite{
		New:    func(testing.TB) rewards.Provider { return &flawed{flaw: flaw, calls: &calls} },
		Groups: groups, Unscorable: []int{2},
		Hanging: func(t testing.TB) (rewards.Provider, <-chan struct{}) {
			f := &flawed{flaw: flaw, calls: &calls, gate: make(chan struct{}), waits: make(chan struct{}, 1)}
			t.Cleanup(func() { close(f.gate) })
			return f, f.waits
		},
		Fault:    &Fault{Provider: &flawed{flaw: flaw, calls: &calls}, Groups: bad, Prompt: "q", Completion: 1},
		patience: 500 * time.Millisecond,
	}
}

// failures names the checks that a provider with a flaw fails.
func failures(t *testing.T, flaw string) map[string]bool {
	failed := map[string]bool{}
	for name, check := range suite(flaw).checks() {
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() { // a fatal failure ends its goroutine
			defer close(done)
			check(r)
		}()
		<-done
		if r.failed {
			failed[name] = true
		}
	}
	return failed
}

func TestTheSuiteFindsFlaws(t *testing.T) {
	if failed := failures(t, ""); len(failed) > 0 {
		t.Errorf("a provider without a flaw fails %v", failed)
	}
	for flaw, check := range map[string]string{
		"short": "scores", "silent zero": "scores", "credit": "scores", "nan": "scores", "by index": "order", "by batch": "order",
		"random": "order", "by processor": "concurrency", "deaf": "cancellation", "sleeps on": "hang", "notes early": "hang",
		"changes": "inputs", "forgets": "state", "leaves a trace": "failure", "halfway": "fault", "counts twice": "repeat",
		"forgets the step": "repeat", "studies the held-out": "heldout", "closes once": "close", "anonymous": "fault",
	} {
		if !failures(t, flaw)[check] {
			t.Errorf("%s: the check %q does not find it", flaw, check)
		}
	}
}
