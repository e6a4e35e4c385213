package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/internal/oracle"
)

// value scores one completion of one row; settings are YAML-like JSON.
func value(t *testing.T, settings string, columns map[string]any, c *grpo.Completion) rewards.Score {
	t.Helper()
	s, err := tryValue(settings, columns, c)
	if err != nil {
		t.Fatalf("%s: %v", settings, err)
	}
	return s
}

func tryValue(settings string, columns map[string]any, c *grpo.Completion) (rewards.Score, error) {
	var o map[string]any
	if err := json.Unmarshal([]byte(settings), &o); err != nil {
		panic(err)
	}
	p, err := New(rewards.Run{}, o)
	if err != nil {
		return rewards.Score{}, err
	}
	group := grpo.Group{Prompt: &grpo.Prompt{ID: "row:7", Columns: columns}, Completions: []*grpo.Completion{c}}
	scores, err := p.Score(context.Background(), 0, []grpo.Group{group})
	if err != nil {
		return rewards.Score{}, err
	}
	return scores[0], nil
}

// one wraps a single check of weight 1.
func one(check string) string { return `{"checks": [` + check + `]}` }

func text(s string) *grpo.Completion { return &grpo.Completion{Text: s} }

func TestCredits(t *testing.T) {
	// Expected credits by hand, from the definition of each kind.
	for _, c := range []struct {
		check, text string
		want        float64
	}{
		{`{"kind": "match", "answer": "Paris"}`, " Paris \n", 1},
		{`{"kind": "match", "answer": "Paris"}`, "paris", 0},
		{`{"kind": "match", "answer": "Paris", "compare": "exact"}`, "Paris ", 0},
		{`{"kind": "match", "answer": "the Eiffel Tower", "compare": "text"}`, "Eiffel-Tower!", 0},
		{`{"kind": "match", "answer": "the Eiffel Tower", "compare": "text"}`, "An Eiffel  tower!", 1},
		{`{"kind": "match", "answer": ["Rome", "Paris"], "from": "line"}`, "I think:\nParis\n\n", 1},
		{`{"kind": "match", "answer": "b", "pattern": "(?i)answer: *([a-d])"}`, "Answer: a. No, answer: b", 1},
		{`{"kind": "match", "answer": "b", "pattern": "(?i)answer: *([a-d])"}`, "b", 0},
		{`{"kind": "match", "answer": "\\frac{1}{2}", "from": "boxed"}`, `so \boxed{1} or \boxed{\frac{1}{2}}.`, 1},
		{`{"kind": "match", "answer": "1", "from": "boxed"}`, `\boxed{1`, 0},
		{`{"kind": "number", "answer": 18}`, "3 dozen is 36, half of it 18.", 1},
		{`{"kind": "number", "answer": 18}`, "18 or 19", 0},
		{`{"kind": "number", "answer": 18}`, "eighteen", 0},
		{`{"kind": "number", "answer": "1,234.5"}`, "$1234.50", 1},
		{`{"kind": "number", "answer": -3}`, "x = -3", 1},
		{`{"kind": "number", "answer": 3}`, "5-3", 1},
		{`{"kind": "number", "answer": -5}`, "it fell by −$5", 1},
		{`{"kind": "number", "answer": 0.75}`, "3/4", 1},
		{`{"kind": "number", "answer": -0.5, "from": "boxed"}`, `\boxed{-\dfrac{1}{2}}`, 1},
		{`{"kind": "number", "answer": 2000}`, "2e3", 1},
		{`{"kind": "number", "answer": 1}`, "1/0", 0},
		{`{"kind": "number", "answer": 3.14, "tolerance": 0.01}`, "3.1415", 1},
		{`{"kind": "number", "answer": 3.14, "tolerance": 0.001}`, "3.1415", 0},
		{`{"kind": "number", "answer": 200, "relative": 0.05}`, "209", 1},
		{`{"kind": "number", "answer": 200, "relative": 0.05}`, "211", 0},
		{`{"kind": "number", "answer": "so she has 9*2 = 18\n#### 18", "from": "hash"}`, "5\n#### 18\n7", 1},
		{`{"kind": "number", "answer": 18, "from": "hash"}`, "18", 0},
		{`{"kind": "regex", "pattern": "[.!]$"}`, "Done.", 1},
		{`{"kind": "regex", "pattern": "a|b", "full": true}`, "ab", 0},
		{`{"kind": "regex", "pattern": "a|b", "full": true}`, "b", 1},
		{`{"kind": "regex", "pattern": "\\d", "forbid": true}`, "no digits", 1},
		{`{"kind": "regex", "pattern": "\\d", "forbid": true}`, "1 digit", 0},
		{`{"kind": "contains", "all": [";"], "none": [","]}`, "a; b", 1},
		{`{"kind": "contains", "all": [";"], "none": [","]}`, "a; b, c", 0},
		{`{"kind": "contains", "all": ["cat", "dog"]}`, "A DOG and a Cat", 1},
		{`{"kind": "contains", "all": ["cat"], "match_case": true}`, "Cat", 0},
		{`{"kind": "contains", "any": ["cat", "dog"]}`, "hotdogs", 1},
		{`{"kind": "contains", "any": ["cat", "dog"], "whole_words": true}`, "hotdogs", 0},
		{`{"kind": "contains", "any": ["cat", "at noon"], "whole_words": true}`, "concat, at noon!", 1},
		{`{"kind": "contains", "any": ["été"], "whole_words": true}`, "étés l'été.", 1},
		{`{"kind": "contains", "none": ["cat"]}`, "", 1},
		{`{"kind": "starts_with", "text": "Sure:"}`, "sure: yes", 1},
		{`{"kind": "starts_with", "text": "Sure:", "match_case": true}`, "sure: yes", 0},
		{`{"kind": "starts_with", "text": "Sure:"}`, " Sure: yes", 0},
		{`{"kind": "ends_with", "text": "The end."}`, "This is the end.\n", 1},
		{`{"kind": "ends_with", "text": "The end."}`, "The end. Or not", 0},
		{`{"kind": "case", "style": "lower"}`, "all lower, 3 times", 1},
		{`{"kind": "case", "style": "lower"}`, "Not lower", 0},
		{`{"kind": "case", "style": "lower", "slack": 0.25, "partial": 0.5}`, "Not all lower case", 0.5},
		{`{"kind": "case", "style": "lower", "slack": 0.25, "partial": 0.5}`, "Not all lower", 0},
		{`{"kind": "case", "style": "title"}`, "Don't Say 2 Words", 1},
		{`{"kind": "case", "style": "title"}`, "Élan vital", 0},
		{`{"kind": "case", "style": "upper"}`, "A B2", 1},
		{`{"kind": "case", "style": "lower"}`, "...", 0},
		{`{"kind": "count", "exactly": 3}`, "one, two - three's", 1},
		{`{"kind": "count", "exactly": 3, "partial": [0.5]}`, "one two", 0.5},
		{`{"kind": "count", "exactly": 3, "partial": [0.5]}`, "one", 0},
		{`{"kind": "count", "min": 2, "max": 3, "half_at": 2}`, "one two three four five", 0.5},
		{`{"kind": "count", "min": 2}`, "one", 0},
		{`{"kind": "count", "unit": "chars", "max": 3}`, "äöü", 1},
		{`{"kind": "count", "unit": "sentences", "exactly": 2}`, "Really?! Yes.. ", 1},
		{`{"kind": "count", "unit": "lines", "exactly": 2}`, "a\n\n b\n", 1},
		{`{"kind": "count", "unit": "paragraphs", "exactly": 2}`, "a\nb\n \nc", 1},
		{`{"kind": "count", "unit": "matches", "pattern": "(?m)^- ", "exactly": 2}`, "- a\n- b", 1},
		{`{"kind": "count", "among": ["fox", "Owl"], "exactly": 2}`, "Fox, owl, cat", 1},
		{`{"kind": "distinct"}`, "a b A", 0},
		{`{"kind": "distinct"}`, "a b c", 1},
		{`{"kind": "distinct"}`, "!", 0},
		{`{"kind": "distinct", "among": ["fox"]}`, "a a fox", 1},
		{`{"kind": "distinct", "unit": "sentences"}`, "It is. it is!", 0},
		{`{"kind": "json"}`, ` {"a": [1, null]} `, 1},
		{`{"kind": "json"}`, "```json\n{}\n```", 0},
		{`{"kind": "json", "fenced": true}`, "```json\n{}\n```", 1},
		{`{"kind": "json", "keys": ["a", "b"]}`, `{"a": 1, "c": 2}`, 0.5},
		{`{"kind": "json", "keys": ["a"]}`, `[1]`, 0},
	} {
		s := value(t, one(c.check), nil, text(c.text))
		if s.Value != c.want || s.Parts[0].Credit != c.want {
			t.Errorf("%s on %q: %v (%s), want %v", c.check, c.text, s.Value, s.Parts[0].Reason, c.want)
		}
		if s.Parts[0].Reason == "" {
			t.Errorf("%s gives no reason", c.check)
		}
	}
}

