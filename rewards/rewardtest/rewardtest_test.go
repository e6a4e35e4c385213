package rewardtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// flawed is a provider with one flaw at a time; without one it values a completion by its length and its own state.
type flawed struct {
	flaw  string
	calls *atomic.Int64 // of all providers of a test
	state float64
}

func (f *flawed) Score(ctx context.Context, _ int, groups []grpo.Group) ([]rewards.Score, error) {
	if f.flaw != "deaf" && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	call := float64(f.calls.Add(1))
	var out []rewards.Score
	for _, g := range groups {
		for i, c := range g.Completions {
			if c.Text == "?" {
				return nil, f.failure(g.Prompt.ID, i)
			}
			out = append(out, f.value(c, i, len(groups), call))
		}
	}
	if f.flaw == "short" {
		out = out[1:]
	}
	return out, nil
}

func (f *flawed) failure(prompt string, completion int) error {
	if f.flaw == "anonymous" {
		return errors.New("cannot score")
	}
	return fmt.Errorf("flawed: %w", &rewards.Error{Prompt: prompt, Completion: completion, Err: errors.New("cannot score")})
}

func (f *flawed) value(c *grpo.Completion, i, groups int, call float64) rewards.Score {
	if c.Text == "" && f.flaw != "silent zero" {
		return rewards.Unscorable("empty")
	}
	s := rewards.Score{Value: float64(len(c.Text)) + f.state}
	switch f.flaw {
	case "by index":
		s.Value = float64(i)
	case "by batch":
		s.Value += float64(groups)
	case "random":
		s.Value += call
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
	f.state += groups[0].Completions[0].Reward
	return nil
}

func (f *flawed) Save(dir string) error {
	return os.WriteFile(filepath.Join(dir, "state"), fmt.Appendf(nil, "%v", f.state), 0o644)
}

func (f *flawed) Load(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "state"))
	if err != nil || f.flaw == "forgets" {
		return err
	}
	_, err = fmt.Sscan(string(data), &f.state)
	return err
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

// failures names the checks that a provider with a flaw fails.
func failures(t *testing.T, flaw string) map[string]bool {
	var calls atomic.Int64
	groups := func() []grpo.Group {
		return []grpo.Group{
			{Prompt: &grpo.Prompt{ID: "p"}, Completions: []*grpo.Completion{{Text: "a"}, {Text: "abc"}}},
			{Prompt: &grpo.Prompt{ID: "q"}, Completions: []*grpo.Completion{{Text: ""}, {Text: "ab"}}},
		}
	}
	bad := groups()
	bad[1].Completions[1].Text = "?"
	s := Suite{
		New:    func(testing.TB) rewards.Provider { return &flawed{flaw: flaw, calls: &calls} },
		Groups: groups, Unscorable: []int{2},
		Fault: &Fault{Provider: &flawed{flaw: flaw, calls: &calls}, Groups: bad, Prompt: "q", Completion: 1},
	}
	failed := map[string]bool{}
	for name, check := range s.checks() {
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
		"random": "order", "by processor": "concurrency", "deaf": "cancellation", "changes": "inputs", "forgets": "state", "anonymous": "fault",
	} {
		if !failures(t, flaw)[check] {
			t.Errorf("%s: the check %q does not find it", flaw, check)
		}
	}
}
