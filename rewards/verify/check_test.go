package verify

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/internal/oracle"
)

func TestChoiceIsSimpleEvals(t *testing.T) {
	rows := oracle.Rows[struct {
		Response  string
		Extracted *string `json:"simple_evals_extracted"`
	}](t, "gpqa_extract.jsonl")
	if len(rows) != 22 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		got, ok := chosen(r.Response)
		if ok != (r.Extracted != nil) || ok && got != *r.Extracted {
			t.Errorf("%q: %q %v, simple-evals %v", r.Response, got, ok, r.Extracted)
		}
		for _, gold := range []string{"A", "B", "C", "D"} {
			right := r.Extracted != nil && *r.Extracted == gold
			s := value(t, one(`{"kind": "match", "from": "choice", "compare": "exact", "column": "gold"}`), map[string]any{"gold": gold}, text(r.Response))
			if (s.Value == 1) != right {
				t.Errorf("%q against %s: %v, simple-evals %v", r.Response, gold, s.Value, right)
			}
		}
	}
}

// The official verdict on GSM8K compares the texts that its pattern finds.
func TestHashVerdictIsGSM8Ks(t *testing.T) {
	check := one(`{"kind": "match", "from": "hash", "compare": "exact", "column": "answer"}`)
	for _, c := range []struct {
		response string
		want     float64
	}{{"#### 70000", 1}, {"#### 70,000", 1}, {"#### 70000.0", 0}, {"#### 7", 0}, {"70000", 0}, {"#### 70000\n#### 7", 1}} {
		row := map[string]any{"answer": "of 200,000-130,000=$<<200000-130000=70000>>70,000\n#### 70000"}
		if s := value(t, check, row, text(c.response)); s.Value != c.want {
			t.Errorf("%q: %v, want %v", c.response, s.Value, c.want)
		}
	}
}

func TestSchema(t *testing.T) {
	const person = `{"type": "object", "required": ["name"], "additionalProperties": false,
		"properties": {"name": {"type": "string", "minLength": 2}, "age": {"$ref": "#/$defs/age"}},
		"$defs": {"age": {"type": "integer", "minimum": 0}}}`
	for _, c := range []struct {
		schema, text string
		want         float64
	}{
		{person, `{"name": "Ada", "age": 36}`, 1},
		{person, `{"name": "Ada", "age": 36.0}`, 1},
		{person, `{"name": "A"}`, 0},
		{person, `{"name": "Ada", "age": -1}`, 0},
		{person, `{"name": "Ada", "born": 1815}`, 0},
		{person, `{"name": "Ada"`, 0},
		{person, `{"name": "Ada"} {}`, 0},
		{person, `[]`, 0},
		{`true`, `1`, 1},
		{`false`, `1`, 0},
		{`{"type": "number", "multipleOf": 0.1}`, `0.3`, 1}, // exact, although 0.3/0.1 is not a whole number in float64
		{`{"type": "number"}`, `1e999`, 0},                  // must neither end in an endless computation nor pass
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}`, `[1]`, 0},
	} {
		s := value(t, one(fmt.Sprintf(`{"kind": "json", "schema": %s}`, c.schema)), nil, text(c.text))
		if s.Value != c.want || s.Parts[0].Reason == "" {
			t.Errorf("%s against %s: %v (%s), want %v", c.text, c.schema, s.Value, s.Parts[0].Reason, c.want)
		}
	}
	if s := value(t, one(`{"kind": "json", "fenced": true, "schema": {"type": "array"}}`), nil, text("```json\n[]\n```")); s.Value != 1 {
		t.Errorf("fenced: %+v", s)
	}
}

func TestSchemasAreCheckedAtTheStart(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type": "strin"}`:                      "check json: schema: ",
		`{"pattern": "("}`:                       "check json: schema: ",
		`{"$ref": "#/$defs/none"}`:               "check json: schema: ",
		`{"$ref": "https://example.com/a.json"}`: "put what is needed under $defs",
		`{"$ref": "file:///etc/hostname"}`:       "put what is needed under $defs",
		`{"$schema": "https://example.com/s"}`:   "put what is needed under $defs",
		`{"$ref": "other.json"}`:                 "put what is needed under $defs",
		`3`:                                      "check json: schema: ",
		`null`:                                   "check json: schema: ",
		`{}, "keys": ["a"]`:                      "keys and schema are set",
	} {
		_, err := tryValue(one(`{"kind": "json", "schema": `+schema+`}`), nil, text("1"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "prompt") {
			t.Errorf("%s: error %v, want %q on one line, before a row is read", schema, err, want)
		}
	}
}

