package instruct

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// verdict is one row of testdata: what the official checker said.
type verdict struct {
	Key       int              `json:"key"`
	Kind      string           `json:"kind"`
	IDs       []string         `json:"instruction_id_list"`
	Kwargs    []map[string]any `json:"kwargs"`
	Response  string           `json:"response"`
	Strict    []bool           `json:"strict"`
	LooseOnes []bool           `json:"loose"`
}

func readVerdicts(t *testing.T) []verdict {
	t.Helper()
	f, err := os.Open("testdata/ifeval_verdicts.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var rows []verdict
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v verdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, v)
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return rows
}

func TestVerdictsEqualTheOfficialCheckers(t *testing.T) {
	seen := map[string]int{}
	for _, row := range readVerdicts(t) {
		for i, id := range row.IDs {
			if !Supported(id) {
				continue
			}
			seen[id]++
			c, err := Compile(id, row.Kwargs[i])
			if err != nil {
				t.Fatalf("prompt %d: %v", row.Key, err)
			}
			if strict, loose := c.Strict(row.Response), c.Loose(row.Response); strict != row.Strict[i] || loose != row.LooseOnes[i] {
				t.Errorf("prompt %d (%s) %s %v: strict %v, loose %v, official %v, %v\n%q",
					row.Key, row.Kind, id, row.Kwargs[i], strict, loose, row.Strict[i], row.LooseOnes[i], row.Response)
			}
		}
	}
	if len(seen) != len(instructions) {
		t.Errorf("the verdicts cover %d of %d instructions", len(seen), len(instructions))
	}
	total := 0
	for _, n := range seen {
		total += n
	}
	if total != 5535 {
		t.Errorf("%d verdicts compared, the file has 5535", total)
	}
}

func TestUnsupportedAndWrongArgumentsAreErrors(t *testing.T) {
	ok := map[string]any{"num_words": 3.0, "relation": "at least"}
	for _, c := range []struct {
		id     string
		kwargs map[string]any
		want   string
	}{
		{"language:response_language", map[string]any{"language": "de"}, "language detector"},
		{"length_constraints:number_sentences", nil, "sentence splitter"},
		{"keywords:existense", nil, "unknown instruction"},
		{"length_constraints:number_words", map[string]any{"num_words": 3.0}, "argument relation is missing"},
		{"length_constraints:number_words", map[string]any{"num_words": 3.5, "relation": "at least"}, "argument num_words is 3.5"},
		{"length_constraints:number_words", map[string]any{"num_words": "3", "relation": "at least"}, "argument num_words is 3"},
		{"length_constraints:number_words", map[string]any{"num_words": 3.0, "relation": "around"}, `argument relation is "around"`},
		{"punctuation:no_comma", ok, "unknown argument num_words"},
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
	ok["keyword"] = nil // rows of other data carry every name, null when unused
	if i, err := Compile("length_constraints:number_words", ok); err != nil || !i.Follows("one two three") {
		t.Errorf("a null argument counts as absent: %v", err)
	}
}

// The expected values below were printed by the official checks run on Python 3.11's re, str and json.
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
