package criteria

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Rows in the shapes of the public data, with made-up texts. A loader that drops a sign, a weight, a band or a tag
// changes every reward of a run.
func TestParseFormats(t *testing.T) {
	bands := `"1-2":"bad","3-4":"weak","5-6":"fair","7-8":"good","9-10":"great"`
	for _, c := range []struct {
		format, text string
		want         []Criterion
	}{
		{"rubicon", `[{"id":"x","text":"Is kind.","weight":-2,"category":"safety","max_score":3},{"check":{"kind":"json"}}]`, []Criterion{
			{ID: "x", Text: "Is kind.", Weight: -2, Category: "safety", MaxScore: 3}, {ID: "c2", Weight: 1, Check: map[string]any{"kind": "json"}}}},
		{"rubicon", `{"scope":"g","version":4,"criteria":[{"id":"x","text":"Is kind."}]}`, []Criterion{{ID: "x", Text: "Is kind.", Weight: 1}}},
		{"rar", `[{"title":"Diagnosis","description":"Essential Criteria: names it.","weight":5},{"title":"","description":"Pitfall Criteria: guesses.","weight":-2}]`,
			[]Criterion{{ID: "c1", Text: "Diagnosis: Essential Criteria: names it.", Weight: 5, Origin: "rar"},
				{ID: "c2", Text: "Pitfall Criteria: guesses.", Weight: -2, Origin: "rar"}}},
		{"rubrichub", `{"ground_truth":"","rubrics":[{"criterion":"Divides first.","points":10,"tags":{"verifier":"llm"}},{"criterion":"Guesses.","points":-4}]}`,
			[]Criterion{{ID: "c1", Text: "Divides first.", Weight: 10, Origin: "rubrichub"}, {ID: "c2", Text: "Guesses.", Weight: -4, Origin: "rubrichub"}}},
		{"healthbench", `[{"criterion":"Is right.","points":7,"tags":["level:example","axis:accuracy"]},{"criterion":"Is rude.","points":-8,"tags":["axis:communication_quality"]},
			{"criterion":"Is whole.","points":3,"tags":["axis:completeness"]},{"criterion":"Obeys.","points":2,"tags":["axis:instruction_following"]}]`,
			[]Criterion{{ID: "c1", Text: "Is right.", Weight: 7, Category: "correctness", Origin: "healthbench"},
				{ID: "c2", Text: "Is rude.", Weight: -8, Category: "communication_quality", Origin: "healthbench"},
				{ID: "c3", Text: "Is whole.", Weight: 3, Origin: "healthbench"},
				{ID: "c4", Text: "Obeys.", Weight: 2, Category: "instruction_following", Origin: "healthbench"}}},
		{"writingbench", `[{"name":"Word_Count","criteria_description":"Keeps the length.",` + bands + `}]`, []Criterion{{ID: "c1", Weight: 1, MaxScore: 10,
			Origin: "writingbench", Text: "Word Count: Keeps the length.\n1-2: bad\n3-4: weak\n5-6: fair\n7-8: good\n9-10: great"}}},
		{"biggen", `{"criteria":"Does it plan?","score1_description":"no","score2_description":"hardly","score3_description":"partly","score4_description":"nearly","score5_description":"yes"}`,
			[]Criterion{{ID: "c1", Weight: 1, MaxScore: 5, Origin: "biggen", Text: "Does it plan?\n1: no\n2: hardly\n3: partly\n4: nearly\n5: yes"}}},
		{"openrubrics", `["Has three parts. [Hard Rule]","[Principle] Is clear.","Is short."]`, []Criterion{
			{ID: "c1", Text: "Has three parts.", Weight: 1, Category: "instruction_following", Origin: "openrubrics"},
			{ID: "c2", Text: "Is clear.", Weight: 1, Origin: "openrubrics"}, {ID: "c3", Text: "Is short.", Weight: 1, Origin: "openrubrics"}}},
		{"openrubrics", `{"hard_rules":["Has three parts."],"principles":["Is clear."]}`, []Criterion{
			{ID: "c1", Text: "Has three parts.", Weight: 1, Category: "instruction_following", Origin: "openrubrics"},
			{ID: "c2", Text: "Is clear.", Weight: 1, Origin: "openrubrics"}}},
		{"openrubrics", `"The rubric:\n1. Has three parts,\n   no more. [Hard Rule]\n\n2) Is clear. [Principle]\n## Hard rules\n- Rhymes."`, []Criterion{
			{ID: "c1", Text: "Has three parts, no more.", Weight: 1, Category: "instruction_following", Origin: "openrubrics"},
			{ID: "c2", Text: "Is clear.", Weight: 1, Origin: "openrubrics"},
			{ID: "c3", Text: "Rhymes.", Weight: 1, Category: "instruction_following", Origin: "openrubrics"}}},
	} {
		quoted, err := json.Marshal(c.text) // a column may hold the JSON as a text
		if err != nil {
			t.Fatal(err)
		}
		forms := []any{decode(t, c.text)}
		if !strings.HasPrefix(c.text, `"`) {
			forms = append(forms, decode(t, string(quoted)))
		}
		for _, value := range forms {
			for _, format := range []string{c.format, "auto", ""} {
				got, err := Parse(value, format)
				if err != nil || !reflect.DeepEqual(got, c.want) {
					t.Errorf("Parse(%.60v, %q) =\n%+v, %v, want\n%+v", value, format, got, err, c.want)
				}
			}
		}
	}
}

