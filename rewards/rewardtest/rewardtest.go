// Package rewardtest is the conformance suite that every reward provider passes: scores land by index whatever the
// concurrency, cancellation is obeyed, what cannot be scored is said, state survives a checkpoint, a failed step leaves no
// trace and a repeated one counts once, held-out prompts change nothing, inputs stay as they are, and an error names its row.
package rewardtest

import (
	"context"
	"errors"
	"io"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// Suite describes a provider to Run.
type Suite struct {
	// New makes a fresh provider, each time in the same state. The suite closes it if it can be closed.
	New func(t testing.TB) rewards.Provider
	// Groups makes the inputs, each time anew and equal: several groups whose scores differ, without NaN.
	Groups func() []grpo.Group
	// Unscorable are the indices of the scores that must be unscorable.
	Unscorable []int
	// Hanging makes a provider that waits in Score for something which never comes, such as the answer of a server. What
	// arrives on the channel tells that it waits now. nil: the provider waits for nothing outside of it.
	Hanging func(t testing.TB) (p rewards.Provider, waits <-chan struct{})
	// Fault is an input that cannot be scored at all; nil: there is none for this provider.
	Fault *Fault

	patience time.Duration // 0: the default
}

// Fault is a provider and groups for which Score must fail.
type Fault struct {
	Provider   rewards.Provider
	Groups     []grpo.Group
	Prompt     string // the error names this prompt
	Completion int    // and this completion; -1: the prompt alone
}

// patience is how long a provider may take to return after its context has ended.
const patience = 5 * time.Second

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	for name, check := range s.checks() {
		t.Run(name, func(t *testing.T) { check(t) })
	}
}

// checks lists the suite's checks.
func (s Suite) checks() map[string]func(testing.TB) {
	all := map[string]func(testing.TB){
		"scores": s.scores, "order": s.order, "concurrency": s.concurrency, "cancellation": s.cancellation,
		"inputs": s.inputs, "state": s.state, "failure": s.failure, "repeat": s.repeat, "heldout": s.heldOut, "close": s.close,
	}
	if s.Hanging != nil {
		all["hang"] = s.hang
	}
	if s.Fault != nil {
		all["fault"] = s.fault
	}
	return all
}

// fresh makes a provider that is closed at the end of the test.
func (s Suite) fresh(t testing.TB) rewards.Provider {
	t.Helper()
	p := s.New(t)
	if c, ok := p.(io.Closer); ok {
		t.Cleanup(func() { c.Close() })
	}
	return p
}

// score scores groups with p, one score per completion, or ends the test.
func score(t testing.TB, p rewards.Provider, step int, groups []grpo.Group) []rewards.Score {
	t.Helper()
	scores, err := p.Score(t.Context(), step, groups)
	if err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	n := 0
	for _, g := range groups {
		n += len(g.Completions)
	}
	if len(scores) != n {
		t.Fatalf("step %d: %d scores for %d completions", step, len(scores), n)
	}
	return scores
}

// scores checks what each score must be.
func (s Suite) scores(t testing.TB) {
	for i, x := range score(t, s.fresh(t), 0, s.Groups()) {
		if want := slices.Contains(s.Unscorable, i); x.Unscorable != want {
			t.Errorf("score %d: unscorable is %v, want %v", i, x.Unscorable, want)
		}
		wellFormed(t, i, x)
	}
}

// wellFormed checks what holds for every score.
func wellFormed(t testing.TB, i int, x rewards.Score) {
	t.Helper()
	if x.Unscorable != math.IsNaN(x.Value) || math.IsInf(x.Value, 0) {
		t.Errorf("score %d: unscorable is %v and the value %v: NaN and unscorable go together", i, x.Unscorable, x.Value)
	}
	if x.Unscorable && x.Reason == "" {
		t.Errorf("score %d: unscorable without a reason", i)
	}
	for _, p := range x.Parts {
		if p.Name == "" || !(p.Credit >= 0 && p.Credit <= 1) {
			t.Errorf("score %d: part %+v: wants a name and a credit in [0,1]", i, p)
		}
	}
	for _, c := range x.Columns {
		if c.Name == "" || x.Unscorable && !math.IsNaN(c.Value) {
			t.Errorf("score %d: column %+v of an unscorable completion, or without a name", i, c)
		}
	}
}