func TestTokensAreThePolicysOwn(t *testing.T) {
	c := &grpo.Completion{Tokens: []int32{1, 2, 9, 9, 1, 2}, Mask: []bool{true, true, false, false, true, true}}
	if s := value(t, one(`{"kind": "count", "unit": "tokens", "exactly": 4}`), nil, c); s.Value != 1 {
		t.Errorf("count of tokens: %+v", s)
	}
	if s := value(t, one(`{"kind": "repetition", "ngram": 2}`), nil, c); math.Abs(s.Value-1.0/3) > 1e-15 { // 12 21 12
		t.Errorf("repetition: %+v", s)
	}
}

func TestValueIsTheWeightedCredit(t *testing.T) {
	checks := `[{"kind": "contains", "name": "a", "any": ["a"], "weight": 3},
		{"kind": "contains", "name": "b", "any": ["b"]},
		{"kind": "contains", "name": "shown", "any": ["a"], "weight": 0},
		{"kind": "contains", "name": "swears", "any": ["damn"], "weight": -6}]`
	for _, c := range []struct {
		clip, text string
		want       float64
	}{
		// "damn" has an a: 3 of 4 points, less 6
		{"unit", "a", 0.75}, {"unit", "ab", 1}, {"unit", "b damn", 0}, {"signed", "a damn", -0.75}, {"signed", "b damn damn", -0.5}, {"signed", "xx", 0},
	} {
		s := value(t, fmt.Sprintf(`{"clip": %q, "checks": %s}`, c.clip, checks), nil, text(c.text))
		if s.Value != c.want {
			t.Errorf("%q clipped %s: %v, want %v", c.text, c.clip, s.Value, c.want)
		}
	}
	s := value(t, `{"checks": `+checks+`}`, nil, text("ab"))
	if p := s.Parts[0]; len(s.Parts) != 4 || p.Name != "a" || p.Weight != 3 || p.Credit != 1 {
		t.Errorf("parts: %+v", s.Parts)
	}
}

