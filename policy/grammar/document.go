package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a schema's text. An exponent past those of a float64 would make numbers of any size.
const (
	maxSchemaBytes = 1 << 17
	maxNesting     = 64
	maxNumberText  = 400
	maxExponent    = 400
)

// Kinds of values, by the names that schemas give to types.
const (
	kindNull    = "null"
	kindBoolean = "boolean"
	kindInteger = "integer"
	kindNumber  = "number"
	kindString  = "string"
	kindArray   = "array"
	kindObject  = "object"
)

// value is a JSON value that keeps the order of its members.
type value struct {
	kind    string // never kindInteger
	text    string // a string as it is meant, other scalars as they are written
	items   []*value
	members []member
}

type member struct {
	name  string
	value *value
}

// find is the member of that name, or nil.
func (v *value) find(name string) *value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// readValue reads a JSON text.
func readValue(text []byte) (*value, error) {
	if len(text) > maxSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(text), maxSchemaBytes)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return decodeValue(dec, 0)
}

func decodeValue(dec *json.Decoder, depth int) (*value, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("it is nested more than %d deep", maxNesting)
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case nil:
		return &value{kind: kindNull, text: "null"}, nil
	case bool:
		return &value{kind: kindBoolean, text: strconv.FormatBool(t)}, nil
	case string:
		return &value{kind: kindString, text: t}, nil
	case json.Number:
		_, err := rational(t.String())
		return &value{kind: kindNumber, text: t.String()}, err
	case json.Delim:
		if t == '[' {
			return decodeArray(dec, depth)
		}
	}
	return decodeObject(dec, depth)
}

func decodeArray(dec *json.Decoder, depth int) (*value, error) {
	v := &value{kind: kindArray}
	for dec.More() {
		item, err := decodeValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	_, err := dec.Token()
	return v, err
}

func decodeObject(dec *json.Decoder, depth int) (*value, error) {
	v, seen := &value{kind: kindObject}, map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if seen[name] {
			return nil, fmt.Errorf("the name %q stands twice in one object", name)
		}
		seen[name] = true
		inner, err := decodeValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		v.members = append(v.members, member{name, inner})
	}
	_, err := dec.Token()
	return v, err
}

// rational is the exact value of a JSON number.
func rational(text string) (*big.Rat, error) {
	large := len(text) > maxNumberText
	if at := strings.IndexAny(text, "eE"); at >= 0 && !large {
		e, err := strconv.Atoi(text[at+1:])
		large = err != nil || e > maxExponent || e < -maxExponent
	}
	if large {
		return nil, fmt.Errorf("the number %.40s is too large or too long", text)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%q is no number", text)
	}
	return r, nil
}

// count is a number as a count; ok is false if it is none. Counts that no text reaches are cut.
func (v *value) count() (n int, ok bool) {
	r, err := rational(v.text)
	if v.kind != kindNumber || err != nil || !r.IsInt() || r.Sign() < 0 {
		return 0, false
	}
	if !r.Num().IsInt64() {
		return unreachable, true
	}
	return int(min(r.Num().Int64(), unreachable)), true
}

// key is the same text for values that are the same to a schema, and for no others.
func (v *value) key() string {
	var parts []string
	switch v.kind {
	case kindNumber:
		if r, err := rational(v.text); err == nil {
			return r.RatString()
		}
	case kindString:
		return strconv.Quote(v.text)
	case kindArray:
		for _, item := range v.items {
			parts = append(parts, item.key())
		}
		return "[" + strings.Join(parts, ",") + "]"
	case kindObject:
		for _, m := range v.members {
			parts = append(parts, strconv.Quote(m.name)+":"+m.value.key())
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	return v.text
}

// isA tells whether v is of a schema's type.
func (v *value) isA(kind string) bool {
	if kind == kindInteger && v.kind == kindNumber {
		r, err := rational(v.text)
		return err == nil && r.IsInt()
	}
	return v.kind == kind
}
