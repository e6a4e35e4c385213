package amaris

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

// The first step's completions make the first rubric from an empty memory, and are scored by it; they are not analysed
// again when the step is learnt from.
func TestColdStart(t *testing.T) {
	analysed := 0
	run, judge := scripted(nil)
	run.Dir = t.TempDir()
	p := mustNew(t, run, map[string]any{"anchors": []any{criterion("a0", "Is safe.")}})
	g := group("p", nil, "x", "y")
	scores := mustScore(t, p, 0, g)
	if len(scores[0].Parts) != 2 || scores[0].Parts[0].Name != "a0" || scores[0].Parts[1].Name != "a1" {
		t.Fatalf("scored by %+v, want the anchor and what was made", scores[0].Parts)
	}
	if err := p.Learn(t.Context(), 1, []grpo.Group{g}); err != nil {
		t.Fatal(err)
	}
	mustScore(t, p, 1, g)
	for _, q := range judge.Asked() {
		switch q.Name {
		case stageAnalyze:
			analysed++
		case stageQuery:
			t.Error("an empty memory was searched")
		}
	}
	if analysed != 2 {
		t.Errorf("%d analyses of the first step's 2 completions", analysed)
	}
	events, err := criteria.ReadLog(criteria.LogPath(run.Dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 1 || events[0].Kind != criteria.Init || events[0].Version != 1 || events[0].Ops[0].Kind != OpCreate {
		t.Errorf("log %+v", events)
	}
	if anchor, _ := events[0].Set.Find("a0"); !anchor.Anchor {
		t.Error("the anchor is none")
	}
}

// A first step that is scored again, with other completions, makes the first rubric again and leaves one first rubric in log
// and memory; further prompts of the step are scored by it.
func TestColdStartAgain(t *testing.T) {
	run, _ := scripted(nil)
	run.Dir = t.TempDir()
	p := mustNew(t, run, map[string]any{})
	mustScore(t, p, 0, group("p", nil, "x"))
	mustScore(t, p, 0, group("p", nil, "other", "more"))
	mustScore(t, p, 0, group("q", nil, "z"))
	events, err := criteria.ReadLog(criteria.LogPath(run.Dir))
	if err != nil || len(events) != 1 {
		t.Errorf("%d first rubrics in the log, %v", len(events), err)
	}
	if n := p.workshop.store.memory.Len(); n != 2+1+1 {
		t.Errorf("%d documents in the memory, want those of the second try", n)
	}
}

// A judge that writes no usable first rubric ends the step with an error that says what to do, and leaves no trace.
func TestColdStartWithoutRubric(t *testing.T) {
	for _, create := range []string{`[]`, `[{"text": "Only blame.", "weight": -1, "category": "bonus", "reason": "r"}]`, `[{"text": "x", "weight": 9, "category": "bonus", "reason": "r"}]`} {
		run, _ := scripted(func(q rewards.Question) (string, error) {
			if q.Name == stageUpdate {
				return decision(sheet{"create": create}), nil
			}
			return script(q)
		})
		p := mustNew(t, run, map[string]any{})
		_, err := p.Score(t.Context(), 0, []grpo.Group{group("p", nil, "x")})
		if err == nil || !contains(err.Error(), "first rubric", "set rubric") || len(p.inForce()) > 0 {
			t.Errorf("%s: %v", create, err)
		}
	}
}

// Held-out prompts before the first step have no rubric: they are unscorable, not zero.
func TestHeldOutBeforeTheFirstStep(t *testing.T) {
	run, _ := scripted(nil)
	p := mustNew(t, run, map[string]any{})
	for _, s := range mustScore(t, p, rewards.HeldOut, group("p", nil, "x", "y")) {
		if !s.Unscorable || !math.IsNaN(s.Value) {
			t.Errorf("%+v", s)
		}
	}
	if len(p.inForce()) > 0 {
		t.Error("held-out prompts made a rubric")
	}
}

// Each prompt has its own rubric, from its row, which only its own completions change.
func TestInstanceScope(t *testing.T) {
	run, _ := scripted(nil)
	run.Dir = t.TempDir()
	p := mustNew(t, run, map[string]any{"scope": "instance", "column": "rubric", "anchors": []any{criterion("a0", "Is safe.")}})
	row := func(text string) map[string]any { return map[string]any{"rubric": []any{criterion("own", text)}} }
	one, two := group("one", row("Is red."), "x", "y"), group("two", row("Is blue."), "z")
	mustStep(t, p, 0, one)
	mustStep(t, p, 1, two)
	mustStep(t, p, 2, one, two)
	mustScore(t, p, 3, one)
	if got, want := texts(p, "one"), []string{"Is safe.", "Is red.", "Made at step 1."}; !slices.Equal(got, want) {
		t.Errorf("rubric of one: %v, want %v", got, want)
	}
	if got, want := texts(p, "two"), []string{"Is safe.", "Is blue.", "Made at step 2."}; !slices.Equal(got, want) {
		t.Errorf("rubric of two: %v, want %v", got, want)
	}
	for d := range p.workshop.store.memory.All() {
		if d.Prompt != "" && d.Prompt != d.Scope {
			t.Errorf("document %s of prompt %s is in the memory of %s", d.ID, d.Prompt, d.Scope)
		}
	}
}

// An update of one prompt is shown nothing of another's memory.
func TestMemoriesAreApart(t *testing.T) {
	run, judge := scripted(nil)
	p := mustNew(t, run, map[string]any{"scope": "instance", "rubric": easy, "execution": "sync"})
	mustStep(t, p, 0, group("one", nil, "x"))
	mustStep(t, p, 1, group("two", nil, "y"))
	mustStep(t, p, 2, group("one", nil, "z"))
	var shown []int
	for _, q := range judge.Asked() {
		if q.Name == stageUpdate {
			shown = append(shown, documents(q.User))
		}
	}
	if len(shown) != 3 || shown[0] != 0 || shown[1] != 0 || shown[2] == 0 {
		t.Errorf("documents that the updates of one, two, one were shown: %v", shown)
	}
}

// tenSteps are ten steps with N = 4, K = 2 and D = 3; it returns the last question for an update, and how often queries were asked for.
func tenSteps(t *testing.T, retrieval string) (last rewards.Question, asked int) {
	number := 0
	run, _ := scripted(func(q rewards.Question) (string, error) {
		switch q.Name {
		case stageUpdate:
			last = q
		case stageQuery:
			asked++
			return `{"queries": [{"aim": "curriculum", "query": "Made at step 3"}, {"aim": "curriculum", "query": "MADE AT STEP 3"},
				{"aim": "past_update", "query": "step 7"}, {"aim": "past_update", "query": "over the limit"}]}`, nil
		case stageSummarize:
			number++
			return fmt.Sprintf(`{"health": "Number %d of all.", "phase": "early", "behaviours": [], "hacking_risk": {"evidence": [],
				"type": "none", "severity": "none"}, "weakest_criterion": {"id": "", "reason": ""}, "saturation": [], "plan": "Keep."}`, number), nil
		}
		return script(q)
	})
	p := mustNew(t, run, map[string]any{"rubric": easy, "execution": "sync", "retrieval": retrieval, "queries": 2, "documents": 3})
	for step := range 10 {
		mustStep(t, p, step, group("p", nil, fmt.Sprint("x", step)))
	}
	return last, asked
}

// What each kind of retrieval shows an update that has ten steps behind it: N summaries, D documents for each query, both
// without duplicates, or nothing.
func TestRetrieval(t *testing.T) {
	for _, name := range []string{"none", "static", "dynamic", "both"} {
		t.Run(name, func(t *testing.T) {
			last, asked := tenSteps(t, name)
			summaries, all := countOf(last.User, ", step summary of step"), documents(last.User)
			switch name {
			case "none":
				if all != 0 || asked != 0 {
					t.Errorf("%d documents, %d questions for queries", all, asked)
				}
			case "static":
				if asked != 0 || all != 4 || summaries != 4 {
					t.Errorf("%d documents, %d of them summaries, %d questions for queries", all, summaries, asked)
				}
			default:
				if most := 2*3 + map[string]int{"both": 4}[name]; all < 1 || all > most || asked != 9 {
					t.Errorf("%d documents, at most %d, %d questions for queries", all, most, asked)
				}
				if contains(last.User, "over the limit") {
					t.Error("more queries than allowed")
				}
			}
			seen := map[string]bool{}
			for _, text := range scoringtest.Fenced(last.User)[1:] {
				if seen[text] {
					t.Errorf("shown twice: %s", text)
				}
				seen[text] = true
			}
		})
	}
}

// The last rubrics of a finished run, from its log alone, are the first ones of a run that keeps them.
func TestFinalStatic(t *testing.T) {
	run, _ := scripted(nil)
	run.Dir = t.TempDir()
	p := mustNew(t, run, map[string]any{"rubric": easy, "execution": "sync"})
	for step := range 4 {
		mustStep(t, p, step, group("p", nil, "x"))
	}
	mustScore(t, p, 4, group("p", nil, "x"))
	want := texts(p, criteria.Global)
	p.Close()
	frozen := mustNew(t, (&scoringtest.Judge{}).Run(), map[string]any{"from_run": run.Dir, "frozen": true}) // a judge that only scores
	for step := range 3 {
		mustStep(t, frozen, step, group("p", nil, "x"))
	}
	if got := texts(frozen, criteria.Global); !slices.Equal(got, want) || len(got) != 5 {
		t.Errorf("rubric %v, want that of the run, %v", got, want)
	}
	if _, err := New(rewards.Run{}, map[string]any{"from_run": t.TempDir(), "frozen": true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder without a run: %v", err)
	}
}

// wrongSettings are settings by the error that they bring; prompt is a file that shows nothing.
func wrongSettings(prompt string) map[string]map[string]any {
	rubric := []any{criterion("a", "x")}
	return map[string]map[string]any{
		`did you mean "scope"`:                {"scop": "global"},
		"use one of global, instance":         {"scope": "sample"},
		"use one of async, sync":              {"execution": "later"},
		"use one of explicit, per_criterion":  {"mode": "implicit"},
		"use one of both, static":             {"retrieval": "all"},
		"max_staleness is -1":                 {"max_staleness": -1},
		"update_interval is 0":                {"update_interval": 0},
		"chunk_size is 1":                     {"chunk_size": 1},
		"max_weight is 0":                     {"max_weight": 0},
		"set max_criteria=2 or more":          {"max_criteria": 1, "rubric": rubric, "anchors": []any{criterion("b", "y")}},
		"set one of them":                     {"rubric": rubric, "file": "x.json"},
		"set scope to instance":               {"column": "rubric"},
		"no rubric":                           {"scope": "instance"},
		"goal is empty":                       {"goal": " "},
		"updates need a judge":                {"rubric": []any{map[string]any{"id": "a", "check": map[string]any{"kind": "regex", "pattern": "x"}}}},
		"prompts is \"score\"":                {"prompts": map[string]any{"score": "x"}},
		"does not show {{.Conversation}}":     {"prompts": map[string]any{"analyze": prompt}},
		"same id":                             {"anchors": rubric, "rubric": rubric},
		"embedder is":                         {"embedder": "chroma"},
		"embedder minilm cannot be opened":    {"embedder": "minilm"},
		"the options of the judge are a test": {"judge": "fails"},
	}
}

// Settings that cannot work are refused with what to set.
func TestOptions(t *testing.T) {
	prompt := filepath.Join(t.TempDir(), "prompt.tmpl")
	if err := os.WriteFile(prompt, []byte(`{{define "system"}}s{{end}}{{define "user"}}nothing{{end}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, settings := range wrongSettings(prompt) {
		run, _ := scripted(nil)
		switch {
		case want == "updates need a judge":
			run = rewards.Run{}
		case settings["judge"] != nil:
			delete(settings, "judge")
			run.Judge = func() (rewards.Judge, error) { return nil, errors.New(want) }
		}
		if settings["goal"] == nil {
			settings["goal"] = "Good answers."
		}
		if _, err := New(run, settings); err == nil || !contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", settings, err, want)
		}
	}
}

// A row that cannot be scored or analysed is refused before the run.
func TestCheck(t *testing.T) {
	run, _ := scripted(nil)
	p := mustNew(t, run, map[string]any{"scope": "instance", "column": "rubric", "analysis_column": "answer"})
	good := map[string]any{"rubric": []any{criterion("a", "x")}, "answer": nil}
	if err := p.Check(&grpo.Prompt{ID: "p", Columns: good}); err != nil {
		t.Error(err)
	}
	for want, columns := range map[string]map[string]any{
		"no column rubric": {"answer": "x"}, "no column answer": {"rubric": good["rubric"]}, "column rubric": {"rubric": []any{}, "answer": "x"},
	} {
		var at *rewards.Error
		if err := p.Check(&grpo.Prompt{ID: "p", Columns: columns}); !errors.As(err, &at) || at.Prompt != "p" || !contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", columns, err, want)
		}
	}
}
