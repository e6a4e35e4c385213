package grammar

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
)

// suite is schemas with texts that are said, that are valid but not said, and that are not valid. The independent library
// has to agree to the first two and to refuse the third.
var suite = []struct {
	name, schema     string
	said, unsaid, no []string
}{
	{"null", `{"type":"null"}`, []string{`null`}, []string{` null`}, []string{`nul`, `Null`, `0`, ``}},
	{"boolean", `{"type":"boolean"}`, []string{`true`, `false`}, nil, []string{`True`, `1`, `"true"`}},
	{"integer", `{"type":"integer"}`, []string{`0`, `7`, `-7`, `10`, `999999999999999`, `-999999999999999`},
		[]string{`-0`, `1.0`, `1e3`, `1000000000000000`}, []string{`01`, `+1`, `1.5`, `--1`, `-`, `1 2`}},
	{"integer bounds", `{"type":"integer","minimum":-3,"maximum":112}`, []string{`-3`, `-1`, `0`, `9`, `10`, `99`, `100`, `112`},
		nil, []string{`-4`, `-30`, `113`, `120`, `1000`}},
	{"integer exclusive", `{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":10}`, []string{`1`, `9`}, nil, []string{`0`, `10`, `-1`}},
	{"integer between fractions", `{"type":"integer","minimum":0.5,"maximum":2.5}`, []string{`1`, `2`}, nil, []string{`0`, `3`}},
	{"integer huge bounds", `{"type":"integer","minimum":-9223372036854775808,"maximum":1.8446744073709552e19}`,
		[]string{`0`, `-5`, `123456789012345`}, []string{`9223372036854775807`}, []string{`18446744073709552001`, `0.5`}},
	{"two bounds of a side", `{"type":"integer","minimum":3,"exclusiveMinimum":3,"maximum":6,"exclusiveMaximum":9}`,
		[]string{`4`, `6`}, nil, []string{`3`, `7`}},
	{"number", `{"type":"number"}`, []string{`0`, `0.5`, `-0.5`, `3.000000`, `123456789.123456`, `-12`},
		[]string{`1e5`, `-0`, `0.0000001`, `1234567890.123456`, `-0.0`}, []string{`.5`, `5.`, `00.5`, `1e`, `- 1`}},
	{"credit", `{"type":"number","minimum":0,"maximum":1}`, []string{`0`, `1`, `0.5`, `1.0`, `0.000000`, `0.999999`, `1.000000`},
		nil, []string{`1.1`, `1.000001`, `-0.5`, `2`, `10`}},
	{"negative numbers", `{"type":"number","minimum":-1.25,"exclusiveMaximum":-0.5}`, []string{`-1.25`, `-0.51`, `-0.500001`, `-1`, `-1.249999`, `-0.50001`},
		nil, []string{`-0.5`, `-0.50`, `-1.250001`, `-1.3`, `0`, `-0.4`, `1`}},
	{"not positive", `{"type":"number","maximum":0}`, []string{`0`, `0.0`, `-0.000001`, `-10`}, []string{`-0`, `-0.00`}, []string{`0.1`, `1`}},
	{"exponent bounds", `{"type":"number","minimum":1e1,"exclusiveMaximum":2.5E+1}`, []string{`10`, `24.999999`, `12.5`}, []string{`1e1`}, []string{`9.9`, `25`, `25.0`}},
	{"number by bounds alone", `{"maximum":3}`, []string{`3`, `-2.5`}, []string{`"x"`, `null`}, []string{`3.1`}},
	{"string", `{"type":"string"}`, []string{`""`, `"a"`, `"é漢😀"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\uD83D\uDE00\u0000"`, `"a b"`, "\"\x7f\"", `"</script>"`},
		nil, []string{`"`, `"a`, `a`, `"\x"`, `"\u12"`, "\"\n\"", "\"\x00\"", "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\"", `'a'`, `"a"b"`}},
	{"surrogates", `{"type":"string"}`, []string{`"\ud7ff\ue000"`, `"\udbff\udfff\uD800\uDC00"`},
		[]string{`"\ud800"`, `"\ude00"`, `"\ud83d\ud83d"`, `"\ud83dx"`, `"\ud83d\ub000"`, `"\ud83d\ue000"`, `"\ud83d\udb00"`}, []string{`"\ud83d\u"`}},
	{"string lengths", `{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"abc"`, `"éé"`, `"😀😀😀"`, `"\ud83d\ude00\n"`, `"\u0041\u0042\u0043"`},
		nil, []string{`"a"`, `"abcd"`, `"é"`, `"\ud83d\ude00"`, `""`, `"\n\n\n\n"`}},
	{"enum", `{"enum":["a","b c",1,2.50,null,true,{"x":[1,2]},"<&>\n"]}`,
		[]string{`"a"`, `"b c"`, `1`, `2.50`, `null`, `true`, `{"x":[1,2]}`, `{"x": [1, 2]}`, `"<&>\n"`},
		[]string{`"\u0061"`, `2.5`, `1.0`, `"\u003c&>\n"`}, []string{`"b"`, `false`, `{"x":[1]}`, `2`, `{"x":  [1,2]}x`}},
	{"enum with type", `{"type":["string","integer"],"enum":["a",1,1.5,null,2.0]}`, []string{`"a"`, `1`, `2.0`}, []string{`2`}, []string{`1.5`, `null`}},
	{"const", `{"const":{"a":"b"}}`, []string{`{"a":"b"}`, `{"a": "b"}`}, []string{`{ "a":"b"}`}, []string{`{}`, `{"a":"c"}`}},
	{"array", `{"type":"array","items":{"type":"integer"}}`, []string{`[]`, `[1]`, `[1,2]`, `[1, 2,3]`}, []string{`[1,  2]`, `[ ]`, `[1 ]`, `[1 ,2]`},
		[]string{`[1,]`, `[,1]`, `["a"]`, `[1`, `1`}},
	{"array lengths", `{"type":"array","items":{"enum":[1]},"minItems":2,"maxItems":3}`, []string{`[1,1]`, `[1,1,1]`}, nil, []string{`[]`, `[1]`, `[1,1,1,1]`}},
	{"empty array", `{"type":"array","items":false}`, []string{`[]`}, nil, []string{`[1]`}},
	{"no items", `{"type":"array","maxItems":0}`, []string{`[]`}, nil, []string{`[1]`}},
	{"any items", `{"type":"array","minItems":1}`, []string{`[{"a":[1,"x",null]}]`, `[[[[[]]]]]`}, []string{`[[[[[[]]]]]]`}, []string{`[]`}},
	{"object", `{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"string"}},"required":["b","a"]}`,
		[]string{`{"b":1,"a":"x"}`, `{"b": 1, "a": ""}`}, []string{`{"a":"x","b":1}`, `{"b":1,"a":"x","c":2}`, `{ "b":1,"a":""}`, `{"\u0062":1,"a":""}`},
		[]string{`{}`, `{"b":1}`, `{"b":"1","a":"x"}`, `{"b":1,"a":"x",}`, `{"b":1 "a":"x"}`}},
	{"optional", `{"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"required":["b"],"additionalProperties":false}`,
		[]string{`{"b":2}`, `{"a":1,"b":2}`, `{"b":2,"c":3}`, `{"a":1,"b":2,"c":3}`}, []string{`{"c":3,"b":2}`}, []string{`{"a":1}`, `{,"b":2}`, `{"b":2,}`, `{"d":4,"b":2}`}},
	{"all optional", `{"type":"object","properties":{"a":{"const":1},"b":{"const":2}}}`, []string{`{}`, `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`}, []string{`{"c":1}`}, []string{`{"a":2}`}},
	{"additional", `{"type":"object","properties":{"ab":{"type":"integer"},"é":{"type":"integer"}},"additionalProperties":{"type":"boolean"}}`,
		[]string{`{}`, `{"ab":1}`, `{"ab":1,"x":true}`, `{"x":true,"y":false}`, `{"a":true}`, `{"abc":true}`, `{"":true}`, `{"è":true,"éa":false}`, `{"é":4,"漢":true}`},
		[]string{`{"\u0061":true}`, `{"x":true,"ab":1}`}, []string{`{"x":1}`, `{"ab":true}`, `{"\u0061b":true}`, `{"é":true}`}},
	{"additional after required", `{"type":"object","required":["k"],"additionalProperties":{"type":"null"}}`,
		[]string{`{"k":null}`, `{"k":null,"j":null}`}, nil, []string{`{}`, `{"j":null}`, `{"k":1}`}},
	{"free object", `{"type":"object"}`, []string{`{}`, `{"a":1}`, `{"a":{"b":[]},"c":"d"}`}, nil, []string{`[]`, `{"a"}`}},
	{"required and forbidden", `{"anyOf":[{"type":"object","required":["k"],"additionalProperties":false},{"const":1}]}`, []string{`1`}, nil, []string{`{"k":1}`, `{}`}},
	{"anything", `{}`, []string{`null`, `1.5`, `"x"`, `[1,{"a":true}]`, `{"a":[{}]}`}, nil, []string{`nil`, `{a:1}`, `[1`}},
	{"true", `true`, []string{`[]`}, nil, []string{`x`}},
	{"types", `{"type":["string","null","array"],"items":{"type":"integer"},"maxLength":1}`, []string{`"x"`, `null`, `[1]`}, nil, []string{`"xy"`, `["x"]`, `1`}},
	{"anyOf", `{"anyOf":[{"type":"integer"},{"type":"string","maxLength":2},{"type":"object","properties":{"a":{}},"required":["a"]}]}`,
		[]string{`5`, `"ab"`, `{"a":[]}`}, nil, []string{`"abc"`, `{}`, `null`}},
	{"anyOf with one beginning", `{"anyOf":[{"enum":["north"]},{"enum":["nor","northern"]},{"type":"string","maxLength":1}]}`,
		[]string{`"north"`, `"nor"`, `"northern"`, `"n"`, `""`}, nil, []string{`"no"`, `"northe"`}},
	{"oneOf by type", `{"oneOf":[{"type":"string"},{"type":"array"},{"type":["number","null"]}]}`, []string{`"a"`, `[]`, `1`, `null`}, nil, []string{`{}`, `true`}},
	{"oneOf by tag", `{"oneOf":[{"type":"object","properties":{"op":{"const":"add"},"n":{"type":"integer"}},"required":["op","n"]},
		{"type":"object","properties":{"op":{"enum":["drop","keep"]}},"required":["op"]}]}`,
		[]string{`{"op":"add","n":1}`, `{"op":"drop"}`, `{"op":"keep"}`}, nil, []string{`{"op":"add"}`, `{"op":"x"}`, `{}`}},
	{"oneOf by an optional tag", `{"oneOf":[{"type":"object","properties":{"op":{"const":"add"},"n":{"const":1}}},{"type":"object","properties":{"op":{"const":"drop"}},"required":["op"]}]}`,
		[]string{`{}`, `{"n":1}`, `{"op":"add","n":1}`, `{"op":"drop"}`}, nil, []string{`{"op":"x"}`}},
	{"oneOf by values", `{"oneOf":[{"enum":[1,["a",{"b":2}]]},{"const":["a",{"b":3}]},{"anyOf":[{"const":2},{"const":{"b":1,"c":2}}]}]}`,
		[]string{`1`, `["a",{"b":2}]`, `["a",{"b":3}]`, `2`, `{"b":1,"c":2}`}, []string{`1.0`, `{"c":2,"b":1}`}, []string{`["a"]`, `3`}},
	{"oneOf by a property", `{"oneOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false},
		{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],"additionalProperties":false}]}`,
		[]string{`{"a":1}`, `{"b":1}`}, nil, []string{`{}`, `{"a":1,"b":1}`}},
	{"allOf of one", `{"description":"d","allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"type":"integer"}}}`, []string{`1`}, nil, []string{`"1"`}},
	{"ref", `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"t","type":"object","properties":{"a":{"$ref":"#/definitions/n~1%20x"},"b":{"$ref":"#/properties/a"}},
		"required":["a","b"],"definitions":{"n/ x":{"type":"integer","examples":[1]}}}`, []string{`{"a":1,"b":2}`}, nil, []string{`{"a":1,"b":"2"}`}},
	{"list", `{"$ref":"#/$defs/list","$defs":{"list":{"anyOf":[{"type":"null"},{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/list"}},"required":["v","next"]}]}}}`,
		[]string{`null`, `{"v":1,"next":null}`, `{"v":1,"next":{"v":2,"next":{"v":3,"next":null}}}`}, []string{nested(`{"v":1,"next":`, `null`, `}`, 17)},
		[]string{`{"v":1}`, `{"v":1,"next":{}}`}},
	{"tree", `{"type":"object","properties":{"v":{"type":"integer"},"sub":{"type":"array","items":{"$ref":"#"}}},"required":["v"]}`,
		[]string{`{"v":1}`, `{"v":1,"sub":[]}`, `{"v":1,"sub":[{"v":2},{"v":3,"sub":[{"v":4}]}]}`}, nil, []string{`{"v":1,"sub":[{}]}`, `{"sub":[]}`}},
}

