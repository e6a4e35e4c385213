package rubric

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
	"github.com/rubicon-rl/rubicon/rewards/rewardtest"
)

func mustNew(t testing.TB, run rewards.Run, settings map[string]any) *Provider {
	t.Helper()
	p, err := New(run, settings)
	if err != nil {
		t.Fatal(err)
	}
	return p.(*Provider)
}

func criterion(id, text string, weight float64) map[string]any {
	return map[string]any{"id": id, "text": text, "weight": weight}
}

func row(id string, rubric any) *grpo.Prompt {
	return &grpo.Prompt{ID: id, Text: "Do " + id + ".", Columns: map[string]any{"rubric": rubric}}
}

func completions(texts ...string) []*grpo.Completion {
	var out []*grpo.Completion
	for _, t := range texts {
		out = append(out, &grpo.Completion{Text: t})
	}
	return out
}

func TestConformance(t *testing.T) {
	list := []any{criterion("a", "Is kind.", 2), map[string]any{"text": "Is rude.", "weight": -1, "max_score": 5},
		map[string]any{"id": "short", "check": map[string]any{"kind": "count", "unit": "words", "max": 2}}}
	for name, settings := range map[string]map[string]any{
		"explicit":      {"rubric": list, "column": "rubric"},
		"per criterion": {"mode": "per_criterion", "column": "rubric", "samples": 2, "clip": "signed", "normalize": "absolute"},
		"implicit":      {"mode": "implicit", "column": "rubric"},
		"goal":          {"mode": "goal_ref", "goal": "Be kind.", "reference_column": "rubric"},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := func(t testing.TB) rewards.Provider {
				judge := &scoringtest.Judge{Missing: func(answer string) bool { return answer == "lost" }}
				return mustNew(t, judge.Run(), settings)
			}
			groups := func() []grpo.Group {
				return []grpo.Group{
					{Prompt: row("one", []any{criterion("x", "Rhymes.", 1)}), Completions: completions("a", "a b", "lost", "a b c")},
					{Prompt: row("two", []any{criterion("y", "Is long.", 1), criterion("z", "Is loud.", -1)}), Completions: completions("d", "e f")},
				}
			}
			suite := rewardtest.Suite{New: fresh, Groups: groups, Unscorable: []int{2}}
			if settings["column"] != nil {
				bad := groups()
				bad[1].Prompt.Columns["rubric"] = []any{criterion("y", "Is long.", 0), criterion("y", " ", 1)}
				suite.Fault = &rewardtest.Fault{Provider: fresh(t), Groups: bad, Prompt: "two", Completion: -1}
			}
			rewardtest.Run(t, suite)
		})
	}
}

// The two sources of a rubric together: the configuration's criteria come first and are everybody's, the row's follow under
// names of their own, even where both have the same id.
func TestRowsAddToTheConfiguration(t *testing.T) {
	judge := &scoringtest.Judge{Rule: func(key, _ string, most int) int {
		if key == "row.a" {
			return 0
		}
		return most
	}}
	p := mustNew(t, judge.Run(), map[string]any{"rubric": []any{criterion("a", "Is kind.", 3)}, "column": "rubric"})
	groups := []grpo.Group{
		{Prompt: row("both", []any{criterion("a", "Rhymes.", 1)}), Completions: completions("x")},
		{Prompt: row("null", nil), Completions: completions("x")},
	}
	got, err := p.Score(t.Context(), 0, groups)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Value != 0.75 || len(got[0].Parts) != 2 || got[0].Parts[0].Local || !got[0].Parts[1].Local || got[0].Parts[1].Name != "row.a" {
		t.Errorf("with a rubric of its own: %+v", got[0])
	}
	if got[1].Value != 1 || len(got[1].Parts) != 1 || got[1].Parts[0].Local {
		t.Errorf("without: %+v", got[1])
	}
	m := p.Metrics()
	if m["rubric/credit/a"] != 1 || m["rubric/reward/mean"] != 0.875 {
		t.Errorf("metrics %v", m)
	}
	if _, there := m["rubric/credit/row.a"]; there {
		t.Errorf("a row's own criterion is averaged over rows: %v", m)
	}
	// Held-out prompts change nothing.
	if _, err := p.Score(t.Context(), rewards.HeldOut, groups[:1]); err != nil || p.Metrics()["rubric/reward/mean"] != 0.875 {
		t.Errorf("after held-out prompts: %v, %v", p.Metrics(), err)
	}
}

