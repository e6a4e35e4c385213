package grammar

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// family makes schemas, and texts in the style that is said which mostly meet them.
type family struct {
	*rand.Rand
	closed bool // objects say that they have no other properties, instead of leaving it open
}

func newFamily(seed uint64) family { return family{Rand: rand.New(rand.NewPCG(seed, 7))} }

// others is what an object says of other properties if it does not allow any.
func (f family) others() string {
	if f.closed {
		return `,"additionalProperties":false`
	}
	return ""
}

func (f family) chance(p float64) bool { return f.Float64() < p }

func pick[T any](f family, list ...T) T { return list[f.IntN(len(list))] }

// tree is a definition that contains itself.
const tree = `{"type":"object","properties":{"v":{"type":"integer","minimum":0,"maximum":20},"sub":{"type":"array","items":{"$ref":"#/$defs/tree"},"maxItems":2}},"required":["v"],"additionalProperties":false}`

// document is a whole schema.
func (f family) document() string {
	return `{"$defs":{"tree":` + tree + `},` + f.schema(3)[1:]
}

// schema is one that nests at most depth deep.
func (f family) schema(depth int) string {
	kinds := []func(int) string{f.scalar, f.scalar, f.scalar}
	if depth > 0 {
		kinds = []func(int) string{f.scalar, f.array, f.object, f.object, f.any, f.tagged}
	}
	return pick(f, kinds...)(depth - 1)
}

func (f family) scalar(int) string {
	switch f.IntN(9) {
	case 0:
		return `{"type":"null"}`
	case 1:
		return `{"type":"boolean"}`
	case 2:
		return `{"enum":[` + strings.Join([]string{quote(f.text(3)), f.decimal(3000), "true", quote(f.text(1)), `[1,{"k":null}]`}[:1+f.IntN(5)], ",") + `]}`
	case 3:
		return `{"type":["string","null","integer"],"maxLength":2,"minimum":-1}`
	case 4, 5:
		return `{"type":"string"` + f.limits("Length", 4) + `}`
	}
	kind, sides := pick(f, "integer", "number"), ""
	low := f.IntN(4000) - 2000
	if f.chance(0.6) {
		sides += fmt.Sprintf(`,"%s":%s`, pick(f, "minimum", "exclusiveMinimum"), thousandths(low))
	}
	if f.chance(0.6) {
		sides += fmt.Sprintf(`,"%s":%s`, pick(f, "maximum", "exclusiveMaximum"), thousandths(low+f.IntN(4000)))
	}
	return `{"type":"` + kind + `"` + sides + `}`
}

// limits are min and max keywords.
func (f family) limits(of string, most int) string {
	low, out := f.IntN(most), ""
	if f.chance(0.5) {
		out += fmt.Sprintf(`,"min%s":%d`, of, low)
	}
	if f.chance(0.6) {
		out += fmt.Sprintf(`,"max%s":%d`, of, low+f.IntN(most))
	}
	return out
}

func (f family) array(depth int) string {
	return `{"type":"array","items":` + f.schema(depth) + f.limits("Items", 3) + `}`
}

func (f family) object(depth int) string {
	var properties, required []string
	for i, name := range []string{"id", "score", "a", "é", "reason"}[:f.IntN(6)] {
		properties = append(properties, quote(name)+":"+f.schema(depth-i/2))
		if f.chance(0.5) {
			required = append(required, quote(name))
		}
	}
	extra := pick(f, f.others(), f.others(), `,"additionalProperties":false`, `,"additionalProperties":`+f.scalar(0))
	return `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `]` + extra + `}`
}

func (f family) any(depth int) string {
	branches := []string{f.schema(depth), f.schema(depth)}
	if f.chance(0.3) {
		branches = append(branches, `{"$ref":"#/$defs/tree"}`)
	}
	return `{"anyOf":[` + strings.Join(branches, ",") + `]}`
}

func (f family) tagged(depth int) string {
	branch := func(tag string) string {
		return `{"type":"object","properties":{"op":{"const":"` + tag + `"},"arg":` + f.schema(depth) + `},"required":["op"]` + f.others() + `}`
	}
	return `{"oneOf":[` + branch("add") + "," + branch("adder") + `,{"type":"null"}]}`
}

// text is a few characters, quotes and those of several bytes among them.
func (f family) text(most int) string {
	out := ""
	for range f.IntN(most + 1) {
		out += pick(f, "a", "b", "é", "漢", "😀", `"`, `\`, "\n", "/", "<", " ", "\x7f")
	}
	return out
}