// Settings of a configuration file arrive with Go's own types.
func TestParseTakesGoTypes(t *testing.T) {
	got, err := Parse([]map[string]any{{"text": "Is kind.", "weight": 2, "max_score": 3}}, "auto")
	want := []Criterion{{ID: "c1", Text: "Is kind.", Weight: 2, MaxScore: 3}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		value  any
		format string
		want   string
	}{
		{nil, "auto", "there is no rubric: the value is null"},
		{7, "auto", "the rubric is a number: give a list of criteria"},
		{[]any{}, "auto", "empty list"},
		{[]any{7}, "auto", "first entry is a number"},
		{[]any{map[string]any{"foo": 1}}, "auto", "the form of the rubric is not known"},
		{[]any{"x"}, "rarr", `unknown rubric format "rarr": did you mean "rar"?`},
		{[]any{"x"}, "zzzzzz", "use one of auto, biggen, healthbench, openrubrics, rar, rubicon, rubrichub, writingbench"},
		{[]any{map[string]any{"text": "x", "wieght": 1}}, "auto", `criterion 1: unknown field "wieght": did you mean "weight"?`},
		{[]any{map[string]any{"text": "x", "weight": "1"}}, "auto", "criterion 1: weight is a string"},
		{[]any{map[string]any{"text": "x", "max_score": 1.5}}, "auto", "criterion 1: max_score is a number 1.5"},
		{[]any{map[string]any{"text": "x"}, 7}, "auto", "criterion 2: is a number: give an object"},
		{[]any{map[string]any{"text": "x", "weight": math.NaN()}}, "auto", "numbers must be finite"},
		{[]any{map[string]any{"title": "x", "description": "y"}}, "rar", "criterion 1: has no weight"},
		{[]any{map[string]any{"criterion": "x", "points": "10"}}, "auto", "criterion 1: points is a text: give a number"},
		{[]any{map[string]any{"criterion": "x", "points": 1}, map[string]any{"points": 1}}, "auto", "criterion 2: has no criterion"},
		{[]any{map[string]any{"criteria_description": "x", "1-2": "y"}}, "auto", "criterion 1: has no 3-4"},
		{[]any{map[string]any{"text": "x"}}, "openrubrics", "criterion 1: is an object: openrubrics has texts"},
		{`[{"text": "x"`, "auto", "no JSON"},
		{"Be good.", "auto", "line 1 is no numbered or bulleted criterion"},
		{"Rubric:", "auto", "a text without criteria"},
	} {
		if got, err := Parse(c.value, c.format); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Parse(%v, %q) = %v, %v, want %q", c.value, c.format, got, err, c.want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s, err := Load(write("own.json", `{"scope":"p7","version":3,"criteria":[{"text":"Is kind."}]}`), "auto")
	if err != nil || s.Scope() != "p7" || s.Version() != 3 || s.At(0).ID != "c1" {
		t.Errorf("own form: %v, %v", s, err)
	}
	s, err = Load(write("rar.json", `[{"title":"a","description":"b","weight":2}]`), "")
	if err != nil || s.Scope() != Global || s.Version() != 1 || s.At(0).Weight != 2 {
		t.Errorf("list: %v, %v", s, err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"cut.json":   {`[{"text":"x"`, "is not JSON"},
		"two.json":   {`[{"text":"x"}] [{"text":"x"}]`, "is not JSON"},
		"zero.json":  {`[{"text":"x","weight":0}]`, "no criterion has a weight above 0"},
		"nan.json":   {`[{"text":"x","weight":NaN}]`, "is not JSON"},
		"big.json":   {`[{"text":"x","weight":1e999}]`, "1e999"},
		"key.json":   {`{"verison":3,"criteria":[{"text":"x"}]}`, "verison"},
		"large.json": {strings.Repeat(" ", maxFile+1), "is larger than 16 MiB"},
	} {
		path := write(name, c.text)
		if _, err := Load(path, "auto"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	if _, err := Load(filepath.Join(dir, "none.json"), "auto"); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("a missing file: %v", err)
	}
}

// Whatever a column holds, Parse must return and never panic, and what it accepts must survive a round trip.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`[{"id":"x","text":"y","weight":2}]`, `[{"title":"a","description":"b","weight":1}]`, `"1. a [Hard Rule]\n- b"`,
		`{"hard_rules":["a"],"principles":[3]}`, `[{"criterion":"a","points":1,"tags":["axis:accuracy"]}]`, `[{"criteria_description":"x","1-2":"y"}]`,
		`{"criteria":"x","score1_description":"y"}`, `["a","b"]`, `"{\"rubrics\":[]}"`} {
		f.Add([]byte(text), "auto")
	}
	f.Fuzz(func(t *testing.T, data []byte, format string) {
		var value any
		if json.Unmarshal(data, &value) != nil {
			value = string(data)
		}
		list, err := Parse(value, format)
		if err != nil {
			return
		}
		if s, err := NewSet(Global, 1, list); err == nil {
			roundTrip(t, s)
		}
	})
}
