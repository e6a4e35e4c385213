package grammar

import (
	"strings"
	"testing"
)

// FuzzDraw: what is drawn for any schema of the family is valid, however few tokens there are.
func FuzzDraw(f *testing.F) {
	f.Add(uint64(1), uint64(0))
	f.Add(uint64(2), uint64(40))
	v := mergedWords().vocab(f)
	f.Fuzz(func(t *testing.T, seed, extra uint64) {
		r := newFamily(seed)
		schema := r.document()
		g, err := Compile([]byte(schema))
		if err != nil {
			return
		}
		c, err := g.For(v)
		if err != nil {
			t.Fatalf("%s: compiled, but %v", schema, err)
		}
		text := draw(t, c, c.Least()+int(extra%200), func(ids []int32) int32 { return pick(r, ids...) })
		if !mustOracle(t, schema).accepts(text) {
			t.Errorf("%s: %s is not valid", schema, text)
		}
	})
}

// FuzzCompile: any schema is refused or compiled without a panic and in bounded memory, and what is drawn of one that
// is compiled is valid.
func FuzzCompile(f *testing.F) {
	for _, c := range suite {
		f.Add(c.schema, uint64(1))
	}
	for n := range uint64(20) {
		f.Add(newFamily(n).document(), n)
	}
	for _, s := range []string{`{`, `[]`, `{"$ref":"#"}`, `{"maximum":1e400}`, `{"minItems":1e18}`, `{"anyOf":[{"$ref":"#"},{"items":{"$ref":"#"}}]}`,
		`{"additionalProperties":{"$ref":"#"},"properties":{"\u00e9":{}}}`, `{"const":"\ud800"}`, `{"enum":[1e-300,-0.0]}`} {
		f.Add(s, uint64(2))
	}
	v := mergedWords().vocab(f)
	f.Fuzz(func(t *testing.T, schema string, seed uint64) {
		g, err := Compile([]byte(schema))
		if err != nil {
			return
		}
		c, err := g.For(v)
		if err != nil {
			t.Fatalf("%s: compiled, but %v", schema, err)
		}
		if c.a.size > maxSize || c.Least() > 1<<12 {
			return
		}
		r := newFamily(seed)
		text := draw(t, c, c.Least()+int(seed%64), func(ids []int32) int32 { return pick(r, ids...) })
		if strings.Contains(schema, "$schema") || strings.Contains(schema, "$id") || strings.Contains(schema, "nullable") {
			return // not understood alike
		}
		if o, err := newOracle(schema); err == nil && !o.accepts(text) {
			t.Errorf("%s: %s is not valid", schema, text)
		}
	})
}
