package configs

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// decode reads n as a value of type t, converting nothing that would lose anything.
func decode(n *yaml.Node, t reflect.Type) (reflect.Value, error) {
	if n.Kind == yaml.AliasNode {
		return reflect.Value{}, errors.New("anchors and aliases are not supported: write the value out")
	}
	if isNull(n) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
			return reflect.Zero(t), nil
		}
		return reflect.Value{}, errors.New("has no value: give one, or remove the key")
	}
	switch t.Kind() {
	case reflect.Pointer:
		v, err := decode(n, t.Elem())
		if err != nil {
			return v, err
		}
		p := reflect.New(t.Elem())
		p.Elem().Set(v)
		return p, nil
	case reflect.Slice:
		return decodeList(n, t)
	case reflect.Map:
		return decodeMap(n, t)
	case reflect.Struct:
		return decodeStruct(n, t)
	case reflect.Interface:
		x, err := decodeAny(n)
		if err != nil || x == nil {
			return reflect.Zero(t), err
		}
		return reflect.ValueOf(x), nil
	}
	return decodeScalar(n, t)
}

func decodeScalar(n *yaml.Node, t reflect.Type) (reflect.Value, error) {
	v := reflect.New(t).Elem()
	if n.Kind != yaml.ScalarNode {
		return v, wants(n, t)
	}
	tag := n.ShortTag()
	switch {
	case t.Kind() == reflect.String && tag == "!!str":
		if !utf8.ValidString(n.Value) {
			return v, errors.New("is not valid UTF-8")
		}
		v.SetString(n.Value)
	case t.Kind() == reflect.Bool && tag == "!!bool":
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case v.CanInt() && (tag == "!!int" || tag == "!!float"):
		i, err := whole(n)
		if err == nil && v.OverflowInt(i) {
			err = fmt.Errorf("%s is too large", n.Value)
		}
		if err != nil {
			return v, err
		}
		v.SetInt(i)
	case v.CanFloat() && (tag == "!!int" || tag == "!!float"):
		x, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return v, fmt.Errorf("%s is not a finite number", n.Value)
		}
		v.SetFloat(x)
	default:
		return v, wants(n, t)
	}
	return v, nil
}

// whole reads a whole number, also one written as 1e3 or 3.0. A number with a leading zero, which YAML takes as octal, is refused.
func whole(n *yaml.Node) (int64, error) {
	text := strings.ReplaceAll(n.Value, "_", "")
	if digits := strings.TrimLeft(text, "+-"); len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return 0, fmt.Errorf("%s begins with a 0: remove it", n.Value)
	}
	if i, err := strconv.ParseInt(text, 0, 64); err == nil {
		return i, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x != math.Trunc(x) {
		return 0, fmt.Errorf("%s is not a whole number", n.Value)
	}
	if math.Abs(x) > 1<<53 {
		return 0, fmt.Errorf("%s is too large", n.Value)
	}
	return int64(x), nil
}

// decodeList reads a list; a single scalar is a list of one.
func decodeList(n *yaml.Node, t reflect.Type) (reflect.Value, error) {
	items := n.Content
	switch n.Kind {
	case yaml.ScalarNode:
		items = []*yaml.Node{n}
	case yaml.MappingNode:
		return reflect.Value{}, wants(n, t)
	}
	list := reflect.Zero(t) // an empty list is nil, so that configurations compare
	for i, item := range items {
		v, err := decode(item, t.Elem())
		if err != nil {
			return list, fmt.Errorf("item %d: %w", i+1, err)
		}
		list = reflect.Append(list, v)
	}
	return list, nil
}

func decodeMap(n *yaml.Node, t reflect.Type) (reflect.Value, error) {
	if n.Kind != yaml.MappingNode {
		return reflect.Value{}, wants(n, t)
	}
	if len(n.Content) == 0 {
		return reflect.Zero(t), nil
	}
	m := reflect.MakeMap(t)
	err := eachPair(n, func(key string, value *yaml.Node) error {
		v, err := decode(value, t.Elem())
		if err == nil {
			m.SetMapIndex(reflect.ValueOf(key), v)
		}
		return err
	})
	return m, err
}