func TestRowsBringTheirOwnChecks(t *testing.T) {
	settings := `{"column": "checks", "checks": [{"kind": "number", "column": "gold"}]}`
	row := map[string]any{"gold": 4.0, "checks": []any{map[string]any{"kind": "count", "exactly": 2.0, "weight": 3.0}}}
	if s := value(t, settings, row, text("just 4")); s.Value != 1 || len(s.Parts) != 2 {
		t.Errorf("%+v", s)
	}
	if s := value(t, settings, row, text("4")); s.Value != 0.25 {
		t.Errorf("%+v", s)
	}
	if s := value(t, `{"column": "checks"}`, map[string]any{"checks": []any{}}, text("4")); !s.Unscorable || !math.IsNaN(s.Value) || s.Reason == "" {
		t.Errorf("a row without checks cannot be scored: %+v", s)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct{ settings, want string }{
		{`{}`, "nothing to check"},
		{`{"cheks": []}`, `unknown option "cheks": did you mean "checks"?`},
		{`{"column": "c", "clip": "both"}`, `clip is "both": use unit or signed`},
		{one(`{"weight": 1}`), "check 1: has no kind: use one of case, contains, count"},
		{one(`{"kind": "cuont"}`), `unknown kind "cuont": did you mean "count"?`},
		{one(`{"kind": "count", "exacty": 3}`), `check 1: count: unknown option "exacty": did you mean "exactly"?`},
		{one(`{"kind": "count", "exactly": 2.5}`), "option exactly is a number 2.5: give a whole number"},
		{one(`{"kind": "count"}`), "check count: no number is asked for"},
		{one(`{"kind": "count", "name": "size", "exactly": 1, "min": 1}`), "check size: exactly and min or max are set"},
		{one(`{"kind": "count", "min": 3, "max": 2}`), "the range 3 to 2 is empty"},
		{one(`{"kind": "count", "min": 3, "unit": "apples"}`), `unit "apples" cannot be used`},
		{one(`{"kind": "count", "min": 3, "unit": "lines", "among": ["a"]}`), "among goes with unit: words"},
		{one(`{"kind": "count", "min": 3, "partial": [2]}`), "every credit of partial between 0 and 1"},
		{one(`{"kind": "count", "min": 3, "partial": [1], "half_at": 1}`), "use one of the two"},
		{one(`{"kind": "count", "min": 3, "unit": "matches"}`), "pattern is empty"},
		{one(`{"kind": "count", "min": 3, "pattern": "a"}`), "pattern goes with unit: matches"},
		{one(`{"kind": "distinct", "unit": "tokens"}`), `unit "tokens" cannot be used`},
		{one(`{"kind": "regex", "pattern": "("}`), `pattern "(": error parsing regexp`},
		{one(`{"kind": "regex", "pattern": "(", "full": true}`), `pattern "(": error parsing regexp`},
		{one(`{"kind": "contains"}`), "nothing to look for"},
		{one(`{"kind": "ends_with"}`), "text is empty"},
		{one(`{"kind": "case", "style": "camel"}`), `style is "camel": use lower, upper or title`},
		{one(`{"kind": "case", "style": "lower", "slack": 25}`), "slack and partial are shares"},
		{one(`{"kind": "match"}`), "set answer, or column"},
		{one(`{"kind": "match", "answer": "a", "column": "b"}`), "set answer, or column"},
		{one(`{"kind": "match", "answer": {}}`), "answer: is map[]: give a text"},
		{one(`{"kind": "match", "answer": "a", "from": "box"}`), `from is "box": use text, line, boxed, hash or choice`},
		{one(`{"kind": "match", "answer": "a", "from": "line", "pattern": "a"}`), "from and pattern are set"},
		{one(`{"kind": "match", "answer": "a", "compare": "fuzzy"}`), `compare is "fuzzy"`},
		{one(`{"kind": "number", "answer": "many"}`), `the right answer "many" holds no number`},
		{one(`{"kind": "number", "answer": 1, "tolerance": -1}`), "must not be negative"},
		{one(`{"kind": "number", "column": "gold"}`), `prompt "row:7": check number: the row has no column gold`},
		{one(`{"kind": "repetition", "ngram": 0}`), "ngram must be at least 1"},
		{one(`{"kind": "repetition", "weight": -1}`), `prompt "row:7": no check has a weight above 0`},
		{one(`{"kind": "instructions", "mode": "lose"}`), `mode is "lose": use strict or loose`},
		{one(`{"kind": "instructions"}`), `prompt "row:7": check instructions: column instruction_id_list is not a list`},
		{`{"column": "bad"}`, `prompt "row:7": column bad: check 1: unknown kind "numbr": did you mean "number"?`},
		{`{"column": "none"}`, `prompt "row:7": column none: is not a list`},
		{`{"column": "odd"}`, `prompt "row:7": column odd: entry 1 is not a {kind, weight, ...}`},
	} {
		row := map[string]any{"bad": []any{map[string]any{"kind": "numbr"}}, "odd": []any{3.0}}
		_, err := tryValue(c.settings, row, text("a"))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "verify: ") {
			t.Errorf("%s: error %q, want %q in it", c.settings, err, c.want)
		}
	}
}

