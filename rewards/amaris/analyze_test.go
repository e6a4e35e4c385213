package amaris

import (
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/policy/grammar"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

// The analyst sees what the paper lists (sec. 2.1): input, output, rubric, goal, step, all steps, the model, and a reference
// answer; and the scorer does not see that answer.
func TestWhatTheAnalystSees(t *testing.T) {
	run, judge := scripted(nil)
	run.Steps, run.Model = 400, "Qwen2.5-7B-Instruct, 7.6B parameters"
	p := mustNew(t, run, map[string]any{
		"goal": "Correct chemistry.", "rubric": []any{criterion("a0", "Is\ncorrect.", "anchor", true), criterion("b", "Is brief.", "weight", -0.5)},
		"execution": "sync", "analysis_column": "answer",
	})
	mustStep(t, p, 7, group("p", map[string]any{"answer": "the reference"}, "the completion"))
	seen := 0
	for _, q := range judge.Asked() {
		if q.Tier == rewards.TierScore && strings.Contains(q.User, "the reference") {
			t.Error("the scorer sees the analyst's reference")
		}
		if q.Name != stageAnalyze {
			continue
		}
		seen++
		if !contains(q.User, "Correct chemistry.", "Step 8 of 400", "Qwen2.5-7B-Instruct", "rubric (version 1)", "a0 (weight +1, ANCHOR): Is correct.",
			"b (weight -0.5): Is brief.") {
			t.Errorf("the question is\n%s", q.User)
		}
		if got := strings.Join(scoringtest.Fenced(q.User), "|"); got != "Do p.|the reference|the completion" {
			t.Errorf("fenced: %s", got)
		}
	}
	if seen != 1 {
		t.Errorf("%d analyses", seen)
	}
}

// A reply that is not of the form is refused, with what is wrong; too long texts are cut, what does not print is dropped.
func TestForms(t *testing.T) {
	forms, err := openForms()
	if err != nil {
		t.Fatal(err)
	}
	good := `{"queries": [{"aim": "curriculum", "query": "a` + "\\u0000\\n" + `b"}]}`
	var reply struct{ Queries []Query }
	if err := forms[stageQuery].read(good, &reply); err != nil || reply.Queries[0].Text != "a b" {
		t.Errorf("%v, %+v", err, reply)
	}
	long := `{"queries": [{"aim": "curriculum", "query": "` + strings.Repeat("x", 999) + `"}]}`
	if err := forms[stageQuery].read(long, &reply); err != nil || len(reply.Queries[0].Text) != 200 {
		t.Errorf("%v, %d characters", err, len(reply.Queries[0].Text))
	}
	for want, bad := range map[string]string{
		"not JSON":              `queries`,
		"goes on after":         good + ` and more`,
		`has no "queries"`:      `{}`,
		`has a field "more"`:    `{"queries": [], "more": 1}`,
		"is not a list":         `{"queries": {}}`,
		"is not an object":      `{"queries": ["x"]}`,
		"is not a text":         `{"queries": [{"aim": "curriculum", "query": 1}]}`,
		"use one of failure":    `{"queries": [{"aim": "other", "query": "x"}]}`,
		"write at most 64":      `{"queries": [` + strings.Repeat(`{"aim": "curriculum", "query": "x"},`, 64) + `{"aim": "curriculum", "query": "x"}]}`,
		`"query": every field`:  `{"queries": [{"aim": "curriculum"}]}`,
		"the reply is not an o": `[]`,
	} {
		if err := forms[stageQuery].read(bad, &reply); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bad, err, want)
		}
	}
	update := decision(sheet{"reweight": `[{"id": "a", "weight": 1e999, "reason": "r"}]`})
	if err := forms[stageUpdate].read(update, &reply); err == nil || !strings.Contains(err.Error(), "sensible size") {
		t.Errorf("an endless weight: %v", err)
	}
	if err := forms[stageUpdate].read(decision(sheet{"reweight": `[{"id": "a", "weight": "1", "reason": "r"}]`}), &reply); err == nil {
		t.Error("a weight that is a text was taken")
	}
}

// A judge in this process is held to the forms while it writes: the sampler must know every keyword of them.
func TestFormsSuitConstrainedDecoding(t *testing.T) {
	forms, err := openForms()
	if err != nil {
		t.Fatal(err)
	}
	for stage, f := range forms {
		if _, err := grammar.Compile(f.text); err != nil {
			t.Errorf("%s: %v", stage, err)
		}
	}
}
