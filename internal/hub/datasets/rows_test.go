package datasets

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// A row of each benchmark, made up in the official form.
func TestBenchmarkRows(t *testing.T) {
	official := func(text string) (v map[string]any) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	bands := `"1-2": "a", "3-4": "b", "5-6": "c", "7-8": "d", "9-10": "e"`
	for _, c := range []struct {
		make     row
		row      string
		id       string
		prompt   string
		criteria int
		column   string // one more that is there
	}{
		{instructionsRow, `{"key": 1000, "prompt": "P", "instruction_id_list": ["a:b"], "kwargs": [{}]}`, "1000", "P", 0, "kwargs"},
		{infoBenchRow, `{"id": "d1", "instruction": "I", "input": "X", "decomposed_questions": ["Is it?", "Is it so?"], "subset": "Hard_set"}`, "d1", "I\n\nX", 2, "subset"},
		{writingBenchRow, `{"index": 16, "query": "Q", "domain1": "D", "checklist": [{"name": "N", "criteria_description": "C", ` + bands + `}]}`, "16", "Q", 1, "domain1"},
		{healthBenchRow, `{"prompt_id": "p", "prompt": [{"role": "user", "content": "Hm"}], "rubrics": [{"criterion": "c", "points": 5, "tags": []}], "example_tags": ["theme:x"], "canary": "z", "ideal_completions_data": null}`, "p", "[map[content:Hm role:user]]", 1, "canary"},
		{bigGenRow, `{"id": "g", "system_prompt": "S", "input": "I", "reference_answer": "R", "score_rubric": {"criteria": "c", "score1_description": "1", "score2_description": "2", "score3_description": "3", "score4_description": "4", "score5_description": "5"}}`, "g", "[map[content:S role:system] map[content:I role:user]]", 1, "reference_answer"},
	} {
		got, err := c.make("fallback", official(c.row))
		list, _ := got["rubric"].([]criteria.Criterion)
		if err != nil || got["id"] != c.id || fmt.Sprint(got["prompt"]) != c.prompt || len(list) != c.criteria || got[c.column] == nil {
			t.Errorf("%s\nbecame %v, %v", c.row, got, err)
		}
		if got, err := c.make("x", map[string]any{"other": 1.0}); err == nil {
			t.Errorf("a row without columns became %v", got)
		}
	}
}

// What the table says fits together: every output is made of a source, every name is used once.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, s := range All() {
		if names[s.Name] || s.Licence == "" || s.Use == "" || s.Home == "" || s.Size == "" || len(s.Sources) == 0 {
			t.Errorf("%s: incomplete, or there twice", s.Name)
		}
		names[s.Name] = true
		for _, src := range s.Sources {
			if src.SHA256 != "" && len(src.SHA256) != 64 || (src.Repo == "") == (src.URL == "") || src.Repo == "" && src.Name == "" {
				t.Errorf("%s: source %+v", s.Name, src)
			}
		}
		for _, out := range s.Outputs {
			found := false
			for _, src := range s.Sources {
				found = found || src.Repo != "" || src.Name == out.From
			}
			if !found {
				t.Errorf("%s: %s is made of %s, which is no source", s.Name, out.File, out.From)
			}
		}
	}
	for _, name := range strings.Fields("ifeval ifbench infobench writingbench healthbench gpqa creative-writing biggen hotpotqa 2wiki musique gsm8k math rar-science rar-medicine openrubrics rubrichub") {
		if !names[name] {
			t.Errorf("%s is missing", name)
		}
	}
	if got, near := Find("ifevl"); got != nil || near != "ifeval" {
		t.Errorf("ifevl: %v, %q", got, near)
	}
}
