package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// fields is a JSON object of a configuration file. Reading a key of the wrong type sets err, once.
type fields struct {
	values map[string]any // numbers are json.Number
	err    error
}

func parseFields(text []byte) (*fields, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	f := &fields{}
	if err := d.Decode(&f.values); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if f.values == nil {
		return nil, errors.New("not a JSON object: null")
	}
	return f, nil
}

// has reports whether the key is there and not null.
func (f *fields) has(key string) bool { return f.values[key] != nil }

func (f *fields) fail(key, want string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: %v instead of %s", key, f.values[key], want)
	}
}

// must is a whole number that has to be there.
func (f *fields) must(key string) int {
	if !f.has(key) && f.err == nil {
		f.err = fmt.Errorf("%s is missing", key)
	}
	return f.int(key, 0)
}

func (f *fields) int(key string, otherwise int) int {
	if !f.has(key) {
		return otherwise
	}
	x := f.float(key, 0)
	if x != math.Trunc(x) || math.Abs(x) > 1<<40 {
		f.fail(key, "a whole number")
		return otherwise
	}
	return int(x)
}

func (f *fields) float(key string, otherwise float64) float64 {
	if !f.has(key) {
		return otherwise
	}
	if n, ok := f.values[key].(json.Number); ok {
		if x, err := n.Float64(); err == nil {
			return x
		}
	}
	f.fail(key, "a number")
	return otherwise
}

func (f *fields) bool(key string, otherwise bool) bool {
	if !f.has(key) {
		return otherwise
	}
	b, ok := f.values[key].(bool)
	if !ok {
		f.fail(key, "true or false")
	}
	return b
}

func (f *fields) text(key, otherwise string) string {
	if !f.has(key) {
		return otherwise
	}
	s, ok := f.values[key].(string)
	if !ok {
		f.fail(key, "a string")
	}
	return s
}

// list is a value or a list of values; null is none.
func (f *fields) list(key string) []any {
	if !f.has(key) {
		return nil
	}
	if list, ok := f.values[key].([]any); ok {
		return list
	}
	return []any{f.values[key]}
}

// tokens is a token id or a list of them; -1 and null are none.
func (f *fields) tokens(key string) []int32 {
	var ids []int32
	for _, v := range f.list(key) {
		n, ok := v.(json.Number)
		id, err := n.Int64()
		if ok && err == nil && id == NoToken {
			continue
		}
		if !ok || err != nil || id < 0 || id > math.MaxInt32 {
			f.fail(key, "a token id or a list of them")
			return nil
		}
		ids = append(ids, int32(id))
	}
	return ids
}

// token is a token id, NoToken if there is none.
func (f *fields) token(key string) int32 {
	switch ids := f.tokens(key); len(ids) {
	case 0:
		return NoToken
	case 1:
		return ids[0]
	}
	f.fail(key, "one token id")
	return NoToken
}

func (f *fields) object(key string) *fields {
	if !f.has(key) {
		return &fields{}
	}
	m, ok := f.values[key].(map[string]any)
	if !ok {
		f.fail(key, "an object")
	}
	return &fields{values: m}
}

// arch is the family that model_type and architectures agree on.
func (f *fields) arch() (Arch, error) {
	kind, classes := f.text("model_type", ""), f.list("architectures")
	if f.err != nil {
		return "", f.err
	}
	var known []string
	for _, a := range Archs() {
		named := slices.Contains(classes, any(a.Causal()))
		if (kind == string(a) || kind == "") && named || kind == string(a) && len(classes) == 0 {
			return a, nil
		}
		known = append(known, fmt.Sprintf("%s (model_type %q)", a.Causal(), a))
	}
	return "", fmt.Errorf("architecture %v (model_type %q) is not supported; supported: %s", classes, kind, strings.Join(known, ", "))
}

// refuse names what a configuration asks for and this package does not compute.
func (f *fields) refuse() error {
	if f.has("quantization_config") {
		method := f.object("quantization_config").values["quant_method"]
		return fmt.Errorf("quantization_config (quant_method %v) is not supported: use the unquantised model in float32, bfloat16 or float16 (dtype int8 or int4 quantises it), or a GGUF file", method)
	}
	if act := f.text("hidden_act", "silu"); act != "silu" && f.err == nil {
		return fmt.Errorf("hidden_act %q is not supported; supported: silu", act)
	}
	if f.bool("use_sliding_window", false) {
		return errors.New("use_sliding_window true is not supported; only full attention is")
	}
	for _, kind := range f.list("layer_types") {
		if kind != any("full_attention") {
			return fmt.Errorf("layer_types has %v; only full_attention is supported", kind)
		}
	}
	if p := f.float("attention_dropout", 0); p != 0 {
		return fmt.Errorf("attention_dropout %v is not supported; set it to 0", p)
	}
	return f.err
}
