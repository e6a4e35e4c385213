package rare

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// What a judge may say, good and hostile, and what must be said about it.
func TestReplies(t *testing.T) {
	good := `{"replaces": "c1", "difference": "d", "polarity": "negative", "criterion": "Hurries."}`
	positive := `{"replaces": "c3", "difference": "d", "polarity": "positive", "criterion": "Lingers."}`
	read(t, map[string]struct{ polarity, answer, want string }{
		"one":                     {"negative", `{"updates": [` + good + `]}`, ""},
		"none":                    {"negative", ` {"updates": []} `, ""},
		"mixed":                   {"mixed", `{"updates": [` + positive + `,` + good + `]}`, ""},
		"mixed, one alone":        {"mixed", `{"updates": [` + good + `]}`, ""},
		"mixed, both negative":    {"mixed", `{"updates": [` + good + `,` + strings.Replace(good, "c1", "c3", 1) + `]}`, "both polarities must occur"},
		"other polarity":          {"negative", `{"updates": [` + positive + `]}`, `polarity is "positive": use negative`},
		"polarity in words":       {"mixed", `{"updates": [` + strings.Replace(good, "negative", "Negative", 1) + `]}`, "use negative or positive"},
		"not to be replaced":      {"negative", `{"updates": [` + strings.Replace(good, "c1", "c2", 1) + `]}`, "use one of c1, c3"},
		"an id for a label":       {"negative", `{"updates": [` + strings.Replace(good, "c1", "anchor", 1) + `]}`, "use one of c1, c3"},
		"twice":                   {"negative", `{"updates": [` + good + `,` + good + `]}`, "c1 has a replacement already"},
		"empty text":              {"negative", `{"updates": [` + strings.Replace(good, "Hurries.", ` \n `, 1) + `]}`, "the criterion is empty"},
		"no letters":              {"negative", `{"updates": [` + strings.Replace(good, "Hurries.", `... 5`, 1) + `]}`, "the criterion is empty"},
		"too long":                {"negative", `{"updates": [` + strings.Replace(good, "Hurries.", strings.Repeat("é", 401), 1) + `]}`, "has 401 characters: use at most 400"},
		"fence":                   {"negative", `{"updates": [` + strings.Replace(good, "Hurries.", `a <<<UNTRUSTED b`, 1) + `]}`, "marks of a fence"},
		"chat template":           {"negative", `{"updates": [` + strings.Replace(good, "Hurries.", `a <|im_end|> b`, 1) + `]}`, "marks of a fence or a chat template"},
		"more than there are ...": {"negative", `{"updates": [` + good + `,` + strings.Replace(good, "c1", "c3", 1) + `,` + good + `]}`, "update 3"},
	})
}

// What is not the form that was asked for is refused, not guessed at.
func TestRepliesInAnotherForm(t *testing.T) {
	good := `{"replaces": "c1", "difference": "d", "polarity": "negative", "criterion": "Hurries."}`
	read(t, map[string]struct{ polarity, answer, want string }{
		"weight of its own":   {"negative", `{"updates": [` + strings.Replace(good, `"difference"`, `"weight": 99, "difference"`, 1) + `]}`, `unknown field "weight"`},
		"prose":               {"negative", `Here you are: {"updates": []}`, "is not JSON"},
		"trailing prose":      {"negative", `{"updates": []} I hope this helps.`, "goes on after its JSON"},
		"two answers":         {"negative", `{"updates": []}{"updates": [` + good + `]}`, "goes on after its JSON"},
		"markdown":            {"negative", "```json\n{\"updates\": []}\n```", "is not JSON"},
		"a list":              {"negative", `[` + good + `]`, "is not JSON"},
		"a scoring verdict":   {"negative", `{"all": {"reason": "fine", "score": 1}}`, "unknown field"},
		"an empty object":     {"negative", `{}`, `has no "updates"`},
		"null":                {"negative", `null`, `has no "updates"`},
		"a number for a text": {"negative", `{"updates": [` + strings.Replace(good, `"Hurries."`, `5`, 1) + `]}`, "is not JSON"},
		"nothing":             {"negative", ``, "is not JSON"},
		"cut off":             {"negative", `{"updates": [` + good, "is not JSON"},
	})
}

// read checks what a judge's answers mean: nothing wrong where want is empty, else an error that says it.
func read(t *testing.T, cases map[string]struct{ polarity, answer, want string }) {
	t.Helper()
	for name, c := range cases {
		got, err := reply{[]string{"c1", "c3"}, c.polarity}.read(c.answer)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		for i := range got {
			if err == nil && i > 0 && got[i].label < got[i-1].label {
				t.Errorf("%s: updates are not in the order of their places: %+v", name, got)
			}
		}
	}
}

// Texts of a judge become one line of what prints: a line break could make it look like another criterion.
func TestTextsAreTidied(t *testing.T) {
	for text, want := range map[string]string{
		" a\n\n- b: (0 to 9)\tc ": "a - b: (0 to 9) c", "a\x00\x1b[31mb\u202ec": "a[31mbc", "é 漢字 \u2003x": "é 漢字 x", "\ufffda": "a",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// What the schema lets through must pass the reader: a judge that is held to the schema would else be asked in vain.
func TestSchemaIsTheReadersForm(t *testing.T) {
	var schema map[string]any
	r := reply{[]string{"c2"}, polarityBoth}
	if err := json.Unmarshal(r.schema(), &schema); err != nil {
		t.Fatal(err)
	}
	list := schema["properties"].(map[string]any)["updates"].(map[string]any)
	item := list["items"].(map[string]any)["properties"].(map[string]any)
	if list["maxItems"] != 1.0 || len(item) != 4 {
		t.Errorf("schema %v", schema)
	}
	u := update{Replaces: item["replaces"].(map[string]any)["enum"].([]any)[0].(string), Difference: strings.Repeat("d", maxDifference),
		Polarity: item["polarity"].(map[string]any)["enum"].([]any)[1].(string), Criterion: strings.Repeat("c", maxProposal)}
	if u.Replaces != "c2" || u.Polarity != criteria.Positive {
		t.Errorf("the schema has other values: %+v", u)
	}
	if _, err := r.read(answerOf(u)); err != nil {
		t.Error(err)
	}
}

// FuzzReply: whatever a judge writes, what is read of it can stand in a rubric.
func FuzzReply(f *testing.F) {
	f.Add(`{"updates": [{"replaces": "c1", "difference": "d", "polarity": "negative", "criterion": "Hurries."}]}`)
	f.Add(`{"updates": [{"replaces": "c1", "polarity": "negative", "criterion": "\ud800 <<<x"}]}`)
	f.Add(`{"Updates": null}`)
	f.Fuzz(func(t *testing.T, answer string) {
		list, err := reply{[]string{"c1", "c3"}, polarityBoth}.read(answer)
		if err != nil {
			return
		}
		if len(list) > 2 {
			t.Fatalf("%d updates of 2 criteria", len(list))
		}
		for _, u := range list {
			c := criteria.Criterion{ID: "a", Text: u.Criterion, Weight: 1, Polarity: u.Polarity}
			if _, err := criteria.NewSet("p", 1, []criteria.Criterion{c}); err != nil || strings.Contains(u.Criterion, "\n") {
				t.Fatalf("%q makes %v", u.Criterion, err)
			}
		}
	})
}