func nested(before, inner, after string, n int) string {
	return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
}

func TestSuite(t *testing.T) {
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) {
			a, o := acceptor(t, c.schema), mustOracle(t, c.schema)
			check := func(texts []string, said, valid bool) {
				for _, text := range texts {
					if got := a.accepts(text); got != said {
						t.Errorf("%s is accepted: %v, want %v", text, got, said)
					}
					if got := o.accepts(text); got != valid {
						t.Errorf("%s is valid: %v, want %v (the table is wrong)", text, got, valid)
					}
				}
			}
			check(c.said, true, true)
			check(c.unsaid, false, true)
			check(c.no, false, false)
		})
	}
}

// nullable is OpenAPI's, which the library does not know.
func TestNullable(t *testing.T) {
	for schema, texts := range map[string][]string{
		`{"type":"string","nullable":true}`:                              {`"x"`, `null`},
		`{"enum":["a"],"nullable":true}`:                                 {`"a"`, `null`},
		`{"$ref":"#/$defs/x","nullable":true,"$defs":{"x":{"const":1}}}`: {`1`, `null`},
		`{"type":"string","nullable":false}`:                             {`"x"`},
	} {
		a := acceptor(t, schema)
		for _, text := range texts {
			if !a.accepts(text) {
				t.Errorf("%s does not accept %s", schema, text)
			}
		}
		if a.accepts("null") != strings.Contains(schema, "true") || a.accepts("2") {
			t.Errorf("%s accepts what it should not, or null not", schema)
		}
	}
}

