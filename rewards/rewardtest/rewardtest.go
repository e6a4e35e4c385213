// Package rewardtest is the conformance suite that every reward provider passes: scores land by index whatever the
// concurrency, cancellation is obeyed, what cannot be scored is said, state survives a checkpoint, inputs stay as they
// are, and an error names its row.
package rewardtest

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
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
	// New makes a fresh provider, each time in the same state.
	New func(t testing.TB) rewards.Provider
	// Groups makes the inputs, each time anew and equal: several groups whose scores differ, without NaN.
	Groups func() []grpo.Group
	// Unscorable are the indices of the scores that must be unscorable.
	Unscorable []int
	// Fault is an input that cannot be scored at all; nil: there is none for this provider.
	Fault *Fault
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
		"inputs": s.inputs, "state": s.state,
	}
	if s.Fault != nil {
		all["fault"] = s.fault
	}
	return all
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
	for i, x := range score(t, s.New(t), 0, s.Groups()) {
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
	want := byText(s.Groups(), score(t, s.New(t), 0, s.Groups()))
	turned := s.Groups()
	slices.Reverse(turned)
	for _, g := range turned {
		slices.Reverse(g.Completions)
	}
	same(t, "in reverse order", byText(turned, score(t, s.New(t), 0, turned)), want)
	for _, g := range s.Groups() {
		alone := []grpo.Group{g}
		got := byText(alone, score(t, s.New(t), 0, alone))
		for key := range got {
			same(t, "alone", map[string]rewards.Score{key: got[key]}, map[string]rewards.Score{key: want[key]})
		}
	}
}

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

// concurrency: the scores are the same on one processor and on many.
func (s Suite) concurrency(t testing.TB) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want := score(t, s.New(t), 0, s.Groups())
	runtime.GOMAXPROCS(8)
	for range 20 {
		if got := score(t, s.New(t), 0, s.Groups()); !slices.EqualFunc(got, want, equal) {
			t.Fatalf("on 8 processors %+v, on one %+v", got, want)
		}
	}
}

// cancellation: Score returns the context's error soon.
func (s Suite) cancellation(t testing.TB) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if _, err := s.New(t).Score(ctx, 0, s.Groups()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after cancellation, want %v", err, context.Canceled)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("returned %v after cancellation", took)
	}
}

// inputs: scoring changes nothing in the groups.
func (s Suite) inputs(t testing.TB) {
	groups := s.Groups()
	if !reflect.DeepEqual(groups, s.Groups()) {
		t.Fatal("Groups must return equal groups each time")
	}
	score(t, s.New(t), 0, groups)
	if !reflect.DeepEqual(groups, s.Groups()) {
		t.Error("Score changed its groups")
	}
}

// state: a provider that was loaded goes on as the one that was saved, and saves the same files.
func (s Suite) state(t testing.TB) {
	first := s.New(t)
	saver, ok := first.(rewards.Saver)
	if !ok {
		return // the provider has no state
	}
	for step := range 3 {
		s.step(t, first, step)
	}
	dir := t.TempDir()
	if err := saver.Save(dir); err != nil {
		t.Fatal(err)
	}
	second := s.New(t)
	if err := second.(rewards.Saver).Load(dir); err != nil {
		t.Fatal(err)
	}
	score(t, first, rewards.HeldOut, s.Groups())
	if before, after := files(t, second.(rewards.Saver)), files(t, saver); !maps.Equal(before, after) {
		t.Errorf("held-out prompts changed what is saved from %v to %v", before, after)
	}
	for step := 3; step < 6; step++ {
		want, got := s.step(t, first, step), s.step(t, second, step)
		if !slices.EqualFunc(got, want, equal) {
			t.Errorf("step %d after loading: %+v, without interruption %+v", step, got, want)
		}
	}
	if a, b := files(t, saver), files(t, second.(rewards.Saver)); !maps.Equal(a, b) {
		t.Errorf("saved after loading %v, without interruption %v", b, a)
	}
}

// step scores and lets p learn, as the trainer does.
func (s Suite) step(t testing.TB, p rewards.Provider, step int) []rewards.Score {
	t.Helper()
	groups := s.Groups()
	scores := score(t, p, step, groups)
	i := 0
	for _, g := range groups {
		for _, c := range g.Completions {
			c.Reward, c.Rewards = scores[i].Value, []float64{scores[i].Value}
			i++
		}
	}
	if l, ok := p.(rewards.Learner); ok {
		if err := l.Learn(t.Context(), step, groups); err != nil {
			t.Fatal(err)
		}
	}
	return scores
}

// files is what p saves: path -> content.
func files(t testing.TB, p rewards.Saver) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := p.Save(dir); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		all[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// fault: the error is a *rewards.Error with the right place, which its text names.
func (s Suite) fault(t testing.TB) {
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
}
