package amaris

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

var easy = []any{criterion("a", "Is kind.")}

// The update made from step s is in force from step s+1+max_staleness, neither earlier nor later, however fast it was: the
// version that each step is scored by, for delays and intervals. By hand: with interval u and delay m the update after
// steps k*u-1 is in force from step k*u+m.
func TestWhatIsInForceDependsOnStepsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]any
		want     []float64
	}{
		"async":         {map[string]any{}, []float64{1, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"sync":          {map[string]any{"execution": "sync"}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"staleness 0":   {map[string]any{"max_staleness": 0}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"staleness 3":   {map[string]any{"max_staleness": 3}, []float64{1, 1, 1, 1, 2, 3, 4, 5, 6, 7}},
		"interval 2":    {map[string]any{"update_interval": 2}, []float64{1, 1, 1, 2, 2, 3, 3, 4, 4, 5}},
		"interval 4":    {map[string]any{"update_interval": 4}, []float64{1, 1, 1, 1, 1, 2, 2, 2, 2, 3}},
		"interval 6":    {map[string]any{"update_interval": 6}, []float64{1, 1, 1, 1, 1, 1, 1, 2, 2, 2}},
		"interval 8":    {map[string]any{"update_interval": 8}, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 2}},
		"2, sync":       {map[string]any{"update_interval": 2, "execution": "sync"}, []float64{1, 1, 2, 2, 3, 3, 4, 4, 5, 5}},
		"frozen":        {map[string]any{"frozen": true}, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		"instance":      {map[string]any{"scope": "instance"}, []float64{1, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"instance sync": {map[string]any{"scope": "instance", "execution": "sync"}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			run, _ := scripted(nil)
			c.settings["rubric"] = easy
			p := mustNew(t, run, c.settings)
			var got []float64
			for step := range 10 {
				mustStep(t, p, step, group("p", nil, "x", "y"))
				m := p.Metrics()
				got = append(got, m["amaris/version"])
				if s := m["amaris/staleness_versions"]; s > float64(p.options.delay()) {
					t.Errorf("step %d: %v versions behind, at most %d are allowed", step, s, p.options.delay())
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("versions %v, want %v", got, c.want)
			}
		})
	}
}

// An update is made from the analyses of all steps of its interval, and of no others.
func TestIntervalPoolsAnalyses(t *testing.T) {
	var reports []int
	var mu sync.Mutex
	run, _ := scripted(func(q rewards.Question) (string, error) {
		if q.Name == stageSummarize {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, countOf(q.User, "\nReport "))
		}
		return script(q)
	})
	p := mustNew(t, run, map[string]any{"rubric": easy, "update_interval": 3, "execution": "sync"})
	for step := range 7 {
		texts := []string{"x", "y", "z"}[:1+step%3]
		mustStep(t, p, step, group("p", nil, texts...))
	}
	if want := []int{1 + 2 + 3, 1 + 2 + 3}; !slices.Equal(reports, want) {
		t.Errorf("summaries of %v reports, want %v", reports, want)
	}
}

// More analyses than a chunk has are summarised in chunks and then together; all summaries are kept.
func TestMetaSummarisation(t *testing.T) {
	var chunks, metas atomic.Int64
	run, _ := scripted(func(q rewards.Question) (string, error) {
		switch q.Name {
		case stageSummarize:
			chunks.Add(1)
		case stageMeta:
			metas.Add(1)
			if n := countOf(q.User, "\nSummary "); n != 3 {
				return "", fmt.Errorf("%d summaries to consolidate, want 3", n)
			}
		}
		return script(q)
	})
	p := mustNew(t, run, map[string]any{"rubric": easy, "chunk_size": 2, "execution": "sync"})
	mustStep(t, p, 0, group("p", nil, "1", "2", "3", "4", "5"))
	mustScore(t, p, 1, group("p", nil, "1"))
	if chunks.Load() != 3 || metas.Load() != 1 {
		t.Errorf("%d chunks and %d meta summaries of 5 analyses in chunks of 2", chunks.Load(), metas.Load())
	}
	kinds := map[string]int{}
	for d := range p.workshop.store.memory.All() {
		kinds[string(d.Kind)]++
	}
	if want := "map[analysis:5 chunk_summary:3 step_summary:1 update_record:1]"; fmt.Sprint(kinds) != want {
		t.Errorf("memory %v, want %v", kinds, want)
	}
}

// A judge that is down in the background harms nothing until its update is needed; then the step fails after the allowed
// tries, and the next try goes on as if nothing had been.
func TestFailuresOfTheBackground(t *testing.T) {
	var down atomic.Bool
	run, _ := scripted(func(q rewards.Question) (string, error) {
		if down.Load() {
			return "", errors.New("connection refused")
		}
		return script(q)
	})
	undisturbed := mustNew(t, run, map[string]any{"rubric": easy})
	p := mustNew(t, run, map[string]any{"rubric": easy, "max_update_failures": 2})
	g := group("p", nil, "x", "y")
	down.Store(true)
	mustStep(t, p, 0, g)
	mustStep(t, p, 1, g) // scored by the first version: nothing is due yet
	_, err := p.Score(t.Context(), 2, []grpo.Group{g})
	if err == nil || !contains(err.Error(), "the update after step 1 failed 2 times", "connection refused") {
		t.Fatalf("step 2: %v", err)
	}
	if v := p.inForce()[criteria.Global].Set.Version(); v != 1 {
		t.Errorf("version %d after a failed step", v)
	}
	down.Store(false)
	for step := range 5 {
		mustStep(t, undisturbed, step, g)
		if step >= 2 {
			mustStep(t, p, step, g)
		}
	}
	if got, want := stateOf(t, p), stateOf(t, undisturbed); got != want {
		t.Errorf("after failures\n%s\nundisturbed\n%s", got, want)
	}
	if p.Metrics()["amaris/update_failures"] < 2 {
		t.Errorf("failures are not counted: %v", p.Metrics())
	}
}

// A question without a usable answer, in any stage, keeps the rubric and is no failure.
func TestUnusableAnswers(t *testing.T) {
	for _, stage := range stages {
		t.Run(stage, func(t *testing.T) {
			run, _ := scripted(func(q rewards.Question) (string, error) {
				if q.Name == stage {
					return `{"nonsense": 1}`, nil
				}
				return script(q)
			})
			p := mustNew(t, run, map[string]any{"rubric": easy, "execution": "sync", "chunk_size": 2})
			for step := range 3 {
				mustStep(t, p, step, group("p", nil, "x", "y", "z"))
			}
			want := map[string]float64{stageAnalyze: 1, stageSummarize: 1, stageMeta: 1, stageQuery: 3, stageUpdate: 1}[stage]
			if got := p.Metrics()["amaris/version"]; got != want {
				t.Errorf("version %v, want %v", got, want)
			}
			if got := p.Metrics()["amaris/unanswered"]; (got == 1) != (want == 1) {
				t.Errorf("%v updates without an answer", got)
			}
		})
	}
}

// A run that is killed at any place, with updates ready, half ready and not begun, goes on from its checkpoint to the same
// state, log and memory as an undisturbed one: nothing is lost, and nothing is applied twice.
func TestKilledAndResumed(t *testing.T) {
	for _, settings := range []map[string]any{
		{"rubric": easy}, {"rubric": easy, "update_interval": 2, "max_staleness": 2}, {"rubric": easy, "scope": "instance"},
		{"anchors": easy},
	} {
		want := endOf(t, settings, -1, 0)
		for _, saved := range []int{0, 1, 4} {
			for _, extra := range []int{0, 2} { // steps after the checkpoint that the kill undoes
				if got := endOf(t, settings, saved, extra); got != want {
					t.Errorf("%v, checkpoint after step %d, killed %d steps later:\n%s\nundisturbed:\n%s", settings, saved, extra, got, want)
				}
			}
		}
	}
}

// endOf makes eight steps, with a kill in between if saved is not negative, and returns what is left of the run.
func endOf(t *testing.T, settings map[string]any, saved, extra int) string {
	run, _ := scripted(nil)
	run.Dir = t.TempDir()
	groups := func(step int) []grpo.Group {
		return []grpo.Group{group("p", nil, fmt.Sprint("x", step), "y"), group(fmt.Sprint("q", step%2), nil, "z")}
	}
	p := mustNew(t, run, cloned(settings))
	for step := range 8 {
		mustStep(t, p, step, groups(step)...)
		if step != saved {
			continue
		}
		checkpoint := t.TempDir()
		if err := p.Save(checkpoint); err != nil {
			t.Fatal(err)
		}
		for more := step + 1; more <= step+extra; more++ {
			mustStep(t, p, more, groups(more)...)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		p = mustNew(t, run, cloned(settings))
		if err := p.Load(checkpoint); err != nil {
			t.Fatal(err)
		}
	}
	end := stateOf(t, p)
	log, err := os.ReadFile(criteria.LogPath(run.Dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return end + string(log)
}

// stateOf is the state that p saves and the documents with it.
func stateOf(t *testing.T, p *Provider) string {
	t.Helper()
	dir := t.TempDir()
	if err := p.Save(dir); err != nil {
		t.Fatal(err)
	}
	state, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := readDocuments(filepath.Join(dir, memoryFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(state) + asJSON(t, docs)
}

// A memory that is shorter than the checkpoint says is another run's: an error, not a run without its history.
func TestAnotherRunsMemory(t *testing.T) {
	run, _ := scripted(nil)
	run.Dir = t.TempDir()
	p := mustNew(t, run, map[string]any{"rubric": easy, "execution": "sync"})
	for step := range 4 {
		mustStep(t, p, step, group("p", nil, "x"))
	}
	late := t.TempDir()
	if err := p.Save(late); err != nil {
		t.Fatal(err)
	}
	p.Close()
	other := run
	other.Dir = t.TempDir()
	q := mustNew(t, other, map[string]any{"rubric": easy, "execution": "sync"})
	mustStep(t, q, 0, group("p", nil, "x"))
	q.Close()
	r := mustNew(t, other, map[string]any{"rubric": easy, "execution": "sync"})
	err := r.Load(late)
	if err == nil {
		g := group("p", nil, "x")
		if err = r.Learn(t.Context(), 5, []grpo.Group{g}); err == nil {
			_, err = r.Score(t.Context(), 5, []grpo.Group{g})
		}
	}
	if err == nil || !contains(err.Error(), "another run") {
		t.Errorf("error %v", err)
	}
}
