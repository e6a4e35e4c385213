package rare

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring/scoringtest"
)

func goldenEvents(t *testing.T) []criteria.Event {
	t.Helper()
	events, err := criteria.ReadLog(criteria.LogPath(filepath.Join("testdata", "run")))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// The report of a log written by hand is what testdata/README.md works out by hand.
func TestReportByHand(t *testing.T) {
	got, err := NewReport(goldenEvents(t), []int{1})
	if err != nil {
		t.Fatal(err)
	}
	want := Report{
		Visits: 7, Rubrics: 2, Triggered: 6, Trigger: 6.0 / 7, Switches: 3, Kept: 4, Duplicates: 1,
		PostSwitchMean: 2.0 / 3, OpensHeadroom: 2.0 / 3, RestoresVariance: 1.0 / 3, Separation: 1 / (3 * math.Sqrt2),
		SeenLater: 3, Resaturated: 2, Later: 2.0 / 3,
		Panels: []Panel{
			{"trigger", 3, 2.0 / 3, 2.0 / 3, 1.0 / 3, 3, 1, 1, 1},
			{"next visit", 3, 2.75 / 3, 2.0 / 3, 2.0 / 3, 3, 1.0 / 3, 2.5 / 3, 0.75},
			{"last visit", 3, 0.875, 2.0 / 3, 2.0 / 3, 2, 0.5, 0.875, 0.75},
			{"step 1", 2, 0.9375, 0.5, 0.5, 2, 0.5, 0.875, 0.875},
		},
	}
	near(t, "report", reflect.ValueOf(*got), reflect.ValueOf(want))
}

// near compares field by field; figures may differ by rounding.
func near(t *testing.T, name string, got, want reflect.Value) {
	t.Helper()
	switch want.Kind() {
	case reflect.Struct:
		for i := range want.NumField() {
			near(t, name+"."+want.Type().Field(i).Name, got.Field(i), want.Field(i))
		}
	case reflect.Slice:
		if got.Len() != want.Len() {
			t.Errorf("%s has %d entries, want %d", name, got.Len(), want.Len())
			return
		}
		for i := range want.Len() {
			near(t, name+"/"+want.Index(i).Field(0).String(), got.Index(i), want.Index(i))
		}
	case reflect.Float64:
		if !(math.Abs(got.Float()-want.Float()) < 1e-12) {
			t.Errorf("%s is %v, want %v", name, got.Float(), want.Float())
		}
	default:
		if !got.Equal(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// A run without a switch has no figures to show: null and -, not 0 or NaN, which JSON cannot write.
func TestReportWithoutSwitches(t *testing.T) {
	r, err := NewReport(goldenEvents(t)[len(goldenEvents(t))-1:], nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"trigger_rate":0,`, `"post_switch_mean":null`, `"later_resaturation":null`, `"new_mean":null`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report does not say %s: %s", want, text)
		}
	}
	var b bytes.Buffer
	if err := r.Print(&b); err != nil || strings.Contains(b.String(), "NaN") || !strings.Contains(b.String(), "separation          -\n") {
		t.Errorf("printed (%v)\n%s", err, b.String())
	}
}

func TestReportRefuses(t *testing.T) {
	note := func(text string) []criteria.Event {
		var m map[string]any
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return []criteria.Event{{Step: 3, Scope: "p", Kind: visitKind, Note: m}}
	}
	for want, events := range map[string][]criteria.Event{
		"was the run's reward.kind rare?":       {{Kind: criteria.Init}},
		"step 3, rubric of \"p\"":               note(`{"rare": 5}`),
		"the credits of 2 groups, there are 1":  note(`{"rare": {"groups": [{"prompt": "p", "completions": 1}], "credits": [{"id": "a", "groups": [[1], [1]]}]}}`),
		"has the credits [2] for 1 completions": note(`{"rare": {"groups": [{"prompt": "p", "completions": 1}], "credits": [{"id": "a", "groups": [[2]]}]}}`),
		"there are no credits of it": note(`{"rare": {"groups": [], "credits": [],
			"switches": [{"old": {"id": "a"}, "new": {"id": "b"}, "credits": []}]}}`),
	} {
		if _, err := NewReport(events, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The log that a run writes is read back with what happened: one switch that opens headroom (credits 1 and 3/4), old
// criteria followed, and a visit with a completion that cannot be scored, which is never full.
func TestReportOfARun(t *testing.T) {
	judge := &scoringtest.Judge{Rule: table{"b": {"x": 0}, "rare-0-1": {"y": 3}}.rule, Other: propose,
		Missing: func(answer string) bool { return answer == "lost" }}
	run := judge.Run()
	run.Dir = t.TempDir()
	p := mustNew(t, run, map[string]any{"retention": true, "rubric": []any{criterion("a", "Is kind."), criterion("b", "Rhymes.")}})
	mustScore(t, p, 0, group("p", nil, "x", "y"))
	judge.Rule = table{"a": {"v": 0}}.rule
	mustScore(t, p, 1, group("p", nil, "u", "v", "lost"))
	events, err := criteria.ReadLog(criteria.LogPath(run.Dir))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReport(events, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Panel{
		{"trigger", 1, 0.875, 1, 1, 1, 1, 1, 1}, {"next visit", 1, 1, 0, 0, 1, 0, 0.5, 0.5}, {"last visit", 1, 1, 0, 0, 1, 0, 0.5, 0.5},
	}
	near(t, "panels", reflect.ValueOf(r.Panels), reflect.ValueOf(want))
	if r.Visits != 2 || r.Triggered != 1 || r.Switches != 1 || r.SeenLater != 1 || r.Resaturated != 0 {
		t.Errorf("report %+v", r)
	}
	m := p.Metrics()
	if m["rare/saturated_frac"] != 0 || m["rubric/unscorable_frac"] != 1.0/3 {
		t.Errorf("metrics %v", m)
	}
}

// The step's own metrics, by hand: two groups, three of four criteria saturated, two replaced, by credits 1 1/2 and 1 1.
func TestStepMetricsByHand(t *testing.T) {
	judge := &scoringtest.Judge{Rule: table{"b": {"x": 0}, "rare-0-1": {"y": 2}}.rule}
	judge.Other = func(q rewards.Question) (string, error) {
		labels, _ := asked(q)
		return answerOf(update{Replaces: labels[0], Polarity: "negative", Criterion: texts[0]}), nil
	}
	p := mustNew(t, judge.Run(), map[string]any{"rubric": []any{criterion("a", "Is kind."), criterion("b", "Rhymes.")}})
	mustScore(t, p, 0, group("p", nil, "x", "y"), group("q", nil, "w", "z"))
	want := map[string]float64{
		"rare/saturated_frac": 0.75, "rare/trigger_rate": 1, "rare/switches": 2, "rare/kept": 1, "rare/rejected_duplicates": 0,
		"rare/post_switch_mean": 0.875, "rare/opens_headroom_frac": 0.5, "rare/restores_variance_frac": 0.5, "rare/separation": 0.5,
		"rubric/saturated_frac": 0.5,
	}
	for name, v := range want {
		if got, ok := p.Metrics()[name]; !ok || math.Abs(got-v) > 1e-15 {
			t.Errorf("%s is %v, want %v", name, got, v)
		}
	}
}
