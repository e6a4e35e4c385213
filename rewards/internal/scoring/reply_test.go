package scoring

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var two = []asked{{"c1", 1}, {"c2", 20}}

const good = `{"c1": {"reason": "yes", "score": 1}, "c2": {"reason": "no", "score": 0}}`

func compileReplySchema(t testing.TB, list []asked) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(replySchema(list))))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("reply.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("reply.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The schema's text is what constrained decoding follows: order of keys and the reason before the score are its sense.
func TestReplySchema(t *testing.T) {
	object := func(bounds string) string {
		return `{"type":"object","properties":{"reason":{"type":"string","maxLength":200},"score":{"type":"integer",` + bounds +
			`}},"required":["reason","score"],"additionalProperties":false}`
	}
	want := `{"type":"object","properties":{"c2":` + object(`"minimum":0,"maximum":20`) + `,"c1":` + object(`"enum":[0,1]`) +
		`},"required":["c2","c1"],"additionalProperties":false}`
	if got := string(replySchema([]asked{{"c2", 20}, {"c1", 1}})); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A reply that is not exactly what was asked for must be refused: a missing score taken as 0, or the first of two, would be
// a silent wrong reward. What JSON Schema can tell, the schema sent to the server must tell as well.
func TestReadReply(t *testing.T) {
	schema := compileReplySchema(t, two)
	for _, c := range []struct{ text, want string }{
		{good, ""},
		{`{"c2": {"score": 20.0, "reason": ""}, "c1": {"reason": "x", "score": 1}}`, ""}, // any order; 20.0 is whole
		{`{"c1": {"reason": "x", "score": 1}}`, "c2 is missing: give its reason and score"},
		{`{"c1": {"reason": "x", "score": 2}, "c2": {"reason": "x", "score": -1}}`, "c1: score is 2: give a whole number from 0 to 1\nc2: score is -1: give a whole number from 0 to 20"},
		{`{"c1": {"reason": "x", "score": 0.5}, "c2": {"reason": "x", "score": 1}}`, "c1: score is 0.5"},
		{`{"c1": {"reason": "x", "score": "1"}, "c2": {"reason": "x", "score": 1}}`, `c1: score is "1": give a whole number`},
		{`{"c1": {"reason": "x", "score": true}, "c2": {"reason": "x", "score": 1}}`, "c1: score is true"},
		{`{"c1": {"reason": "x", "score": null}, "c2": {"reason": "x", "score": 1}}`, "c1: score is null"},
		{`{"c1": {"reason": null, "score": 1}, "c2": {"reason": "x", "score": 1}}`, "c1: reason is not a text"},
		{`{"c1": {"score": 1}, "c2": {"reason": "x", "score": 1}}`, "c1: reason is missing"},
		{`{"c1": {"reason": "x"}, "c2": {"reason": "x", "score": 1}}`, "c1: score is missing"},
		{`{"c1": 1, "c2": 0}`, `c1: is not an object {"reason": ..., "score": ...}`},
		{`{"c1": {"reason": "x", "score": 1, "total": 9}, "c2": {"reason": "x", "score": 1}}`, `c1: "total" is not asked for`},
		{`{"c1": {"reason": "x", "score": 1}, "c2": {"reason": "x", "score": 1}, "c3": {"reason": "x", "score": 1}}`, `"c3" is not asked for: leave it out`},
		{`{"c1": {"reason": "x", "score": 0}, "c1": {"reason": "x", "score": 1}, "c2": {"reason": "x", "score": 1}}`, "c1 is there twice"},
		{`{"c1": {"reason": "x", "score": 0, "score": 1}, "c2": {"reason": "x", "score": 1}}`, "c1: score is there twice"},
		{`[]`, "not one JSON object"},
		{``, "not one JSON object"},
		{`"c1"`, "not one JSON object"},
		{good + ` Done.`, "not one JSON object: something follows it"},
		{good + good, "not one JSON object: something follows it"},
		{good[:len(good)-1], "not one JSON object: it does not end"},
		{"```json\n" + good + "\n```", "not one JSON object"},
	} {
		_, err := readReply(c.text, two)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.text, err, c.want)
		}
		value, broken := jsonschema.UnmarshalJSON(strings.NewReader(c.text))
		if broken != nil || strings.Contains(c.want, "twice") {
			continue
		}
		if err := schema.Validate(value); (err == nil) != (c.want == "") {
			t.Errorf("%s: the schema says %v, the reader wants %q", c.text, err, c.want)
		}
	}
	got, err := readReply(`{"c2": {"reason": " b ", "score": 7}, "c1": {"reason": "a", "score": 1}}`, two)
	if want := []scored{{1, "a"}, {7, "b"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// A judge without a schema may write an essay; the run's files must not hold it a thousand times.
func TestLongReasonsAreCut(t *testing.T) {
	text, err := json.Marshal(map[string]any{"c1": map[string]any{"reason": strings.Repeat("ä", 400), "score": 1}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readReply(string(text), two[:1])
	if want := strings.Repeat("ä", 199) + "…"; err != nil || got[0].Reason != want {
		t.Errorf("got %v, %v", got, err)
	}
}

// No reply may crash the reader, and what it accepts must be what encoding/json reads.
func FuzzReadReply(f *testing.F) {
	for _, text := range []string{good, `{"c1":`, `{"c1":{"reason":"\ud800","score":1e0},"c2":{"reason":"","score":20}}`, `{"":{}}`, `{"c1":[{}]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readReply(text, two)
		if err != nil {
			return
		}
		var plain map[string]struct{ Score float64 }
		if err := json.Unmarshal([]byte(text), &plain); err != nil {
			t.Fatalf("%q is accepted and no JSON: %v", text, err)
		}
		for i, a := range two {
			if float64(got[i].Score) != plain[a.Key].Score || got[i].Score < 0 || got[i].Score > a.Max {
				t.Errorf("%q: %s is %v, want %v", text, a.Key, got[i].Score, plain[a.Key].Score)
			}
		}
	})
}