func thousandths(n int) string {
	s := strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
	if s == "-0" {
		return "0"
	}
	return s
}

func (f family) decimal(most int) string { return thousandths(f.IntN(2*most) - most) }

// instance is a text for the schema s, of the schema root: near its limits, and now and then beside them.
func (f family) instance(root, s *value) string {
	if f.chance(0.04) {
		return pick(f, "null", "true", "7", "-0.25", `"x"`, "[]", "{}")
	}
	for _, form := range []string{"enum", "anyOf", "oneOf"} {
		if list := s.find(form); list != nil && form == "enum" {
			return spaced(f, pick(f, list.items...))
		} else if list != nil {
			return f.instance(root, pick(f, list.items...))
		}
	}
	if v := s.find("const"); v != nil {
		return spaced(f, v)
	}
	if s.find("$ref") != nil {
		return f.instance(root, root.find("$defs").find("tree"))
	}
	kind := s.find("type")
	if kind.kind == kindArray {
		kind = pick(f, kind.items...)
	}
	switch kind.text {
	case kindNull:
		return "null"
	case kindBoolean:
		return pick(f, "true", "false")
	case kindInteger, kindNumber:
		return f.near(s, kind.text)
	case kindString:
		return f.characters(s)
	case kindArray:
		var items []string
		for range f.around(s, "Items") {
			items = append(items, f.instance(root, s.find("items")))
		}
		return "[" + strings.Join(items, f.space(",")) + "]"
	}
	return f.members(root, s)
}

func (f family) space(after string) string { return after + pick(f, "", " ") }

// around is a count that is mostly within limits.
func (f family) around(s *value, of string) int {
	low, high := 0, 4
	if v := s.find("min" + of); v != nil {
		low, _ = v.count()
		high = low + 2
	}
	if v := s.find("max" + of); v != nil {
		high, _ = v.count()
	}
	n := low + f.IntN(max(high-low, 0)+1)
	if f.chance(0.1) {
		n = max(0, pick(f, low-1, high+1))
	}
	return n
}

// near is a number at a bound, beside it, or anywhere.
func (f family) near(s *value, kind string) string {
	base := 0
	for _, name := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		if v := s.find(name); v != nil && f.chance(0.5) {
			x, _ := strconv.ParseFloat(v.text, 64)
			base = int(x*1000 + 0.5)
			if x < 0 {
				base = int(x*1000 - 0.5)
			}
		}
	}
	n := base + pick(f, 0, 1, -1, 500, -500, 1000, -1000, f.IntN(4000)-2000)
	if kind == kindInteger {
		n = n / 1000 * 1000
	}
	return thousandths(n)
}

func (f family) characters(s *value) string {
	out := `"`
	for range f.around(s, "Length") {
		out += pick(f, "a", "0", "é", "漢", "😀", `\"`, `\\`, `\n`, `\/`, `\u00e9`, `\uD83D\uDE00`, " ", "{", "\x7f")
	}
	return out + `"`
}

// members is an object with the properties in order.
func (f family) members(root, s *value) string {
	var out []string
	names := map[string]bool{}
	for _, m := range s.find("properties").members {
		names[m.name] = true
		needed := s.find("required") != nil && strings.Contains(keys(s.find("required")), quote(m.name))
		if p := 0.5; f.chance(p) || needed && f.chance(0.95) {
			out = append(out, f.space(quote(m.name)+":")+f.instance(root, m.value))
		}
	}
	if extra := s.find("additionalProperties"); extra != nil && extra.kind == kindObject {
		for _, name := range []string{"x", "i", "idx", "è", "", "sc ore"} {
			if f.chance(0.2) && !names[name] {
				out = append(out, f.space(quote(name)+":")+f.instance(root, extra))
			}
		}
	}
	return "{" + strings.Join(out, f.space(",")) + "}"
}

func keys(list *value) string { return list.key() }

// spaced is a value as JSON.
func spaced(f family, v *value) string {
	var parts []string
	switch v.kind {
	case kindString:
		return quote(v.text)
	case kindArray:
		for _, item := range v.items {
			parts = append(parts, spaced(f, item))
		}
		return "[" + strings.Join(parts, f.space(",")) + "]"
	case kindObject:
		for _, m := range v.members {
			parts = append(parts, f.space(quote(m.name)+":")+spaced(f, m.value))
		}
		return "{" + strings.Join(parts, f.space(",")) + "}"
	}
	return v.text
}