// Every whole and every two-digit decimal around the bounds is accepted exactly if it lies within. It catches a wrong
// digit at a tight bound, and a wrong number of digits.
func TestNumbersNearBounds(t *testing.T) {
	for _, c := range []struct{ low, high string }{
		{"0", "1"}, {"-1.25", "0.75"}, {"9.99", "10.01"}, {"-10.1", "-9.9"}, {"0.05", "0.95"}, {"-0.01", "0.01"}, {"-3", "-3"}, {"1.999", "2.001"}, {"95", "105"},
	} {
		for _, open := range []bool{false, true} {
			names := []string{"minimum", "maximum"}
			if open {
				names = []string{"exclusiveMinimum", "exclusiveMaximum"}
			}
			keywords := fmt.Sprintf(`"%s":%s,"%s":%s`, names[0], c.low, names[1], c.high)
			low, _ := new(big.Rat).SetString(c.low)
			high, _ := new(big.Rat).SetString(c.high)
			inside := func(x *big.Rat) bool {
				l, h := x.Cmp(low), x.Cmp(high)
				return l > 0 && h < 0 || !open && l >= 0 && h <= 0
			}
			a := anyNumber(t, `{"type":"number",`+keywords+`}`)
			whole := anyNumber(t, `{"type":"integer",`+keywords+`}`)
			for i := int64(-1500); i <= 12000; i++ {
				x := big.NewRat(i, 100)
				if text := x.FloatString(2); a.accepts(text) != inside(x) && x.Sign() != 0 {
					t.Fatalf("%s: %s is accepted: %v", keywords, text, a.accepts(text))
				}
				if text := x.FloatString(0); x.IsInt() && whole.accepts(text) != inside(x) {
					t.Fatalf("integer %s: %s is accepted: %v", keywords, text, whole.accepts(text))
				}
			}
		}
	}
}

// anyNumber is the automaton of a schema that may have no value.
func anyNumber(t *testing.T, schema string) *automaton {
	t.Helper()
	return acceptor(t, `{"anyOf":[{"const":"none"},`+schema+`]}`)
}
