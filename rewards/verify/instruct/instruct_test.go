package instruct

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/internal/oracle"
)

// verdict is one row of testdata: what the official checker said.
type verdict struct {
	Key       any              `json:"key"`
	Kind      string           `json:"kind"`
	IDs       []string         `json:"instruction_id_list"`
	Kwargs    []map[string]any `json:"kwargs"`
	Response  string           `json:"response"`
	Strict    []bool           `json:"strict"`
	LooseOnes []bool           `json:"loose"`
}

// TestVerdictsEqualTheOfficialCheckers has no exceptions for the rows whose official verdict depends on the language
// detector's seed: the detector here draws as that one does under the seed of these verdicts.
func TestVerdictsEqualTheOfficialCheckers(t *testing.T) {
	for _, c := range []struct {
		name      string
		rows, ids int
	}{{"ifeval_verdicts.jsonl", 4300, 25}, {"ifbench_verdicts.jsonl", 2418, 58}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rows := oracle.Rows[verdict](t, c.name)
			seen := map[string]bool{}
			for _, row := range rows {
				for i, id := range row.IDs {
					seen[id] = true
					compareVerdict(t, row, i)
				}
			}
			if len(rows) < c.rows || len(seen) != c.ids {
				t.Errorf("%d rows with %d instructions, want at least %d with all %d", len(rows), len(seen), c.rows, c.ids)
			}
		})
	}
}

// compareVerdict checks the i-th instruction of a row.
func compareVerdict(t *testing.T, row verdict, i int) {
	t.Helper()
	c, err := Compile(row.IDs[i], row.Kwargs[i])
	if err != nil {
		t.Fatalf("prompt %v: %v", row.Key, err)
	}
	if strict, loose := c.Strict(row.Response), c.Loose(row.Response); strict != row.Strict[i] || loose != row.LooseOnes[i] {
		t.Errorf("prompt %v (%s) %s %v: strict %v, loose %v, official %v, %v\n%q",
			row.Key, row.Kind, row.IDs[i], row.Kwargs[i], strict, loose, row.Strict[i], row.LooseOnes[i], row.Response)
	}
}

func TestWrongArgumentsAreErrors(t *testing.T) {
	for _, c := range []struct {
		id     string
		kwargs map[string]any
		want   string
	}{
		{"language:response_language", map[string]any{"language": "german"}, `argument language is "german": use one of af, ar`},
		{"count:words_japanese", map[string]any{"N": 0.0}, "argument N is 0: the first is 1"},
		{"ratio:overlap", map[string]any{"reference_text": "abc", "percentage": -1.0}, "not a number of at least 0"},
		{"count:keywords_multiple", map[string]any{"keyword1": "a"}, "argument keyword2 is missing"},
		{"keywords:existense", nil, "unknown instruction"},
		{"length_constraints:number_words", map[string]any{"num_words": 3.0}, "argument relation is missing"},
		{"length_constraints:number_words", map[string]any{"num_words": 3.5, "relation": "at least"}, "argument num_words is 3.5"},
		{"length_constraints:number_words", map[string]any{"num_words": "3", "relation": "at least"}, "argument num_words is 3"},
		{"length_constraints:number_words", map[string]any{"num_words": 3.0, "relation": "around"}, `argument relation is "around"`},
		{"punctuation:no_comma", map[string]any{"num_words": 3.0}, "unknown argument num_words"},
		{"keywords:existence", map[string]any{"keywords": []any{}}, "not a list of texts"},
		{"keywords:existence", map[string]any{"keywords": []any{"a", 1.0}}, "holds 1"},
		{"keywords:forbidden_words", map[string]any{"forbidden_words": []any{"a|b"}}, "plain character"},
		{"keywords:frequency", map[string]any{"keyword": "(", "frequency": 1.0, "relation": "at least"}, "cannot be searched for"},
		{"keywords:letter_frequency", map[string]any{"letter": "ab", "let_frequency": 1.0, "let_relation": "at least"}, "not one character"},
		{"length_constraints:nth_paragraph_first_word", map[string]any{"num_paragraphs": 1.0, "nth_paragraph": 0.0, "first_word": "a"}, "the first paragraph is 1"},
	} {
		_, err := Compile(c.id, c.kwargs)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: error %v, want %q in it", c.id, c.kwargs, err, c.want)
		}
	}
}

func TestNullArgumentsCountAsAbsent(t *testing.T) { // IFBench's rows carry every name, null when unused
	ok := map[string]any{"num_words": 3.0, "relation": "at least", "keyword": nil}
	if i, err := Compile("length_constraints:number_words", ok); err != nil || !i.Follows("one two three") {
		t.Error(err)
	}
}

// The expected values below were printed by the official checks run on Python 3.11's re, str and json.
func TestWholeNumbersOfEveryKindAreNumbers(t *testing.T) { // data files give int64
	for _, n := range []any{3, int64(3), 3.0, json.Number("3")} {
		i, err := Compile("detectable_format:number_highlighted_sections", map[string]any{"num_highlights": n})
		if err != nil || !i.Strict("*a* *b* *c*") || i.Strict("*a* *b*") {
			t.Errorf("%T: %v", n, err)
		}
	}
}

