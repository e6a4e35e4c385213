package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run writes the folder of a run.
func run(t *testing.T, name, rate string) *Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for file, text := range map[string]string{
		"config.yaml":   "optim: {learning_rate: " + rate + ", max_steps: 4}\nmodel: {path: m}\n",
		"metrics.jsonl": `{"step":1,"reward":0.25,"kl":0.1,"timing_s/gen":2,"judge/cost":0.5}` + "\n" + `{"step":4,"reward":0.75,"kl":0.2,"timing_s/gen":3,"judge/cost":0.5}` + "\n",
		"completions/step_1.jsonl": `{"prompt":"p","completion":"<script>alert(1)</script> | x","rewards":{"r":0.5}}` + "\n" +
			`{"prompt":"p","completion":"best","rewards":{"r":1}}` + "\n" + `{"prompt":"p","completion":"unscored","rewards":{"r":null}}` + "\n",
		"rubrics/log.jsonl": `{"step":0,"scope":"global","version":1,"kind":"start","set":{"scope":"global","version":1,"criteria":[{"id":"kind","text":"It is kind.","weight":2}]}}` + "\n" +
			`{"step":2,"scope":"global","version":2,"kind":"update","ops":[{"kind":"reweight","before":["kind"],"after":["kind"],"reason":"Too easy."}],"set":{"scope":"global","version":2,"criteria":[{"id":"kind","text":"It is kind.","weight":1}]}}` + "\n",
		"eval/gsm8k/summary.json": `[{"label":"step-4","setting":{"benchmark":"gsm8k","step":4},"metrics":[{"name":"accuracy","value":0.5,"low":0.25,"high":0.75}],"answers":8,"unscorable":1}]`,
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	}
	r, err := Open(dir)
	must(t, err)
	return r
}

// Everything that the run's files say is in both forms of the report; sums over a run are of all its steps: a line is the mean of the steps since
// the line before, so 2 s for one step and 3 s for three are 11 s, and 0.5 for each of four 2.
func TestReport(t *testing.T) {
	out := t.TempDir()
	must(t, Write([]*Run{run(t, "a", "0.1")}, out))
	for _, name := range []string{"report.md", "report.html"} {
		b, err := os.ReadFile(filepath.Join(out, name))
		must(t, err)
		text := strings.ReplaceAll(strings.ReplaceAll(string(b), "</td><td>", " | "), `\_`, "_")
		for _, want := range []string{
			"0.25 to 0.75", "a | gsm8k | step-4 | accuracy | 0.5 | 0.25 to 0.75 | 8 | 1", "a | 2 | global | 2 | reweight | kind | kind | Too easy.",
			"a | global | 2 | kind | 1 | It is kind.", "timing_s/gen | 11", "judge/cost | 2", "optim.learning_rate | 0.1", "a | 1 | 1 | p | best", "a | 1 | 0.5 | p | ",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "<script>") || strings.Contains(text, "unscored") {
			t.Errorf("%s has a script, or a completion without a reward", name)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "reward.svg")); err != nil {
		t.Error(err)
	}
	html, err := os.ReadFile(filepath.Join(out, "report.html"))
	must(t, err)
	if strings.Contains(string(html), "src=") || strings.Contains(string(html), "href=") || strings.Count(string(html), "<svg") != 2 {
		t.Error("the page loads something, or lacks its pictures")
	}
}

// Of several runs the settings that differ are shown, and no others.
func TestSettingsThatDiffer(t *testing.T) {
	s, err := settings([]*Run{run(t, "a", "0.1"), run(t, "b", "0.2")})
	must(t, err)
	if len(s.blocks) != 1 || len(s.blocks[0].rows) != 1 || strings.Join(s.blocks[0].rows[0], " ") != "optim.learning_rate 0.1 0.2" {
		t.Errorf("%+v", s)
	}
}

// A folder without a run, or without any line, is an error that says so.
func TestOpenRefuses(t *testing.T) {
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("an empty folder is a run")
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "config.yaml"), nil, 0o644))
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "no line of metrics") {
		t.Error(err)
	}
}