// A row that cannot be scored must be named before anything is sampled.
func TestCheckNamesTheRow(t *testing.T) {
	judge := &scoringtest.Judge{}
	p := mustNew(t, judge.Run(), map[string]any{"column": "rubric"})
	for name, c := range map[string]struct {
		row  *grpo.Prompt
		want string
	}{
		"no column":  {&grpo.Prompt{ID: "r1"}, "the row has no column rubric"},
		"null":       {row("r1", nil), "there is no rubric: the value is null"},
		"no weights": {row("r1", []any{criterion("a", "x", 0)}), "no criterion has a weight above 0"},
		"twice":      {row("r1", []any{criterion("a", "x", 1), criterion("a", "y", 1)}), `the same id "a"`},
		"bad check":  {row("r1", []any{map[string]any{"check": map[string]any{"kind": "cuont"}}}), `"count"`},
	} {
		err := p.Check(c.row)
		var at *rewards.Error
		if !errors.As(err, &at) || at.Prompt != "r1" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q at r1", name, err, c.want)
		}
	}
	if err := p.Check(row("r1", []any{criterion("a", "x", 1)})); err != nil {
		t.Error(err)
	}
	implicit := mustNew(t, judge.Run(), map[string]any{"column": "rubric", "mode": "implicit"})
	if err := implicit.Check(row("r1", []any{map[string]any{"check": map[string]any{"kind": "json"}}})); err == nil {
		t.Error("mode implicit takes a check")
	}
}

func TestNewErrors(t *testing.T) {
	list := []any{criterion("a", "x", 1)}
	judge := (&scoringtest.Judge{}).Run()
	for name, c := range map[string]struct {
		run      rewards.Run
		settings map[string]any
		want     string
	}{
		"nothing":     {judge, nil, "rubric: there is no rubric: set rubric, file, or column"},
		"typo":        {judge, map[string]any{"rubrik": list}, `unknown option "rubrik": did you mean "rubric"?`},
		"two sources": {judge, map[string]any{"rubric": list, "file": "x.json"}, "rubric and file are set"},
		"no file":     {judge, map[string]any{"file": "nowhere.json"}, "nowhere.json"},
		"bad rubric":  {judge, map[string]any{"rubric": []any{criterion("a", "x", 1), criterion("a", "x", 1)}}, `the same id "a"`},
		"bad format":  {judge, map[string]any{"rubric": list, "format": "raar"}, `did you mean "rar"?`},
		"goal":        {judge, map[string]any{"mode": "goal", "goal": "x", "rubric": list}, "shows the judge no rubric"},
		"idle goal":   {judge, map[string]any{"goal": "x", "rubric": list}, "goal has no effect in mode explicit"},
		"mode":        {judge, map[string]any{"mode": "explict", "rubric": list}, `did you mean "explicit"?`},
		"no judge":    {rewards.Run{}, map[string]any{"rubric": list}, "set judge.url"},
		"check":       {judge, map[string]any{"rubric": []any{map[string]any{"check": map[string]any{"kind": "cuont"}}}}, `"count"`},
	} {
		if _, err := New(c.run, c.settings); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// The log has the configuration's rubric once, however often the run is resumed, and nothing before the first score.
func TestTheRubricIsLoggedOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "own.json")
	if err := os.WriteFile(file, []byte(`{"scope":"p9","version":4,"criteria":[{"id":"a","text":"Is kind."}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	groups := []grpo.Group{{Prompt: row("p", nil), Completions: completions("x")}}
	for range 2 {
		run := (&scoringtest.Judge{}).Run()
		run.Dir = filepath.Join(dir, "run")
		p := mustNew(t, run, map[string]any{"file": file})
		for step := 3; step < 5; step++ {
			if _, err := p.Score(t.Context(), step, groups); err != nil {
				t.Fatal(err)
			}
		}
	}
	events, err := criteria.ReadLog(criteria.LogPath(filepath.Join(dir, "run")))
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	if e := events[0]; e.Step != 3 || e.Kind != criteria.Init || e.Scope != criteria.Global || e.Version != 4 || e.Set.At(0).Text != "Is kind." {
		t.Errorf("event %+v", e)
	}
}
