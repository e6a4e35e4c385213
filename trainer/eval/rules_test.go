package eval

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards"
)

// benchmarkOf opens a benchmark on a file of such contents.
func benchmarkOf(t *testing.T, open func(Source) (Benchmark, error), judge rewards.Judge, contents string) Benchmark {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rows.jsonl")
	writeFile(t, file, contents)
	b, err := open(Source{File: file, Judge: func() (rewards.Judge, error) { return judge, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path, contents string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(contents), 0o644); err != nil {
		t.Fatal(err)
	}
}

// says is a judge that answers as a function of the question.
type says func(q rewards.Question) string

func (f says) Ask(_ context.Context, q rewards.Question) (string, error) {
	answer := f(q)
	if err := q.Check(answer); err != nil {
		return "", rewards.ErrNoAnswer
	}
	return answer, nil
}

// IFBench reports the loose accuracy over prompts first, IFEval the strict one; both tell those of groups and kinds.
func TestHeadlinesOfInstructions(t *testing.T) {
	row := `{"key": 1, "prompt": "p", "instruction_id_list": ["detectable_format:number_bullet_lists", "punctuation:no_comma"], "kwargs": [{"num_bullets": 2}, {}]}`
	for name, open := range map[string]func(Source) (Benchmark, error){"prompt_level_strict_acc": IFEval, "prompt_level_loose_acc": IFBench} {
		b := benchmarkOf(t, open, nil, row)
		v, err := b.Score(t.Context(), &b.Items()[0], "Here, then:\n* a\n* b") // without its first line it has no comma
		if err != nil {
			t.Fatal(err)
		}
		if m := b.Metrics([]Verdict{v}); m[0].Name != name || len(m) != 4 {
			t.Errorf("the headline is %v, want %s", m, name)
		}
		got := values(b.(Detailed).Details([]Verdict{v}))
		want := map[string]float64{
			"strict/punctuation": 0, "loose/punctuation": 1, "strict/punctuation:no_comma": 0, "loose/punctuation:no_comma": 1,
			"strict/detectable_format": 1, "strict/detectable_format:number_bullet_lists": 1,
		}
		for name, x := range want {
			if y, ok := got[name]; !ok || x != y {
				t.Errorf("%s is %v, want %v", name, y, x)
			}
		}
	}
}

func TestBiGGensResult(t *testing.T) {
	for said, want := range map[string]float64{
		"Feedback: good. [RESULT] 4": 4, "[RESULT]5": 5, "[RESULT] (3)": 3, "[RESULT]: [2]": 2, "[RESULT] 1 is too low: [RESULT] 2.": 2, "[RESULT] 4/5": 4,
		"[RESULT] 4.5": 0, "[RESULT] 45": 0, "[RESULT] 0": 0, "[RESULT] -3": 0, "[RESULT] 6": 0, "[RESULT] good": 0, "4": 0,
	} {
		if got, err := readResult(said); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", said, got, err)
		}
	}
}

// BiGGen's score is the mean of the capabilities' means: (5 + (1 + 2)/2)/2.
func TestBiGGensMacroMean(t *testing.T) {
	of := func(capability string, score float64) Verdict {
		return Verdict{Values: map[string]float64{"score": score}, Tags: []string{capability}}
	}
	if m := (&bigGen{}).Metrics([]Verdict{of("plan", 5), of("tool", 1), of("tool", 2)}); m[0].Value != 3.25 {
		t.Errorf("%v", m)
	}
}

// Scores of 7 and 9 in one domain and 4 in another: 20/3, 8 and 4; what was thought before the answer is not shown to the judge.
func TestWritingBenchsDomains(t *testing.T) {
	criterion := func(name string) string {
		return `{"name": "` + name + `", "criteria_description": "c", "1-2": "a", "3-4": "b", "5-6": "c", "7-8": "d", "9-10": "e"}`
	}
	rows := `{"index": 1, "domain1": "Law", "domain2": "Contract", "query": "q", "checklist": [` + criterion("seven") + "," + criterion("nine") + `]}
{"index": 2, "domain1": "Art", "domain2": "Poem", "query": "q", "checklist": [` + criterion("four") + `]}`
	judge := says(func(q rewards.Question) string {
		if strings.Contains(q.User, "hidden") || !strings.Contains(q.User, "shown") {
			return "{}"
		}
		for name, score := range map[string]string{"seven": "7", "nine": "9", "four": "4"} {
			if strings.Contains(q.User, name) {
				return `{"reason": "r", "score": ` + score + `}`
			}
		}
		return "{}"
	})
	b := benchmarkOf(t, WritingBench, judge, rows)
	var verdicts []Verdict
	for i := range b.Items() {
		v, err := b.Score(t.Context(), &b.Items()[i], "hidden</think>\n\nhidden too</think>\n\nshown")
		if err != nil || v.Unscorable != "" {
			t.Fatalf("%+v, %v", v, err)
		}
		verdicts = append(verdicts, v)
	}
	got := values(append(b.Metrics(verdicts), b.(Detailed).Details(verdicts)...))
	want := map[string]float64{"score": 20.0 / 3, "score_100": 200.0 / 3, "score/Law": 8, "score/Art": 4, "score/Law / Contract": 8, "score/Art / Poem": 4}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for name, x := range want {
		if math.Abs(got[name]-x) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, got[name], x)
		}
	}
}