func TestCheckFindsABadRowBeforeTheRun(t *testing.T) {
	p, err := New(rewards.Run{}, map[string]any{"column": "checks"})
	if err != nil {
		t.Fatal(err)
	}
	bad := &grpo.Prompt{ID: "train.jsonl:3", Columns: map[string]any{"checks": []any{map[string]any{"kind": "count"}}}}
	if err := p.(*Provider).Check(bad); err == nil || !strings.Contains(err.Error(), `prompt "train.jsonl:3"`) {
		t.Errorf("error %v", err)
	}
	bad.Columns["checks"] = []any{map[string]any{"kind": "distinct"}}
	if err := p.(*Provider).Check(bad); err != nil {
		t.Error(err)
	}
}

func TestInstructions(t *testing.T) {
	row := map[string]any{
		"instruction_id_list": []any{"punctuation:no_comma", "startend:quotation", "paragraphs:paragraphs"},
		"kwargs":              []any{nil, map[string]any{}, map[string]any{"n": 2}},
	}
	if _, err := tryValue(one(`{"kind": "instructions"}`), row, text("a")); err == nil || !strings.Contains(err.Error(), `unknown instruction "paragraphs:paragraphs"`) {
		t.Errorf("error %v", err)
	}
	for _, c := range []struct {
		more, text string
		want       float64
	}{
		{``, `Yes, "no"`, 0}, {``, `"Yes, no"`, 0.5}, {``, `"Yes"`, 1}, {``, "", 0},
		{`, "credit": "all"`, `"Yes, no"`, 0}, {`, "credit": "all"`, `"Yes"`, 1},
		{``, "Sure, here:\n\"Yes\"", 0}, {`, "mode": "loose"`, "Sure, here:\n\"Yes\"", 1},
	} {
		settings := one(`{"kind": "instructions", "unsupported": "skip"` + c.more + `}`)
		if s := value(t, settings, row, text(c.text)); s.Value != c.want {
			t.Errorf("%s on %q: %+v, want %v", settings, c.text, s, c.want)
		}
	}
	row["instruction_id_list"] = []any{"language:response_language", "sentence:increment"} // of IFEval and IFBench
	row["kwargs"] = []any{map[string]any{"language": "de"}, map[string]any{"small_n": 1.0, "N": nil}}
	for answer, want := range map[string]float64{"Das ist gut. Das ist sehr gut.": 1, "Das ist gut. Das war gut.": 0.5, "It is good. It was good.": 0} {
		if s := value(t, one(`{"kind": "instructions"}`), row, text(answer)); s.Value != want {
			t.Errorf("%q: %+v, want %v", answer, s, want)
		}
	}
	row["instruction_id_list"], row["kwargs"] = []any{"paragraphs:paragraphs"}, []any{nil}
	if s := value(t, one(`{"kind": "instructions", "unsupported": "skip"}`), row, text("a")); !s.Unscorable {
		t.Errorf("nothing to check: %+v", s)
	}
}

