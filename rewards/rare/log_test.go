package rare

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// A further call of the same step with other prompts, as dynamic sampling makes it, leaves what the first call did.
func TestAFurtherCallWithOtherPromptsAddsToTheStep(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	for n := range 4 {
		mustScore(t, p, n, step(n)...)
	}
	before, q := logOf(t, dir), p.states.now["q"]
	mustScore(t, p, 3, group("s", nil, "x", "y"))
	if got := logOf(t, dir); !strings.HasPrefix(got, before) || !strings.Contains(got, `"scope":"s"`) {
		t.Errorf("the further call changed the log to\n%s", got)
	}
	mustScore(t, p, 3, group("s", nil, "x", "z"))
	events, err := criteria.ReadLog(criteria.LogPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, e := range events {
		if e.Step == 3 && e.Kind != criteria.Init {
			told[e.Scope]++
		}
	}
	if want := map[string]int{"p1": 1, "q": 1, "r3": 1, "s": 1}; !reflect.DeepEqual(told, want) {
		t.Errorf("the log tells of step 3 %v times", told)
	}
	if q == nil || p.states.now["q"] != q {
		t.Error("the further call changed another prompt's rubric")
	}
}

// A checkpoint that is looked at, by an evaluation, does not cut the log of the run.
func TestLoadingAloneDoesNotTouchTheLog(t *testing.T) {
	dir, checkpoint := t.TempDir(), t.TempDir()
	p := start(t, dir)
	mustScore(t, p, 0, step(0)...)
	if err := p.Save(checkpoint); err != nil {
		t.Fatal(err)
	}
	mustScore(t, p, 1, step(1)...)
	want := logOf(t, dir)
	other := start(t, dir)
	if err := other.Load(checkpoint); err != nil {
		t.Fatal(err)
	}
	mustScore(t, other, rewards.HeldOut, step(1)...)
	if logOf(t, dir) != want {
		t.Error("the log was changed")
	}
}

// A start that failed before its first checkpoint leaves lines which the next start must not add to; a checkpoint that is
// loaded into another run's folder begins a new log there.
func TestLogOfANewStart(t *testing.T) {
	dir, checkpoint := t.TempDir(), t.TempDir()
	p := start(t, dir)
	mustScore(t, p, 0, step(0)...)
	want := logOf(t, dir)
	mustScore(t, p, 1, step(1)...)
	if err := p.Save(checkpoint); err != nil {
		t.Fatal(err)
	}
	mustScore(t, start(t, dir), 0, step(0)...)
	if logOf(t, dir) != want {
		t.Errorf("the log of the new start is\n%s", logOf(t, dir))
	}
	fork := t.TempDir()
	other := start(t, fork)
	if err := other.Load(checkpoint); err != nil {
		t.Fatal(err)
	}
	mustScore(t, other, 1, step(1)...) // the step before the checkpoint, once more
	mustScore(t, other, 2, step(2)...)
	if log := logOf(t, fork); !strings.HasPrefix(log, `{"step":1,`) || !strings.Contains(log, `{"step":2,`) {
		t.Errorf("the log of the fork is\n%s", log)
	}
}

// A hundred thousand prompts whose rubrics all changed once: what is kept of each is its criteria and little more, and of
// prompts that did not change nothing.
func TestMemoryOfManyPrompts(t *testing.T) {
	const prompts = 100_000
	set, err := criteria.NewSet("p", 1, []criteria.Criterion{{ID: "a", Text: "A.", Weight: 1}, {ID: "b", Text: "B.", Weight: 1}})
	if err != nil {
		t.Fatal(err)
	}
	next, err := set.With([]criteria.Criterion{set.At(1), {ID: "c", Text: "C.", Weight: 1}})
	if err != nil {
		t.Fatal(err)
	}
	states := newStates()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	changed := &visit{set: set, next: next, switches: []swap{{place: 0, old: set.At(0), new: next.At(1)}}}
	unchanged := &visit{set: set, next: set}
	for i := range prompts {
		step := i / 64
		states.begin(step)
		for scope, v := range map[string]*visit{fmt.Sprint("p", i): changed, fmt.Sprint("q", i): unchanged} {
			states.set(scope, states.before(step, scope).follow(v))
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(states.now) != prompts || len(states.was) > 2*64 {
		t.Errorf("%d rubrics are kept, and %d from before the step", len(states.now), len(states.was))
	}
	if each := (after.HeapAlloc - before.HeapAlloc) / prompts; each > 1000 {
		t.Errorf("%d bytes are kept of each rubric", each)
	}
	runtime.KeepAlive(states)
}