func TestUnicodeTraps(t *testing.T) {
	for _, c := range []struct {
		id       string
		kwargs   map[string]any
		response string
		want     bool
	}{
		{"keywords:existence", map[string]any{"keywords": []any{"size"}}, "SİZE", true},
		{"keywords:existence", map[string]any{"keywords": []any{"kiss"}}, "\u212aıſs", true},
		{"keywords:forbidden_words", map[string]any{"forbidden_words": []any{"tür"}}, "Haustür", true},
		{"keywords:forbidden_words", map[string]any{"forbidden_words": []any{"tür"}}, "Haus-TÜR", false},
		{"keywords:forbidden_words", map[string]any{"forbidden_words": []any{"caf"}}, "café", true},
		{"keywords:forbidden_words", map[string]any{"forbidden_words": []any{"cafe"}}, "cafe\u0301", false},
		{"keywords:forbidden_words", map[string]any{"forbidden_words": []any{"!"}}, "a !", true},
		{"keywords:forbidden_words", map[string]any{"forbidden_words": []any{"-x-"}}, "a-x-b", false},
		{"keywords:letter_frequency", map[string]any{"letter": "i", "let_frequency": 1.0, "let_relation": "at least"}, "İ", true},
		{"length_constraints:number_words", map[string]any{"num_words": 2.0, "relation": "less than"}, "हिन्दी ½", true},
		{"length_constraints:number_words", map[string]any{"num_words": 3.0, "relation": "at least"}, "ⅻ ⓐ _", true},
		{"detectable_format:multiple_sections", map[string]any{"section_spliter": "Part", "num_sections": 1.0}, "Part\u00a0٣", true},
		{"combination:repeat_prompt", map[string]any{"prompt_to_repeat": "ΟΔΟΣ"}, "οδος.", true},
		{"combination:repeat_prompt", map[string]any{"prompt_to_repeat": "ΟΔΟΣ"}, "οδοσ", false},
		{"length_constraints:nth_paragraph_first_word", map[string]any{"num_paragraphs": 1.0, "nth_paragraph": 1.0, "first_word": "οδοσ"}, "ΟΔΟΣ.", true},
		{"length_constraints:nth_paragraph_first_word", map[string]any{"num_paragraphs": 1.0, "nth_paragraph": 1.0, "first_word": "ΟΔΟΣ"}, "ΟΔΟΣ.", false},
		{"detectable_format:title", nil, "<<\u00a0>>", false},
		{"detectable_format:json_format", nil, "```json\n[NaN, -Infinity, \"\\ud800\", 1e5]\n```", true},
		{"detectable_format:json_format", nil, "\u00a0{\"a\": 1, \"a\": 2}\x1f", true},
		{"detectable_format:json_format", nil, "[1,]", false},
		{"detectable_format:json_format", nil, "[\"\t\"]", false},
		{"detectable_format:json_format", nil, "\ufeff[]", false},
		{"detectable_format:json_format", nil, "01", false},
		{"detectable_format:json_format", nil, "[\"\\u00g0\"]", false},
		{"detectable_format:json_format", nil, "{1: 2}", false},
	} {
		i, err := Compile(c.id, c.kwargs)
		if err != nil {
			t.Fatal(err)
		}
		if got := i.Follows(c.response); got != c.want {
			t.Errorf("%s %v on %q = %v; official %v", c.id, c.kwargs, c.response, got, c.want)
		}
	}
}

func FuzzNoInputPanics(f *testing.F) {
	rows := map[string]map[string]any{
		"keywords:forbidden_words":                    {"forbidden_words": []any{"a"}},
		"detectable_format:json_format":               nil,
		"combination:two_responses":                   nil,
		"detectable_format:title":                     nil,
		"length_constraints:number_words":             {"num_words": 1.0, "relation": "at least"},
		"combination:repeat_prompt":                   {"prompt_to_repeat": "Σ"},
		"startend:quotation":                          nil,
		"detectable_content:postscript":               {"postscript_marker": "P.P.S"},
		"length_constraints:nth_paragraph_first_word": {"num_paragraphs": 1.0, "nth_paragraph": 1.0, "first_word": "a"},
		"words:words_position":                        {"keyword": "a"},
		"words:keywords_specific_position":            {"keyword": "a", "n": 1.0, "m": 1.0},
		"sentence:keyword":                            {"word": "a.", "N": 1.0},
		"ratio:overlap":                               {"reference_text": "a", "percentage": 2.0},
	}
	for id := range instructions {
		if _, err := Compile(id, nil); err == nil {
			rows[id] = nil
		}
	}
	f.Add("{\"a\": [1, \"\\u00e9\"]}")
	f.Add("'\"İΣ\xff\n\n******")
	f.Fuzz(func(t *testing.T, response string) {
		for id, kwargs := range rows {
			i, err := Compile(id, kwargs)
			if err != nil {
				t.Fatal(err)
			}
			if i.Strict(response) && !i.Loose(response) {
				t.Errorf("%s: strict without loose", id)
			}
		}
	})
}
