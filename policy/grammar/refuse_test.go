package grammar

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// refused is schemas with the place and the reason that the error has to name.
var refused = []struct{ schema, where, what string }{
	{`{`, "", "not JSON"},
	{`{"a":1} 2`, "", "not JSON"},
	{`[]`, "#:", "object, true or false"},
	{"\"\xff\"", "", "UTF-8"},
	{`{"type":"string","type":"null"}`, "", `"type" stands twice`},
	{`{"type":"string","pattern":"a+"}`, "#/pattern:", `"pattern" is not supported`},
	{`{"type":"object","properties":{"a/b":{"format":"date"}}}`, "#/properties/a~1b/format:", `"format"`},
	{`{"type":"array","items":{"not":{}}}`, "#/items/not:", `"not"`},
	{`{"type":"array","uniqueItems":true}`, "#/uniqueItems:", `"uniqueItems"`},
	{`{"type":"integer","multipleOf":2}`, "#/multipleOf:", `"multipleOf"`},
	{`{"type":"object","requird":[]}`, "#/requird:", `"requird"`},
	{`{"anyOf":[{"type":"null"},{"if":{}}]}`, "#/anyOf/1/if:", `"if"`},
	{`{"$ref":"#/$defs/x","$defs":{"x":{"type":"string","patternProperties":{}}}}`, "#/$defs/x/patternProperties:", `"patternProperties"`},
	{`{"allOf":[{},{}]}`, "#/allOf:", "allOf of several"},
	{`{"$ref":"other.json"}`, "#/$ref:", "same document"},
	{`{"$ref":"#/$defs/x"}`, "#/$ref:", "nothing at"},
	{`{"$ref":"#/allOf/1"}`, "#/$ref:", "nothing at"},
	{`{"$ref":"#x"}`, "#/$ref:", "same document"},
	{`{"properties":{"a":{"$id":"x"}}}`, "#/properties/a/$id:", "root only"},
	{`{"type":"float"}`, "#/type:", "one of null, boolean"},
	{`{"type":[]}`, "#/type:", "empty"},
	{`{"type":3}`, "#/type:", "one of"},
	{`{"minLength":-1}`, "#/minLength:", "whole number"},
	{`{"minItems":1.5}`, "#/minItems:", "whole number"},
	{`{"maximum":"3"}`, "#/maximum:", "number"},
	{`{"minimum":0,"exclusiveMinimum":true}`, "#/exclusiveMinimum:", "number"},
	{`{"maximum":1e999}`, "", "too large"},
	{`{"maximum":1e1000000000}`, "", "too large"},
	{`{"enum":1}`, "#/enum:", "array"},
	{`{"required":"a"}`, "#/required:", "array"},
	{`{"required":[1]}`, "#/required:", "string"},
	{`{"properties":[]}`, "#/properties:", "object"},
	{`{"properties":{"a":1}}`, "#/properties/a:", "object, true or false"},
	{`{"nullable":1}`, "#/nullable:", "boolean"},
	{`{"anyOf":[]}`, "#/anyOf:", "0 alternatives"},
	{`{"enum":[1],"const":1}`, "#/const:", "const beside enum"},
	{`{"enum":[1],"minimum":0}`, "#:", "beside enum"},
	{`{"anyOf":[{}],"type":"string"}`, "#:", "type beside anyOf"},
	{`{"$ref":"#/$defs/a","properties":{},"$defs":{"a":{}}}`, "#:", "beside $ref"},
	{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, "#:", "alternatives 0 and 1"},
	{`{"oneOf":[{"type":"string"},{"const":"a"}]}`, "#:", "alternatives 0 and 1"},
	{`{"oneOf":[{"const":1},{"const":2},{"enum":[3,1.0]}]}`, "#:", "alternatives 0 and 2"},
	{`{"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"type":"null"}]}`, "#:", "alternatives 0 and 1"},                                 // an object without type accepts null
	{`{"oneOf":[{"type":"object","properties":{"a":{"const":1}}},{"type":"object","properties":{"a":{"const":2}}}]}`, "#:", "alternatives 0 and 1"}, // {} meets both
	{`{"oneOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"type":"object","properties":{"b":{}},"additionalProperties":false}]}`, "#:", "alternatives 0 and 1"},
	{`{"oneOf":[{"enum":["x"],"nullable":true},{"const":null}]}`, "#:", "alternatives 0 and 1"},
	{`{"oneOf":[{"type":"string","nullable":true},{"type":"integer","nullable":true}]}`, "#:", "alternatives 0 and 1"},
	{`{"type":"array","items":{"oneOf":[{},{}]}}`, "#/items:", "alternatives 0 and 1"},
	{`{"oneOf":[{"$ref":"#"},{"$ref":"#"}]}`, "", "no value"},
	{`false`, "", "no value"},
	{`{"enum":[]}`, "", "no value"},
	{`{"type":"string","enum":[1]}`, "", "no value"},
	{`{"type":"integer","minimum":3,"maximum":2}`, "", "no value"},
	{`{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":1}`, "", "no value"},
	{`{"type":"integer","minimum":1e20}`, "", "no value"},
	{`{"type":"string","minLength":3,"maxLength":2}`, "", "no value"},
	{`{"type":"array","items":false,"minItems":1}`, "", "no value"},
	{`{"$ref":"#"}`, "", "no value"},
	{`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, "", "no value"},
}

// What is not supported is refused by the name of the keyword and the place where it stands.
func TestCompileRefuses(t *testing.T) {
	for _, c := range refused {
		_, err := Compile(json.RawMessage(c.schema))
		if err == nil || !strings.Contains(err.Error(), c.where) || !strings.Contains(err.Error(), c.what) {
			t.Errorf("%s: error %v, want one with %q and %q", c.schema, err, c.where, c.what)
		}
	}
}

// Schemas of any size are refused before they take time or memory.
func TestCompileRefusesLargeSchemas(t *testing.T) {
	properties := func(n int, schema string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"p%d":`+schema, i, i, i))
		}
		return `{"type":"object","properties":{` + strings.Join(list, ",") + `}}`
	}
	var defs []string
	for i := range 40 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"type":"array","items":{"$ref":"#/$defs/d%d"},"maxItems":%d},{"const":%d}]}`, i, (i+1)%40, (i*7)%40, i, i))
	}
	for name, c := range map[string]struct{ schema, want string }{
		"bytes":    {`{"description":"` + strings.Repeat("x", maxSchemaBytes) + `"}`, "bytes"},
		"nesting":  {nested(`{"items":`, `{}`, `}`, 100), "nested"},
		"numbers":  {properties(2500, `{"type":"number","minimum":%d.%d}`), "too large"},
		"optional": {properties(600, `{"maxLength":%d,"minLength":%d,"type":"string"}`), "too large"},
		"refs":     {`{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `}}`, ""},
	} {
		_, err := Compile(json.RawMessage(c.schema))
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
