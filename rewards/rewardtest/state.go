package rewardtest

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
)

// The checks of state make warmUp steps, disturb the provider, and compare what it does until lastStep with one that was
// left alone.
const (
	warmUp   = 3
	lastStep = 6
)

// state: a provider that was loaded goes on as the one that was saved, and saves the same files.
func (s Suite) state(t testing.TB) {
	first := s.after(t, warmUp)
	if _, ok := first.(rewards.Saver); !ok {
		return // the provider has no state
	}
	second := s.reloaded(t, first)
	s.sameRest(t, "after loading", second, first)
}

// failure: a step that could not be scored leaves no trace.
func (s Suite) failure(t testing.TB) {
	p := s.after(t, warmUp)
	before := files(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Score(ctx, warmUp, s.Groups()); err == nil {
		return // the check cancellation tells
	}
	sameFiles(t, "a step that failed", files(t, p), before)
	s.sameRest(t, "after a step that failed", p, s.after(t, warmUp))
}

// repeat: a step that is scored again counts once, also when a checkpoint lies between the two calls. The first call may
// have seen other completions, as a run that is resumed on other hardware samples them.
func (s Suite) repeat(t testing.TB) {
	p := s.after(t, warmUp)
	score(t, p, warmUp, turned(s.Groups()))
	if _, ok := p.(rewards.Saver); ok {
		s.sameRest(t, "after a step that was scored before the checkpoint and again after it", s.reloaded(t, p), s.after(t, warmUp))
	}
	s.sameRest(t, "after a step that was scored twice", p, s.after(t, warmUp))
}

// heldOut: held-out prompts change nothing, neither before the first step nor later.
func (s Suite) heldOut(t testing.TB) {
	for _, steps := range []int{0, warmUp} {
		p := s.after(t, steps)
		before := files(t, p)
		score(t, p, rewards.HeldOut, s.Groups())
		sameFiles(t, "held-out prompts", files(t, p), before)
		if steps == warmUp {
			s.sameRest(t, "after held-out prompts", p, s.after(t, steps))
		}
	}
}

// after makes a provider that has made its first steps.
func (s Suite) after(t testing.TB, steps int) rewards.Provider {
	t.Helper()
	p := s.fresh(t)
	for step := range steps {
		s.step(t, p, step)
	}
	return p
}

// sameRest makes the remaining steps with both and compares their scores and what they save.
func (s Suite) sameRest(t testing.TB, when string, p, undisturbed rewards.Provider) {
	t.Helper()
	for step := warmUp; step < lastStep; step++ {
		want, got := s.step(t, undisturbed, step), s.step(t, p, step)
		if !slices.EqualFunc(got, want, equal) {
			t.Errorf("%s, step %d scored %+v, undisturbed %+v", when, step, got, want)
		}
	}
	if got, want := files(t, p), files(t, undisturbed); !maps.Equal(got, want) {
		t.Errorf("%s it saves %v, undisturbed %v", when, got, want)
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

// reloaded is a fresh provider with the state of p, a rewards.Saver.
func (s Suite) reloaded(t testing.TB, p rewards.Provider) rewards.Provider {
	t.Helper()
	dir := t.TempDir()
	if err := p.(rewards.Saver).Save(dir); err != nil {
		t.Fatal(err)
	}
	second := s.fresh(t)
	if err := second.(rewards.Saver).Load(dir); err != nil {
		t.Fatal(err)
	}
	return second
}

// files is what p saves: path -> content; nothing if it has no state.
func files(t testing.TB, p rewards.Provider) map[string]string {
	t.Helper()
	all := map[string]string{}
	saver, ok := p.(rewards.Saver)
	if !ok {
		return all
	}
	dir := t.TempDir()
	if err := saver.Save(dir); err != nil {
		t.Fatal(err)
	}
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

func sameFiles(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s changed what is saved from %v to %v", what, want, got)
	}
}