func TestTRLRewards(t *testing.T) {
	var golden struct {
		Think []struct {
			Completion string
			Reward     float64
		} `json:"think_format_reward"`
		Repetition []struct {
			NGram  int     `json:"ngram_size"`
			Max    float64 `json:"max_penalty"`
			IDs    []int32
			Reward float64
		} `json:"repetition_penalty"`
	}
	data, err := os.ReadFile("testdata/trl_rewards.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Think) != 10 || len(golden.Repetition) != 22 {
		t.Fatalf("%d and %d cases", len(golden.Think), len(golden.Repetition))
	}
	for _, g := range golden.Think {
		if s := value(t, one(`{"kind": "think_format"}`), nil, text(g.Completion)); s.Value != g.Reward {
			t.Errorf("think format of %q: %v, TRL %v", g.Completion, s.Value, g.Reward)
		}
	}
	for _, g := range golden.Repetition {
		settings := fmt.Sprintf(`{"clip": "signed", "checks": [{"kind": "repetition", "ngram": %d, "weight": %v}]}`, g.NGram, g.Max)
		if s := value(t, settings, nil, &grpo.Completion{Tokens: g.IDs}); math.Abs(s.Value-g.Reward) > 1e-15 {
			t.Errorf("repetition of %d tokens: %v, TRL %v", len(g.IDs), s.Value, g.Reward)
		}
	}
}

