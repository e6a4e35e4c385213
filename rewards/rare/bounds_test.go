package rare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

// switched visits prompts with three criteria that everything always meets, and returns for each step and prompt which
// places were switched.
func switched(t *testing.T, settings map[string]any, prompts int, steps int) []string {
	t.Helper()
	settings["rubric"] = []any{criterion("a", "Is kind."), criterion("b", "Is short."), criterion("c", "Is apt.")}
	judge := &scoringtest.Judge{Rule: table{}.rule, Other: propose}
	p := mustNew(t, judge.Run(), settings)
	var out []string
	for step := range steps {
		var line []string
		for k := range prompts {
			at := ""
			for _, part := range mustScore(t, p, step, group(fmt.Sprint("p", k), nil, "x", "y"))[0].Parts {
				if strings.HasPrefix(part.Name, fmt.Sprintf("rare-%d-", step)) {
					at += part.Name[len(part.Name)-1:]
				}
			}
			line = append(line, at)
		}
		out = append(out, strings.Join(line, ","))
	}
	return out
}

// Each bound by hand; a bound that is off by one, or is spent by what another rubric does, shows.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]any
		prompts  int
		want     []string // of each step, the places that each prompt switched
	}{
		"none":           {map[string]any{}, 2, []string{"123,123", "123,123"}},
		"max_per_visit":  {map[string]any{"max_per_visit": 2}, 2, []string{"12,12", "12,12"}},
		"max_per_prompt": {map[string]any{"max_per_prompt": 4}, 2, []string{"123,123", "1,1", ","}},
		"min_visits 2":   {map[string]any{"min_visits": 2}, 1, []string{"123", "", "123", ""}},
		"min_visits 3 with max_per_visit 1": {map[string]any{"min_visits": 3, "max_per_visit": 1}, 1,
			[]string{"1", "2", "3", "1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := switched(t, c.settings, c.prompts, len(c.want))
			for step := range got {
				if got[step] != c.want[step] {
					t.Errorf("step %d switched %q, want %q", step, got[step], c.want[step])
				}
			}
		})
	}
}

// max_per_step counts over all groups that are scored together, in their order.
func TestMaxPerStep(t *testing.T) {
	judge := &scoringtest.Judge{Rule: table{}.rule, Other: propose}
	p := mustNew(t, judge.Run(), map[string]any{"max_per_step": 3, "rubric": []any{criterion("a", "Is kind."), criterion("b", "Is short.")}})
	scores := mustScore(t, p, 0, group("p", nil, "x"), group("q", nil, "x"), group("r", nil, "x"))
	for i, want := range []string{"rare-0-1 rare-0-2", "rare-0-1 b", "a b"} {
		if got := ids(scores[i]); got != want {
			t.Errorf("group %d has the criteria %s, want %s", i, got, want)
		}
	}
}

// Task level by hand: "a" is full in both groups of task x; "b" is full in one of them only and stays. All completions of both
// groups are scored by the replacement. Task y is another rubric.
func TestTaskLevelPoolsItsGroups(t *testing.T) {
	judge := &scoringtest.Judge{Rule: table{"b": {"v": 0}, "rare-3-1": {"u": 1, "w": 2}}.rule, Other: propose}
	p := mustNew(t, judge.Run(), map[string]any{
		"mode": "task", "task_column": "task", "rubric": []any{criterion("a", "Is kind."), criterion("b", "Is short.")},
	})
	x, y := map[string]any{"task": "x"}, map[string]any{"task": "y"}
	scores := mustScore(t, p, 3, group("p", x, "t", "u"), group("o", y, "v"), group("q", x, "v", "w"))
	for i, want := range []string{
		"rare-3-1:1 b:1", "rare-3-1:0.25 b:1", "rare-3-1:1 b:0", "rare-3-1:1 b:0", "rare-3-1:0.5 b:1",
	} {
		if got := credits(scores[i]); got != want {
			t.Errorf("completion %d has the credits %s, want %s", i, got, want)
		}
	}
	if got := len(updates(judge)); got != 2 {
		t.Errorf("%d questions for replacements, want one a task", got)
	}
	scores = mustScore(t, p, 4, group("new", x, "u"))
	if got := credits(scores[0]); got != "rare-3-1:0.25 rare-4-2:1" {
		t.Errorf("a new prompt of task x has the credits %s", got)
	}
	scores = mustScore(t, p, 5, group("p", x, "u"), group("q", x, "t"))
	if got := ids(scores[0]); got != "rare-3-1 rare-5-2" {
		t.Errorf("the criteria are %s: the first is full in one group only", got)
	}
}

// Rows of a task with different rubrics are refused before the run: which of them counts would be chance.
func TestRowsOfATaskMustAgree(t *testing.T) {
	p := mustNew(t, (&scoringtest.Judge{}).Run(), map[string]any{"mode": "task", "task_column": "task", "column": "rubric"})
	row := func(task any, text string) map[string]any {
		return map[string]any{"task": task, "rubric": []any{criterion("a", text)}}
	}
	for _, c := range []struct {
		columns map[string]any
		want    string
	}{
		{row("x", "Is kind."), ""}, {row("x", "Is kind."), ""}, {row("y", "Is short."), ""},
		{row("x", "Is short."), `not those of the first row of task "x"`},
		{row(nil, "Is kind."), "column task must name the row's task"}, {row(3.0, "Is kind."), "column task must name"},
		{map[string]any{"task": "x"}, "the row has no column rubric"},
	} {
		err := p.Check(group("p", c.columns).Prompt)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("row %v: %v, want %q", c.columns, err, c.want)
		}
	}
}
