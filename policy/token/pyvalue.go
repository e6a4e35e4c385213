package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// list is a Python list in a template: gonja does not find the element -n of a list of n.
type list []any

// GetItem implements exec.ItemGetter.
func (l list) GetItem(key any) (*exec.Value, bool) {
	i, ok := key.(int)
	if ok && i < 0 {
		i += len(l)
	}
	if !ok || i < 0 || i >= len(l) {
		return exec.AsValue(nil), false
	}
	return exec.ToValue(l[i]), true
}

// String is Python's repr.
func (l list) String() string { return "[" + reprs(l) + "]" }

// tuple is a Python tuple of two or more.
type tuple []any

// String is Python's repr.
func (t tuple) String() string { return "(" + reprs(t) + ")" }

func reprs(items []any) string {
	out := make([]string, len(items))
	for i, x := range items {
		out[i] = repr(exec.ToValue(x))
	}
	return strings.Join(out, ", ")
}

// repr is Python's repr of a value.
func repr(v *exec.Value) string {
	switch {
	case v.IsNil():
		return "None"
	case v.IsString():
		s := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(v.String())
		if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
			return `"` + s + `"`
		}
		return "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
	case v.IsFloat():
		return pyFloat(v.Float())
	case v.IsDict():
		var out []string
		for _, p := range pairs(v, true, true) {
			out = append(out, repr(exec.ToValue(p.(tuple)[0]))+": "+repr(exec.ToValue(p.(tuple)[1])))
		}
		return "{" + strings.Join(out, ", ") + "}"
	}
	return v.String()
}

// pyFloat writes a float as Python does.
func pyFloat(f float64) string {
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	case f != 0 && (math.Abs(f) < 1e-4 || math.Abs(f) >= 1e16):
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// pyValue reads one JSON value for a template: objects keep the order of their keys, whole numbers stay whole, and each
// string, keys included, goes through text.
func pyValue(d *json.Decoder, text func(string) string) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch x := t.(type) {
	case string:
		return text(x), nil
	case json.Number:
		return pyNumber(x)
	case json.Delim:
		if x == '[' {
			out := list{}
			for d.More() {
				item, err := pyValue(d, text)
				if err != nil {
					return nil, err
				}
				out = append(out, item)
			}
			_, err = d.Token()
			return out, err
		}
		return pyDict(d, text)
	}
	return t, nil // true, false, nil
}

// pyDict reads the rest of an object. A key that comes again replaces the value in its old place.
func pyDict(d *json.Decoder, text func(string) string) (*exec.Dict, error) {
	out, at := exec.NewDict(), map[string]int{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := pyValue(d, text)
		if err != nil {
			return nil, err
		}
		key := text(t.(string))
		i, ok := at[key]
		if !ok {
			i = len(out.Pairs)
			at[key] = i
			out.Pairs = append(out.Pairs, &exec.Pair{Key: exec.AsValue(key)})
		}
		out.Pairs[i].Value = exec.AsValue(value)
	}
	_, err := d.Token()
	return out, err
}

func pyNumber(n json.Number) (any, error) {
	if i, err := strconv.Atoi(string(n)); err == nil {
		return i, nil
	}
	if i, ok := new(big.Int).SetString(string(n), 10); ok {
		return i, nil
	}
	return n.Float64()
}

// decodeValue reads a JSON document for a template.
func decodeValue(raw []byte, text func(string) string) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return pyValue(d, text)
}

// dumper writes values as json.dumps does.
type dumper struct {
	out       strings.Builder
	indent    string // of one level; none: all on one line
	item, key string // separators
	ascii     bool
	err       error
}

func (d *dumper) value(v *exec.Value, level int) {
	switch big, isBig := v.Interface().(*big.Int); {
	case v.IsNil():
		d.out.WriteString("null")
	case isBig:
		d.out.WriteString(big.String())
	case v.IsBool():
		d.out.WriteString(strconv.FormatBool(v.Bool()))
	case v.IsInteger():
		d.out.WriteString(strconv.Itoa(v.Integer()))
	case v.IsFloat():
		d.out.WriteString(pyFloat(v.Float()))
	case v.IsString():
		d.text(v.String())
	case v.IsList():
		d.items('[', ']', v.Len(), level, func(i int) { d.value(v.Index(i), level+1) })
	case v.IsDict():
		keys := v.Keys()
		d.items('{', '}', len(keys), level, func(i int) {
			d.text(keys[i].String())
			d.out.WriteString(d.key)
			item, _ := v.GetItem(keys[i].String())
			d.value(item, level+1)
		})
	default:
		d.err = fmt.Errorf("tojson cannot write %s", v.String())
	}
}

// items writes n items between brackets.
func (d *dumper) items(left, right byte, n, level int, item func(i int)) {
	d.out.WriteByte(left)
	for i := range n {
		if i > 0 {
			d.out.WriteString(d.item)
		}
		if d.indent != "" {
			d.out.WriteString("\n" + strings.Repeat(d.indent, level+1))
		}
		item(i)
	}
	if n > 0 && d.indent != "" {
		d.out.WriteString("\n" + strings.Repeat(d.indent, level))
	}
	d.out.WriteByte(right)
}

// text writes a string.
func (d *dumper) text(s string) {
	const short = "btnvfr" // \b is 8; JSON has no \v
	d.out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			d.out.WriteByte('\\')
			d.out.WriteRune(r)
		case r >= '\b' && r <= '\r' && r != '\v':
			d.out.WriteByte('\\')
			d.out.WriteByte(short[r-'\b'])
		case r < 0x20 || d.ascii && r >= 0x7f && r < 0x10000:
			fmt.Fprintf(&d.out, `\u%04x`, r)
		case d.ascii && r >= 0x10000:
			fmt.Fprintf(&d.out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			d.out.WriteRune(r)
		}
	}
	d.out.WriteByte('"')
}

// tojson is transformers' filter: json.dumps(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False).
func tojson(_ *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	a := arguments{args: args}
	d := &dumper{item: ", ", key: ": "}
	if v := a.value(0, "ensure_ascii"); v != nil {
		d.ascii = v.IsTrue()
	}
	if v := a.value(1, "indent"); v != nil {
		d.item, d.indent = ",", v.String()
		if v.IsInteger() {
			d.indent = strings.Repeat(" ", min(max(v.Integer(), 0), 100))
		}
	}
	if v := a.value(2, "separators"); v != nil && v.Len() == 2 {
		d.item, d.key = v.Index(0).String(), v.Index(1).String()
	}
	if v := a.value(3, "sort_keys"); v != nil && v.IsTrue() {
		return exec.AsValue(errors.New("tojson: sort_keys is not supported"))
	}
	d.value(in, 0)
	if d.err != nil {
		return exec.AsValue(d.err)
	}
	return exec.AsSafeValue(d.out.String())
}