// The settings that authors state, and the pieces that do not count.
func TestOfficialSampling(t *testing.T) {
	s := Sampling{MaxTokens: 10, TopP: 1, Seed: 3}
	if w := (&writingBench{}).Official(s); w.Temperature != 0.7 || w.TopP != 0.8 || w.TopK != 20 || w.MaxTokens != 16000 || w.Seed != 3 {
		t.Errorf("%+v", w)
	}
	c := &creativeWriting{}
	if w := c.Official(s); w.Temperature != 0.7 || w.MinP != 0.1 || w.MaxTokens != 4000 || w.TopP != 1 {
		t.Errorf("%+v", w)
	}
	if !c.Again(strings.Repeat("ä", 499)) || c.Again(strings.Repeat("ä", 500)) {
		t.Error("pieces of fewer than 500 characters do not count")
	}
}

// Of three criteria, 10 and -4 are met and 5 is not: (10 - 4)/15, and a judge that answers without criteria_met leaves the item out.
func TestHealthBenchAsksForEveryCriterion(t *testing.T) {
	row, err := json.Marshal(map[string]any{
		"prompt_id": "h", "prompt": []any{map[string]any{"role": "user", "content": "Is it safe?"}}, "example_tags": []string{"theme:x"},
		"rubrics": []any{
			map[string]any{"criterion": "warns", "points": 10, "tags": []string{"axis:a"}}, map[string]any{"criterion": "rude", "points": -4, "tags": []string{}},
			map[string]any{"criterion": "cites", "points": 5, "tags": []string{"axis:a"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	met := `{"explanation": "e", "criteria_met": true}`
	judge := says(func(q rewards.Question) string {
		switch {
		case strings.Contains(q.User, "user: Is it safe?\n\nassistant: Mostly.") && strings.HasSuffix(q.User, "[5] cites"):
			return `{"explanation": "e", "criteria_met": false}`
		case strings.HasSuffix(q.User, "[10] warns"), strings.HasSuffix(q.User, "[-4] rude"):
			return met
		}
		return `{"explanation": "e"}`
	})
	b := benchmarkOf(t, HealthBench, judge, string(row))
	v, err := b.Score(t.Context(), &b.Items()[0], "Mostly.")
	if err != nil || math.Abs(v.Values["score"]-6.0/15) > 1e-15 || math.Abs(v.Values["axis:a"]-10.0/15) > 1e-15 {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err = b.Score(t.Context(), &b.Items()[0], "No."); err != nil || v.Unscorable == "" {
		t.Errorf("%+v, %v", v, err)
	}
}
