package criteria

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func one(id string) Criterion { return Criterion{ID: id, Text: "Says hello.", Weight: 1} }

func mustSet(t testing.TB, scope string, version int, list ...Criterion) Set {
	t.Helper()
	s, err := NewSet(scope, version, list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each kind of bad rubric must be refused with words of its own: a judge would score nonsense, and the value would be NaN
// or always 0.
func TestNewSetRefuses(t *testing.T) {
	with := func(change func(*Criterion)) []Criterion {
		list := []Criterion{one("a"), one("b")}
		change(&list[1])
		return list
	}
	many := make([]Criterion, 10_000)
	for i := range many {
		many[i] = one(fmt.Sprint("c", i))
	}
	for name, c := range map[string]struct {
		list []Criterion
		want string
	}{
		"none":           {nil, "there are no criteria"},
		"too many":       {many, "there are 10000 criteria: use at most 256"},
		"same id":        {[]Criterion{one("a"), one("b"), one("a")}, `criteria 1 and 3 have the same id "a"`},
		"no id":          {with(func(c *Criterion) { c.ID = "" }), "criterion 2 (): has no id"},
		"odd id":         {with(func(c *Criterion) { c.ID = "b c" }), `id "b c": use 1 to 64 letters`},
		"blank text":     {with(func(c *Criterion) { c.Text = " \n" }), "criterion 2 (b): text is empty"},
		"long text":      {with(func(c *Criterion) { c.Text = strings.Repeat("ä", 4001) }), "text has 4001 characters: use at most 4000"},
		"text bytes":     {with(func(c *Criterion) { c.Text = "\xff" }), "is not UTF-8"},
		"NaN":            {with(func(c *Criterion) { c.Weight = math.NaN() }), "weight is NaN: give a finite number"},
		"infinite":       {with(func(c *Criterion) { c.Weight = math.Inf(-1) }), "weight is -Inf: give a finite number"},
		"huge":           {with(func(c *Criterion) { c.Weight = 2e9 }), "weight is 2e+09"},
		"nothing to win": {[]Criterion{{ID: "a", Text: "x"}, {ID: "b", Text: "x", Weight: -1}}, "no criterion has a weight above 0"},
		"category":       {with(func(c *Criterion) { c.Category = "corectness" }), `unknown category "corectness": did you mean "correctness"?`},
		"polarity":       {with(func(c *Criterion) { c.Polarity = "up" }), `unknown polarity "up": use one of positive, negative`},
		"max score":      {with(func(c *Criterion) { c.MaxScore = 101 }), "max_score is 101: use 1 to 100"},
		"step":           {with(func(c *Criterion) { c.Step = -1 }), "step is -1"},
		"check":          {with(func(c *Criterion) { c.Check = map[string]any{"kind": math.Inf(1)} }), "check is not JSON"},
	} {
		if _, err := NewSet(Global, 1, c.list); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	if _, err := NewSet(Global, -1, []Criterion{one("a")}); err == nil {
		t.Error("a negative version is taken")
	}
	// All that is wrong is told at once.
	_, err := NewSet(Global, 1, []Criterion{{ID: "a", Text: "x", Weight: math.NaN()}, {ID: "b"}})
	for _, want := range []string{"weight is NaN", "text is empty", "no criterion has a weight above 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

// A set must not change with the list or the maps that it was made of, nor with the copy that List gives.
func TestSetIsImmutable(t *testing.T) {
	inner := []any{"x"}
	list := []Criterion{{ID: "a", Weight: 1, Check: map[string]any{"kind": "contains", "all": inner}}}
	s := mustSet(t, Global, 1, list...)
	before := s.Hash()
	list[0].ID, inner[0], list[0].Check["kind"] = "z", "y", "regex"
	s.List()[0].Text = "changed"
	if s.Hash() != before || s.At(0).ID != "a" {
		t.Errorf("the set became %v", s.At(0))
	}
}

// Canonical bytes decide the hash: they must not depend on how keys were ordered, on the Go type of numbers in checks, on
// the sign of zero or on HTML escaping.
func TestCanonicalJSON(t *testing.T) {
	a := mustSet(t, "p<1>", 3,
		Criterion{ID: "a", Text: "x & y", Weight: 2.5, Category: "safety", Anchor: true, Polarity: Negative, MaxScore: 4, Origin: "rar", Step: 7},
		Criterion{ID: "b", Weight: math.Copysign(0, -1), Check: map[string]any{"min": 3, "kind": "count"}})
	want := `{"scope":"p<1>","version":3,"criteria":[` +
		`{"id":"a","text":"x & y","weight":2.5,"category":"safety","anchor":true,"polarity":"negative","max_score":4,"origin":"rar","step":7},` +
		`{"id":"b","weight":0,"check":{"kind":"count","min":3}}]}`
	got, err := a.MarshalJSON()
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	var b Set
	err = json.Unmarshal([]byte(`{"criteria": [{"step":7,"origin":"rar","max_score":4,"polarity":"negative","anchor":true,"category":"safety","weight":25e-1,
		"text":"x \u0026 y","id":"a"}, {"weight":0,"check":{"min":3.0,"kind":"count"},"id":"b"}], "version":3, "scope":"p\u003c1>"}`), &b)
	if err != nil || !b.Equal(a) || b.Hash() != a.Hash() {
		t.Errorf("read back %v, %v; hash %s, want %s", b, err, b.Hash(), a.Hash())
	}
}

func TestUnmarshalIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		`{"scope":"g","version":1,"criteria":[{"id":"a","text":"x"},{"id":"a","text":"y"}]}`: "the same id",
		`{"scope":"g","version":1,"criteria":[{"id":"a","txt":"x"}]}`:                        "txt",
		`{"scope":"g","version":1,"criterion":[]}`:                                           "criterion",
		`{"scope":"g","version":1,"criteria":[]}`:                                            "no criteria",
		`{"scope":"g","version":1,"criteria":[{"id":"a","text":"x","weight":1e999}]}`:        "weight",
	} {
		var s Set
		if err := json.Unmarshal([]byte(text), &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	var s Set
	if err := json.Unmarshal([]byte(`{"scope":"g","version":1,"criteria":[{"id":"a","text":"x"}]}`), &s); err != nil || s.At(0).Weight != 1 {
		t.Errorf("a weight that is not said: %v, %v, want 1", s, err)
	}
	empty, err := json.Marshal(Set{})
	if err == nil {
		err = json.Unmarshal(empty, &s)
	}
	if err != nil || s.Len() != 0 || !s.Equal(Set{}) {
		t.Errorf("the empty set came back as %v, %v", s, err)
	}
}

func TestSetLookups(t *testing.T) {
	s := mustSet(t, "p1", 4, one("a"), one("b"))
	next, err := s.With([]Criterion{one("b")})
	if err != nil || next.Version() != 5 || next.Scope() != "p1" || next.Len() != 1 || s.Len() != 2 {
		t.Errorf("With gave %v (%d criteria), %v", next, next.Len(), err)
	}
	if c, ok := s.Find("b"); !ok || c.ID != "b" {
		t.Errorf("Find(b) = %v, %v", c, ok)
	}
	if c, ok := s.Find("c"); ok {
		t.Errorf("Find(c) = %v", c)
	}
	swapped := mustSet(t, "p1", 4, one("b"), one("a"))
	if s.Equal(swapped) || s.Hash() == swapped.Hash() {
		t.Error("the order of criteria does not count")
	}
	if s.Equal(mustSet(t, "p1", 5, s.List()...)) || s.Equal(mustSet(t, "p2", 4, s.List()...)) || !s.Equal(mustSet(t, "p1", 4, s.List()...)) {
		t.Error("Equal does not compare scope and version")
	}
	for i, c := range s.All() {
		if !c.Equal(s.At(i)) {
			t.Errorf("All yields %v at %d", c, i)
		}
	}
}

// Equal must look at every field: one that it forgets would let a changed criterion pass as kept.
func TestCriterionEqual(t *testing.T) {
	full := Criterion{ID: "a", Text: "t", Weight: 1, Category: "safety", Anchor: true, Polarity: Positive, MaxScore: 2,
		Check: map[string]any{"kind": "case"}, Origin: "o", Step: 3}
	for i, change := range []func(*Criterion){
		func(c *Criterion) { c.ID = "b" }, func(c *Criterion) { c.Text = "u" }, func(c *Criterion) { c.Weight = 2 },
		func(c *Criterion) { c.Category = "" }, func(c *Criterion) { c.Anchor = false }, func(c *Criterion) { c.Polarity = Negative },
		func(c *Criterion) { c.MaxScore = 3 }, func(c *Criterion) { c.Check = map[string]any{"kind": "json"} },
		func(c *Criterion) { c.Check = nil }, func(c *Criterion) { c.Origin = "" }, func(c *Criterion) { c.Step = 4 },
	} {
		other := full
		change(&other)
		if full.Equal(other) {
			t.Errorf("change %d is not seen", i)
		}
	}
	same := full
	same.Check = map[string]any{"kind": "case"}
	if !full.Equal(same) {
		t.Error("a copy is not equal")
	}
}

// The schema must accept what a Set writes and refuse what it would not read.
func TestSchema(t *testing.T) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema())))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("rubric.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("rubric.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value)
	}
	full := mustSet(t, "p", 2, Criterion{ID: "a", Text: "t", Weight: -1, Category: "bonus", Anchor: true, Polarity: Positive, MaxScore: 9, Origin: "o", Step: 3},
		Criterion{ID: "b", Weight: 1, Check: map[string]any{"kind": "case"}})
	for _, s := range []Set{full, {}} {
		text, err := s.MarshalJSON()
		if err == nil {
			err = validate(string(text))
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, category := range Categories() {
		if err := validate(`{"criteria":[{"id":"a","text":"t","category":"` + category + `"}]}`); err != nil {
			t.Error(err)
		}
	}
	for _, field := range []string{`"weight":"1"`, `"max_score":101`, `"polarity":"up"`, `"category":"x"`, `"step":-1`, `"txt":""`, `"check":{}`} {
		if validate(`{"criteria":[{"id":"a","text":"t",`+field+`}]}`) == nil {
			t.Errorf("the schema lets %s pass", field)
		}
	}
	for _, text := range []string{`{"criteria":[{"id":"a b","text":"t"}]}`, `{"criteria":[{"text":"t"}]}`, `{"criteria":[{"id":"a"}]}`, `{}`, `[]`} {
		if validate(text) == nil {
			t.Errorf("the schema lets %s pass", text)
		}
	}
}

// Reading what was written must give the same set and the same bytes, whatever the file said.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"scope":"g","version":1,"criteria":[{"id":"a","text":"x","weight":-0.0},{"id":"b","text":"y","check":{"kind":"count","min":1e3}}]}`))
	f.Add([]byte(`{"scope":"\ud800","version":0,"criteria":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Set
		if json.Unmarshal(data, &s) != nil {
			return
		}
		roundTrip(t, s)
	})
}

func roundTrip(t *testing.T, s Set) {
	text, err := s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var back Set
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	again, err := back.MarshalJSON()
	if err != nil || !back.Equal(s) || string(again) != string(text) || back.Hash() != s.Hash() || Diff(s, back) != nil {
		t.Errorf("%s came back as %s, %v", text, again, err)
	}
}
