package rare

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

// with is a good rubric with more options.
func with(more ...any) map[string]any {
	m := map[string]any{"rubric": rubricOf(1)}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

// refused checks that each of some options is an error that says what the key says.
func refused(t *testing.T, cases map[string]map[string]any) {
	t.Helper()
	for want, settings := range cases {
		if _, err := New((&scoringtest.Judge{}).Run(), settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Every mistake in the options is an error before the run, which says what to set.
func TestOptionErrors(t *testing.T) {
	refused(t, map[string]map[string]any{
		`did you mean "polarity"?`:                               with("polarty", "negative"),
		`mode is "smaple": use one of sample, task, static`:      with("mode", "smaple"),
		`scoring is "implicit": use one of explicit`:             with("scoring", "implicit"),
		`polarity is "neg": use one of negative`:                 with("polarity", "neg"),
		`generator is "llm": use one of judge, pool, random`:     with("generator", "llm"),
		"levels is 0: set at least 1":                            with("levels", 0),
		"levels is 101: set at most 100":                         with("levels", 101),
		"max_rollouts is 1: set at least 2":                      with("max_rollouts", 1),
		"max_per_step is -1: set at least 0":                     with("max_per_step", -1),
		"max_per_prompt is -1: set at least 0":                   with("max_per_prompt", -1),
		"max_per_visit is -1: set at least 0":                    with("max_per_visit", -1),
		"min_visits is 0: set at least 1 (1 is every visit)":     with("min_visits", 0),
		"similarity is 0: set more than 0":                       with("similarity", 0),
		"similarity is 1.5: set more than 0":                     with("similarity", 1.5),
		"task_column is set, but mode is sample":                 with("task_column", "t"),
		"clip":                                                   with("clip", "hard"),
		"option levels is a string: give a whole number":         with("levels", "four"),
		"option max_per_visit is a number 1.5: give a whole num": with("max_per_visit", 1.5),
	})
}

// So is what is wrong with rubrics, candidates and files.
func TestSourceErrors(t *testing.T) {
	many := make([]any, 10_000)
	for i := range many {
		many[i] = criterion("", "Is kind.")
	}
	twice := []any{criterion("a", "Is kind."), criterion("a", "Is short.")}
	refused(t, map[string]map[string]any{
		"no rubric: set rubric, file, or column":            {},
		"both rubric and file are set":                      with("file", "x.json"),
		"generator is pool, but there are no candidates":    with("generator", "pool"),
		"candidates are set, but generator is judge":        with("pool", pool),
		`pool: criteria 1 and 2 have the same id "a"`:       with("generator", "pool", "pool", twice),
		"pool: the rubric is an empty list":                 with("generator", "pool", "pool", []any{}),
		`rubric: criteria 1 and 2 have the same id "a"`:     {"rubric": twice},
		"rubric: no criterion has a weight above 0":         {"rubric": []any{criterion("a", "Is kind.", "weight", 0)}},
		"rubric: there are 10000 criteria: use at most 256": {"rubric": many},
		"no-such-file.json":                                 {"file": "no-such-file.json"},
		"update_prompt: open no-such-file":                  with("update_prompt", "no-such-file"),
		`unknown kind "cuont": did you mean "count"?`:       {"rubric": []any{map[string]any{"id": "a", "check": map[string]any{"kind": "cuont"}}}},
	})
}

// A judge that cannot be opened, or is not there, is known before the run; a rubric and a generator that need none open none.
func TestTheJudgeIsOpenedWhereItIsNeeded(t *testing.T) {
	down := rewards.Run{Judge: func() (rewards.Judge, error) { return nil, errors.New("set judge.url") }}
	for name, c := range map[string]struct {
		run      rewards.Run
		settings map[string]any
		want     string
	}{
		"scores":            {down, map[string]any{"mode": "static", "rubric": rubricOf(1)}, "set judge.url"},
		"proposes":          {down, map[string]any{"rubric": met(1)}, "set judge.url"},
		"not there":         {rewards.Run{}, map[string]any{"rubric": met(1)}, "generator judge needs a judge"},
		"candidates":        {down, map[string]any{"rubric": met(1), "generator": "pool", "pool": rubricOf(1)}, "set judge.url"},
		"programs and pool": {down, map[string]any{"rubric": met(1), "generator": "pool", "pool": pool}, ""},
		"static programs":   {rewards.Run{}, map[string]any{"rubric": met(1), "mode": "static"}, ""},
	} {
		_, err := New(c.run, c.settings)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Where the configuration and the row both have criteria, the common ones come first and all ids differ.
func TestFirstRubricOfARow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rubric.json")
	if err := os.WriteFile(path, []byte(`[{"title": "Kind", "description": "Is kind.", "weight": 3}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	p := mustNew(t, (&scoringtest.Judge{Rule: table{}.rule}).Run(), map[string]any{"mode": "static", "file": path, "column": "own"})
	scores := mustScore(t, p, 0, group("p", map[string]any{"own": []any{criterion("c1", "Rhymes.")}}, "x"),
		group("q", map[string]any{"own": nil}, "x"))
	if len(scores[0].Parts) != 2 || scores[0].Parts[0].Weight != 3 || scores[0].Parts[1].Name != "row.c1" || len(scores[1].Parts) != 1 {
		t.Errorf("scores %+v", scores)
	}
	for want, columns := range map[string]map[string]any{
		"the row has no column own": {}, "column own: the rubric is a number": {"own": 5.0},
		"column own: criterion 2": {"own": []any{criterion("a", "")}},
	} {
		row := group("p", columns).Prompt
		if err := p.Check(row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", columns, err, want)
		}
	}
}