func TestOneInstruction(t *testing.T) {
	for _, c := range []struct {
		check, text string
		want        float64
	}{
		{`{"kind": "instruction", "id": "punctuation:no_comma"}`, "a; b", 1},
		{`{"kind": "instruction", "id": "punctuation:no_comma"}`, "a, b", 0},
		{`{"kind": "instruction", "id": "punctuation:no_comma"}`, " ", 0}, // strict: a blank response follows nothing
		{`{"kind": "instruction", "id": "keywords:frequency", "kwargs": {"keyword": "sun", "frequency": 2, "relation": "at least"}}`, "Sunday sun", 1},
		{`{"kind": "instruction", "id": "keywords:frequency", "kwargs": {"keyword": "sun", "frequency": 2, "relation": "less than"}}`, "Sunday sun", 0},
		{`{"kind": "instruction", "id": "startend:quotation"}`, "Sure:\n\"yes\"", 0},
		{`{"kind": "instruction", "id": "startend:quotation", "mode": "loose"}`, "Sure:\n\"yes\"", 1}, // without its first line
	} {
		if s := value(t, one(c.check), nil, text(c.text)); s.Value != c.want {
			t.Errorf("%s on %q: %v, want %v", c.check, c.text, s.Value, c.want)
		}
	}
	for check, want := range map[string]string{
		`{"kind": "instruction"}`:                                                    "id is not set",
		`{"kind": "instruction", "id": "a:b"}`:                                       `unknown instruction "a:b"`,
		`{"kind": "instruction", "id": "keywords:existence"}`:                        "argument keywords is missing",
		`{"kind": "instruction", "id": "punctuation:no_comma", "mode": "lose"}`:      "use strict or loose",
		`{"kind": "instruction", "id": "punctuation:no_comma", "kwargs": {"n": 1}}`:  "argument",
		`{"kind": "instruction", "id": "punctuation:no_comma", "kwargs": [1]}`:       "option kwargs is a array: give a map",
		`{"kind": "instruction", "ids": "instruction_id_list", "id": "keywords:ab"}`: `unknown option "ids"`,
	} {
		if _, err := tryValue(one(check), nil, text("a")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", check, err, want)
		}
	}
}

func TestCompileMakesOneCheck(t *testing.T) {
	compile := func(settings string, row *grpo.Prompt) (Check, error) {
		var m map[string]any
		if err := json.Unmarshal([]byte(settings), &m); err != nil {
			t.Fatal(err)
		}
		return Compile(m, row)
	}
	row := &grpo.Prompt{ID: "p", Columns: map[string]any{"gold": 4.0, "ids": []any{"paragraphs:paragraphs"}, "args": []any{nil}}}
	check, err := compile(`{"kind": "number", "column": "gold"}`, row)
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[string]float64{"2 + 2 = 4": 1, "5": 0} {
		if credit, reason := check(text(s)); credit != want || reason == "" {
			t.Errorf("%q: %v, %q", s, credit, reason)
		}
	}
	// A row that a check does not apply to has none; that is no error.
	check, err = compile(`{"kind": "instructions", "ids": "ids", "kwargs": "args", "unsupported": "skip"}`, row)
	if check != nil || err != nil {
		t.Errorf("a check that does not apply: %v, %v", check != nil, err)
	}
	if _, err := compile(`{"kind": "number", "column": "gold"}`, nil); err != nil {
		t.Errorf("without a row only settings count: %v", err)
	}
	for settings, want := range map[string]string{
		`{"kind": "number", "column": "god"}`:             "verify: check number: the row has no column god",
		`{"kind": "number"}`:                              "verify: check number: set answer, or column",
		`{"kind": "numbr"}`:                               `verify: check: unknown kind "numbr": did you mean "number"?`,
		`{"kind": "number", "answer": 1, "weight": 2}`:    "weight is the criterion's own",
		`{"kind": "number", "answer": 1, "name": "four"}`: "name is the criterion's own",
	} {
		if _, err := compile(settings, row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", settings, err, want)
		}
	}
}
