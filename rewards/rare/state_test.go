package rare

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

// uneven gives full marks to half of what it is asked, so that some criteria are saturated at each step and others not.
func uneven(key, answer string, most int) int {
	if (len(key)+len(answer)+int(key[len(key)-1])+int(answer[0]))%3 == 0 {
		return most / 2
	}
	return most
}

var evolving = map[string]any{"rubric": rubricOf(3), "retention": true, "levels": 3}

func start(t testing.TB, dir string) *Provider {
	judge := &scoringtest.Judge{Rule: uneven, Other: propose}
	run := judge.Run()
	run.Dir = dir
	return mustNew(t, run, evolving)
}

// step is what a run scores at a step.
func step(n int) []grpo.Group {
	texts := func(k int) []string { return []string{fmt.Sprint(n, k), fmt.Sprint(n, "-", k), fmt.Sprint(n, "--", k)} }
	return []grpo.Group{group(fmt.Sprint("p", n%2), nil, texts(0)...), group("q", nil, texts(1)...), group(fmt.Sprint("r", n), nil, texts(2)...)}
}

func logOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(criteria.LogPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func saved(t *testing.T, p *Provider) string {
	t.Helper()
	dir := t.TempDir()
	if err := p.Save(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A run that was killed two steps after its checkpoint, and resumes, ends with the scores, the state and the log of one that
// was not, byte for byte.
func TestAResumedRunIsTheUndisturbedOne(t *testing.T) {
	whole, killed := t.TempDir(), t.TempDir()
	p := start(t, whole)
	var want [][]rewards.Score
	for n := range 8 {
		want = append(want, mustScore(t, p, n, step(n)...))
	}
	first, checkpoint := start(t, killed), t.TempDir()
	for n := range 6 {
		mustScore(t, first, n, step(n)...)
		if n == 3 {
			if err := first.Save(checkpoint); err != nil {
				t.Fatal(err)
			}
		}
	}
	second := start(t, killed)
	if err := second.Load(checkpoint); err != nil {
		t.Fatal(err)
	}
	for n := 4; n < 8; n++ {
		if got := mustScore(t, second, n, step(n)...); !reflect.DeepEqual(got, want[n]) {
			t.Errorf("step %d: %+v, undisturbed %+v", n, got, want[n])
		}
	}
	if got, want := logOf(t, killed), logOf(t, whole); got != want {
		t.Errorf("log\n%s\nundisturbed\n%s", got, want)
	}
	if got, want := saved(t, second), saved(t, p); got != want || strings.Count(want, "\n") < 6 {
		t.Errorf("state\n%s\nundisturbed\n%s", got, want)
	}
}

// A step that is scored again, in whole or with other groups, replaces what it did to the rubrics of these groups, in the state
// and in the log; what the other groups did stays.
func TestAStepScoredAgainReplacesItself(t *testing.T) {
	once, twice := t.TempDir(), t.TempDir()
	p, q := start(t, once), start(t, twice)
	for n := range 3 {
		mustScore(t, p, n, step(n)...)
		mustScore(t, q, n, step(n)...)
	}
	want := mustScore(t, p, 3, step(3)...)
	mustScore(t, q, 3, step(5)[:2]...) // other completions of two of the prompts
	if got := mustScore(t, q, 3, step(3)...); !reflect.DeepEqual(got, want) {
		t.Errorf("scored again %+v, want %+v", got, want)
	}
	if got, want := saved(t, q), saved(t, p); got != want {
		t.Errorf("state\n%s\nof one call\n%s", got, want)
	}
	if got, want := logOf(t, twice), logOf(t, once); got != want {
		t.Errorf("log\n%s\nof one call\n%s", got, want)
	}
}

// Two groups of one prompt in a step start from the same rubric; the later one's stays.
func TestTheLaterGroupOfAPromptStays(t *testing.T) {
	rule := table{"id2": {"x": 0}, "id1": {"z": 0}}.rule
	run := (&scoringtest.Judge{Rule: rule, Other: propose}).Run()
	run.Dir = t.TempDir()
	p := mustNew(t, run, map[string]any{"rubric": rubricOf(2)})
	scores := mustScore(t, p, 4, group("p", nil, "x", "y"), group("p", nil, "y", "z"))
	if a, b := ids(scores[0]), ids(scores[2]); a != "rare-4-1 id2" || b != "id1 rare-4-2" {
		t.Errorf("the groups have the criteria %s and %s", a, b)
	}
	if got := p.states.now["p"].Set.At(0).ID + " " + p.states.now["p"].Set.At(1).ID; got != "id1 rare-4-2" {
		t.Errorf("the rubric is %s", got)
	}
	if m := p.Metrics(); m["rare/switches"] != 1 || m["rare/trigger_rate"] != 1 {
		t.Errorf("metrics %v", m)
	}
	events, err := criteria.ReadLog(criteria.LogPath(run.Dir))
	if err != nil || len(events) != 3 || events[0].Set != nil || events[1].Kind != criteria.Init || events[2].Set.At(1).ID != "rare-4-2" {
		t.Errorf("the log is not a visit, the first rubric and the later group's: %v, %+v", err, events)
	}
	mustScore(t, p, 5, group("p", nil, "x", "z"), group("p", nil, "z", "z"))
	if s := p.states.now["p"]; s.Visits != 2 || len(s.Retired) != 2 {
		t.Errorf("after two steps %+v", s)
	}
}

// Held-out prompts are scored by the rubrics as they are, and neither the state nor the log nor the metrics notice.
func TestHeldOutPromptsChangeNothing(t *testing.T) {
	dir := t.TempDir()
	judge := &scoringtest.Judge{Rule: uneven, Other: propose}
	run := judge.Run()
	run.Dir = dir
	p := mustNew(t, run, evolving)
	mustScore(t, p, rewards.HeldOut, step(0)...)
	if _, err := os.Stat(filepath.Join(dir, "rubrics")); !os.IsNotExist(err) {
		t.Errorf("held-out prompts made a rubric log: %v", err)
	}
	mustScore(t, p, 0, step(0)...)
	before, log, metrics, asked := saved(t, p), logOf(t, dir), p.Metrics(), len(judge.Asked())
	scores := mustScore(t, p, rewards.HeldOut, group("q", nil, "a", "a"), group("new", nil, "b", "b"))
	if saved(t, p) != before || logOf(t, dir) != log || !reflect.DeepEqual(p.Metrics(), metrics) {
		t.Error("held-out prompts left a trace")
	}
	if got := len(judge.Asked()) - asked; got != 4 {
		t.Errorf("%d questions about 4 held-out completions", got)
	}
	if now := p.states.now["q"].Set.At(0).ID; scores[0].Parts[0].Name != now || scores[2].Parts[0].Name != "id1" {
		t.Errorf("held-out prompts have the criteria %s and %s", ids(scores[0]), ids(scores[2]))
	}
}

// What a checkpoint cannot say is refused with the place, and the provider stays as it was.
func TestLoadRefuses(t *testing.T) {
	p := start(t, "")
	mustScore(t, p, 0, step(0)...)
	good := saved(t, p)
	for name, c := range map[string]struct{ text, want string }{
		"nothing":       {"", "header"},
		"cut off":       {good[:len(good)-9], "rubric of"},
		"too long":      {good + "{}", "goes on after its"},
		"too few":       {strings.Replace(good, `"rubrics":`, `"rubrics":9`, 1), "rubric of"},
		"other places":  {strings.Replace(good, `"switched":[`, `"switched":[0,`, 1), "places for 3 criteria"},
		"other visit":   {strings.Replace(good, `"switched":[`, `"switched":[7`, 1), "switched at the visits"},
		"other scope":   {strings.Replace(good, `"set":{"scope":"`, `"set":{"scope":"x`, 1), `the rubric is of "x`},
		"unknown field": {strings.Replace(good, `"visits"`, `"visitors"`, 1), "visitors"},
		"no state":      {`{"step":0,"step_bytes":0,"log_bytes":0,"rubrics":1}` + "\n" + `{"scope":"p","now":null,"seen":false,"was":null}`, "has no state"},
		"a bad rubric":  {strings.Replace(good, `"weight":1`, `"weight":-1`, 3), "rubric"},
		"log bytes":     {strings.Replace(good, `"step_bytes":0`, `"step_bytes":5`, 1), "the log has 0 bytes, 5 before"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, stateFile), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := p.Load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if saved(t, p) != good {
		t.Error("a refused checkpoint changed the provider")
	}
	if err := p.Load(t.TempDir()); err == nil {
		t.Error("a checkpoint without the file was loaded")
	}
}

// Saving and loading keeps what JSON could lose: weights to the last bit, checks, texts of any script.
func TestSavedBitForBit(t *testing.T) {
	odd := map[string]any{"id": "odd", "text": "<a> & \u2028 漢 \"q\"", "weight": math.Nextafter(0.1, 1)}
	p := mustNew(t, (&scoringtest.Judge{Rule: table{}.rule}).Run(), map[string]any{
		"rubric": []any{odd, criterion("b", "Is kind.", "anchor", true)}, "generator": "pool", "pool": pool,
	})
	mustScore(t, p, 0, group("p", nil, "a b c", "x"))
	dir := t.TempDir()
	if err := p.Save(dir); err != nil {
		t.Fatal(err)
	}
	want := *p.states.now["p"]
	if err := p.Load(dir); err != nil {
		t.Fatal(err)
	}
	got := *p.states.now["p"]
	if !got.Set.Equal(want.Set) || !reflect.DeepEqual(got.Retired, want.Retired) || got.Set.At(0).Weight != math.Nextafter(0.1, 1) {
		t.Errorf("loaded %+v, saved %+v", got, want)
	}
}