// order: a group's scores do not depend on the groups beside it, and follow their completions.
func (s Suite) order(t testing.TB) {
	want := byText(s.Groups(), score(t, s.fresh(t), 0, s.Groups()))
	back := turned(s.Groups())
	slices.Reverse(back)
	same(t, "in reverse order", byText(back, score(t, s.fresh(t), 0, back)), want)
	for _, g := range s.Groups() {
		alone := []grpo.Group{g}
		got := byText(alone, score(t, s.fresh(t), 0, alone))
		for key := range got {
			same(t, "alone", map[string]rewards.Score{key: got[key]}, map[string]rewards.Score{key: want[key]})
		}
	}
}

// turned reverses the completions of every group.
func turned(groups []grpo.Group) []grpo.Group {
	for _, g := range groups {
		slices.Reverse(g.Completions)
	}
	return groups
}

// concurrency: the scores are the same on one processor and on many.
func (s Suite) concurrency(t testing.TB) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want := score(t, s.fresh(t), 0, s.Groups())
	runtime.GOMAXPROCS(8)
	for range 20 {
		if got := score(t, s.fresh(t), 0, s.Groups()); !slices.EqualFunc(got, want, equal) {
			t.Fatalf("on 8 processors %+v, on one %+v", got, want)
		}
	}
}

// cancellation: Score returns the context's error soon.
func (s Suite) cancellation(t testing.TB) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.cancelled(t, s.called(ctx, s.fresh(t)))
}

// hang: Score returns the context's error soon, also while it waits for something outside, and leaves no trace.
func (s Suite) hang(t testing.TB) {
	p, waits := s.Hanging(t)
	if c, ok := p.(io.Closer); ok {
		t.Cleanup(func() { c.Close() })
	}
	before := files(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	returned := s.called(ctx, p)
	select {
	case <-waits:
	case err := <-returned:
		t.Fatalf("Score returned (%v) although it was to hang", err)
	case <-time.After(s.wait()):
		t.Fatal("Score does not come to what it was to hang in")
	}
	cancel()
	s.cancelled(t, returned)
	sameFiles(t, "a cancelled step", files(t, p), before)
}

// called is the error of a call of Score that has begun.
func (s Suite) called(ctx context.Context, p rewards.Provider) <-chan error {
	returned := make(chan error, 1)
	groups := s.Groups()
	go func() {
		_, err := p.Score(ctx, 0, groups)
		returned <- err
	}()
	return returned
}

// cancelled checks the error of a call whose context has just been cancelled.
func (s Suite) cancelled(t testing.TB, returned <-chan error) {
	t.Helper()
	select {
	case err := <-returned:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v after cancellation, want %v", err, context.Canceled)
		}
	case <-time.After(s.wait()):
		t.Fatalf("Score has not returned %v after cancellation", s.wait())
	}
}

func (s Suite) wait() time.Duration {
	if s.patience > 0 {
		return s.patience
	}
	return patience
}

// inputs: scoring changes nothing in the groups.
func (s Suite) inputs(t testing.TB) {
	groups := s.Groups()
	if !reflect.DeepEqual(groups, s.Groups()) {
		t.Fatal("Groups must return equal groups each time")
	}
	score(t, s.fresh(t), 0, groups)
	if !reflect.DeepEqual(groups, s.Groups()) {
		t.Error("Score changed its groups")
	}
}

// close: a provider can be closed after use, and again.
func (s Suite) close(t testing.TB) {
	p := s.fresh(t)
	c, ok := p.(io.Closer)
	if !ok {
		return
	}
	score(t, p, 0, s.Groups())
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// fault: the error is a *rewards.Error with the right place, which its text names, and leaves no trace.
func (s Suite) fault(t testing.TB) {
	before := files(t, s.Fault.Provider)
	_, err := s.Fault.Provider.Score(t.Context(), 0, s.Fault.Groups)
	var at *rewards.Error
	if !errors.As(err, &at) {
		t.Fatalf("error %v is not a *rewards.Error", err)
	}
	if at.Prompt != s.Fault.Prompt || at.Completion != s.Fault.Completion {
		t.Errorf("error is at prompt %q, completion %d, want %q, %d", at.Prompt, at.Completion, s.Fault.Prompt, s.Fault.Completion)
	}
	if !strings.Contains(err.Error(), at.Error()) {
		t.Errorf("the error %q does not say %q", err, at)
	}
	sameFiles(t, "a step that cannot be scored", files(t, s.Fault.Provider), before)
}