// decodeStruct reads an item of a list such as reward.parts: keys that it does not have are errors.
func decodeStruct(n *yaml.Node, t reflect.Type) (reflect.Value, error) {
	p := reflect.New(t)
	v := p.Elem()
	if n.Kind != yaml.MappingNode {
		return v, wants(n, t)
	}
	if d, ok := p.Interface().(interface{ setDefaults() }); ok {
		d.setDefaults()
	}
	var keys []string
	for i := range t.NumField() {
		keys = append(keys, yamlKey(t.Field(i)))
	}
	err := eachPair(n, func(key string, value *yaml.Node) error {
		i := slices.Index(keys, key)
		if i < 0 {
			return fmt.Errorf("unknown key%s", didYouMean(key, keys))
		}
		x, err := decode(value, t.Field(i).Type)
		if err == nil {
			v.Field(i).Set(x)
		}
		return err
	})
	return v, err
}

// decodeAny reads whatever stands there: nil, bool, int, float64, string, []any, map[string]any.
func decodeAny(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			x, err := decodeAny(item)
			if err != nil {
				return nil, fmt.Errorf("item %d: %w", i+1, err)
			}
			list[i] = x
		}
		return list, nil
	case yaml.MappingNode:
		m := map[string]any{}
		err := eachPair(n, func(key string, value *yaml.Node) (err error) {
			m[key], err = decodeAny(value)
			return err
		})
		return m, err
	case yaml.ScalarNode:
		return decodeAnyScalar(n)
	}
	return nil, errors.New("anchors and aliases are not supported: write the value out")
}

func decodeAnyScalar(n *yaml.Node) (any, error) {
	var t reflect.Type
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		t = reflect.TypeFor[bool]()
	case "!!int":
		t = reflect.TypeFor[int]()
	case "!!float":
		t = reflect.TypeFor[float64]()
	case "!!str", "!!timestamp":
		return n.Value, nil
	default:
		return nil, fmt.Errorf("%s is of a kind that is not supported (%s)", n.Value, n.ShortTag())
	}
	v, err := decodeScalar(n, t)
	if err != nil {
		return nil, err
	}
	return v.Interface(), nil
}

// eachPair calls f for the pairs of a mapping, refusing keys that are no text or stand twice.
func eachPair(n *yaml.Node, f func(key string, value *yaml.Node) error) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
			return fmt.Errorf("line %d: a key must be plain text", k.Line)
		}
		if seen[k.Value] {
			return fmt.Errorf("%s stands twice: remove one", k.Value)
		}
		seen[k.Value] = true
		if err := f(k.Value, value); err != nil {
			return fmt.Errorf("%s: %w", k.Value, err)
		}
	}
	return nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// wants is the error for a value of the wrong kind.
func wants(n *yaml.Node, t reflect.Type) error {
	got := fmt.Sprintf("%q", n.Value)
	switch n.Kind {
	case yaml.MappingNode:
		got = "a mapping"
	case yaml.SequenceNode:
		got = "a list"
	}
	hint := ""
	if t.Kind() == reflect.String && n.Kind == yaml.ScalarNode {
		got, hint = n.Value, ": write it in quotes"
	}
	want := typeName(t)
	if k := elem(t).Kind(); k != reflect.Bool && k != reflect.String {
		want = "a " + want
	}
	return fmt.Errorf("is %s, want %s%s", got, want, hint)
}

// elem is what a pointer type points to.
func elem(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// typeName is what people call a type.
func typeName(t reflect.Type) string {
	t = elem(t)
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map, reflect.Struct:
		return "mapping"
	case reflect.Interface:
		return "value"
	}
	return "whole number"
}