func TestHashIsGSM8Ks(t *testing.T) {
	rows := oracle.Rows[struct {
		Tail      string `json:"answer_tail"`
		Extracted string
	}](t, "gsm8k_extract.jsonl")
	if len(rows) < 700 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if got, ok := afterHash(r.Tail); !ok || got != r.Extracted {
			t.Errorf("%q: %q, official %q", r.Tail, got, r.Extracted)
		}
		if s := value(t, one(`{"kind": "number", "from": "hash", "column": "answer"}`), map[string]any{"answer": r.Tail}, text("#### "+r.Extracted)); s.Value != 1 {
			t.Errorf("%q does not match itself: %+v", r.Tail, s)
		}
	}
}

func TestTextIsHotpotQAsExactMatch(t *testing.T) {
	for _, r := range qaRows(t) {
		if got := plainText(r.Prediction); got != r.NormPrediction {
			t.Errorf("normal form of %q: %q, official %q", r.Prediction, got, r.NormPrediction)
		}
		if got := plainText(r.Gold); got != r.NormGold {
			t.Errorf("normal form of %q: %q, official %q", r.Gold, got, r.NormGold)
		}
		s := value(t, one(`{"kind": "match", "compare": "text", "column": "gold"}`), map[string]any{"gold": r.Gold}, text(r.Prediction))
		if (s.Value == 1) != r.Equal {
			t.Errorf("%q against %q: %v, official %v", r.Prediction, r.Gold, s.Value, r.Equal)
		}
	}
}

func FuzzCreditsAreShares(f *testing.F) {
	p, err := New(rewards.Run{}, map[string]any{"checks": []map[string]any{
		{"kind": "match", "answer": "a", "compare": "text", "from": "line"}, {"kind": "number", "answer": 1, "from": "boxed"},
		{"kind": "number", "answer": 1}, {"kind": "contains", "any": []string{"é", "a"}, "whole_words": true},
		{"kind": "starts_with", "text": "İ"}, {"kind": "count", "exactly": 2, "half_at": 1.5}, {"kind": "distinct", "unit": "paragraphs"},
		{"kind": "case", "style": "title", "slack": 0.5, "partial": 0.5}, {"kind": "json", "fenced": true, "keys": []string{"a"}},
		{"kind": "json", "schema": map[string]any{"type": []string{"object", "number"}, "multipleOf": 0.5, "minimum": -3}},
		{"kind": "match", "answer": "A", "from": "choice"}, {"kind": "instruction", "id": "detectable_format:json_format"},
		{"kind": "think_format"}, {"kind": "count", "unit": "sentences", "max": 3, "partial": []float64{0.5}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", "\\boxed{{}", "1/0 -1e999 .", "éa\u0301 \xff\n\n \n", "```json{\"a\":1}```", "-1e-9999999", "<think></think>", "Σ. İ!"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		scores, err := p.Score(t.Context(), 0, []grpo.Group{{Prompt: &grpo.Prompt{}, Completions: []*grpo.Completion{{Text: s}}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range scores[0].Parts {
			if !(part.Credit >= 0 && part.Credit <= 1) || part.Reason == "" {
				t.Errorf("%q: %+v", s, part)
			}
		}
	})
}
