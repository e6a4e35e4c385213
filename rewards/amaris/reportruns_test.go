package amaris

import (
	"strings"
	"testing"
)

// course are lines of a run that are written every two steps, ten steps in all; the fifth is the last fifth.
func course(stepTimes [5]float64, own map[string][5]float64) []Line {
	var out []Line
	for i, s := range stepTimes {
		l := Line{2 * (i + 1), map[string]float64{"step_time": s, "reward": float64(i) / 4}}
		for name, v := range own {
			l.Values["amaris/"+name] = v[i]
		}
		out = append(out, l)
	}
	return append(out, Line{10, map[string]float64{"eval_reward": 0.75, "epoch": 1}})
}

// Table 5 by hand: ten steps of 720 s are 2 h; async has two of them with 792 s and two with 756 s, the mean is 741.6, +3 %; sync
// takes 1440 s, +100 %.
func TestComparisonByHand(t *testing.T) {
	runs := []Run{
		{"sync", ModeSync, Measured{Lines: course([5]float64{1440, 1440, 1440, 1440, 1440}, map[string][5]float64{
			"waiting_s": {10, 0, 0, 0, 0}, "waiting_sync_s": {718, 720, 720, 720, 720}, "staleness_versions": {0, 0, 0, 0, 0}, "staleness_steps": {0, 0, 0, 0, 0},
			"version": {1, 2, 4, 6, 8}, "updates": {0.5, 1, 1, 1, 1}})}},
		{"static", ModeStatic, Measured{Lines: course([5]float64{720, 720, 720, 720, 720}, nil)}},
		{"async", ModeAsync, Measured{Lines: course([5]float64{792, 756, 720, 720, 720}, map[string][5]float64{
			"waiting_s": {72, 36, 0, 0, 0}, "staleness_versions": {0.5, 1, 1, 1, 1}, "staleness_steps": {0.5, 1, 1, 1, 1},
			"version": {1, 2, 3, 5, 7}, "updates": {0, 1, 1, 1, 1}})}},
	}
	c, err := Compare(runs)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.Print(&text); err != nil {
		t.Fatal(err)
	}
	want := `| run | mode | steps | s/step | hours | % over static | waiting s/step | versions behind | at most | steps behind | version | updates | reward | held-out reward |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| sync | sync | 10 | 1440 | 4 | +100.0 | 721.6 | 0 | 0 | 0 | 8 | 9 | 1 | 0.75 |
| static | static | 10 | 720 | 2 | +0.0 | - | - | - | - | - | - | 1 | 0.75 |
| async | async | 10 | 741.6 | 2.06 | +3.0 | 21.6 | 0.9 | 1 | 0.9 | 7 | 8 | 1 | 0.75 |
`
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", text.String(), want)
	}
	if c.Static != "static" {
		t.Errorf("over %q", c.Static)
	}
}

// A sync run of an old log does not say how long it waited; that is not 0. Without a static run there is no increase.
func TestComparisonWithoutFigures(t *testing.T) {
	c, err := Compare([]Run{{"old", ModeSync, Measured{Lines: course([5]float64{1, 1, 1, 1, 1}, map[string][5]float64{"waiting_s": {}})}}})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.Print(&text); err != nil {
		t.Fatal(err)
	}
	if r := c.Runs[0]; r.Waiting.String() != "-" || r.Increase.String() != "-" || !strings.Contains(text.String(), "No run is static") {
		t.Errorf("%+v\n%s", r, text.String())
	}
	if _, err := Compare([]Run{{Name: "empty"}}); err == nil || !contains(err.Error(), "empty", "logging_steps") {
		t.Error(err)
	}
}

// A folder in which a run goes on that began in another one has a first line of as many steps as the next, not of all before.
func TestFirstLineOfAResumedRun(t *testing.T) {
	m := Measured{Lines: []Line{{110, map[string]float64{"step_time": 1}}, {120, map[string]float64{"step_time": 3}}}}
	if got := average(m.spans(), "step_time"); got != 2 {
		t.Errorf("mean %v", got)
	}
}

func TestMode(t *testing.T) {
	for _, c := range []struct {
		kind    string
		options map[string]any
		want    string
	}{
		{"rubric", nil, "static"}, {"amaris", map[string]any{"frozen": true, "rubric": easy}, "static"}, {"amaris", nil, "async"},
		{"amaris", map[string]any{"execution": "sync"}, "sync"}, {"rare", nil, "rare"},
	} {
		if got, err := Mode(c.kind, c.options); err != nil || got != c.want {
			t.Errorf("%s %v: %s, %v", c.kind, c.options, got, err)
		}
	}
	if _, err := Mode("amaris", map[string]any{"execution": "soon"}); err == nil {
		t.Error("no error")
	}
}
