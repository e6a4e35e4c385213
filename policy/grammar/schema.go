package grammar

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// schema is a JSON Schema as it was read.
type schema struct {
	at       string // where it stands, a JSON pointer
	never    bool   // the schema false
	nullable bool
	form     string // $ref, allOf, anyOf, oneOf, enum or const; "": the keywords of types
	target   *schema
	branches []*schema
	values   []*value
	types    []string // declared; nil: none
	implied  []string // by the keywords of types

	listed     bool // properties is there
	properties []property
	required   []string
	extra      *schema // additionalProperties; nil: not mentioned

	items              *schema // nil: not mentioned
	minItems, maxItems int
	minLen, maxLen     int
	low, high          *bound
}

type property struct {
	name     string
	schema   *schema
	required bool
}

// bound is one side of what a number may be.
type bound struct {
	at   *big.Rat
	open bool // at itself is outside
}

// open is a count that nothing bounds.
const open = -1

// reader reads the schemas of a document.
type reader struct {
	root    *value
	known   map[string]*schema // by pointer, as soon as they are begun
	targets map[string]bool    // pointers that $ref names
}

// fault says what is wrong with a schema, and where.
func fault(at, format string, args ...any) error {
	return fmt.Errorf("json schema: #%s: "+format, append([]any{at}, args...)...)
}

// within is the pointer to a part of what at points to.
func within(at, name string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// schema reads the schema v, which stands at a pointer. One that is being read is returned as far as it is.
func (r *reader) schema(v *value, at string) (*schema, error) {
	if s := r.known[at]; s != nil {
		return s, nil
	}
	s := &schema{at: at, maxItems: open, maxLen: open}
	r.known[at] = s
	switch {
	case v.kind == kindBoolean:
		s.never = v.text == "false"
		return s, nil
	case v.kind != kindObject:
		return nil, fault(at, "a schema is an object, true or false, not %s", v.kind)
	}
	for _, m := range v.members {
		if err := r.keyword(s, m.name, m.value, within(at, m.name)); err != nil {
			return nil, err
		}
	}
	return s, s.settle()
}

// keyword reads one member of a schema.
func (r *reader) keyword(s *schema, name string, v *value, at string) error {
	switch name {
	case "$schema", "title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "$defs", "definitions":
		return nil
	case "$id":
		if s.at != "" {
			return fault(at, "$id is supported at the root only: give the schema a place in $defs and refer to that")
		}
		return nil
	case "type":
		return s.setTypes(v, at)
	case "nullable":
		s.nullable = v.text == "true"
		return expect(v, kindBoolean, at)
	case "$ref", "allOf", "anyOf", "oneOf", "enum", "const":
		return r.setForm(s, name, v, at)
	case "properties", "required", "additionalProperties":
		s.imply(kindObject)
		return r.objectKeyword(s, name, v, at)
	case "items", "minItems", "maxItems":
		s.imply(kindArray)
		return r.arrayKeyword(s, name, v, at)
	case "minLength":
		s.imply(kindString)
		return setCount(&s.minLen, v, at)
	case "maxLength":
		s.imply(kindString)
		return setCount(&s.maxLen, v, at)
	case "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum":
		s.imply(kindNumber)
		return s.setBound(name, v, at)
	}
	if strings.HasPrefix(name, "x-") {
		return nil
	}
	return fault(at, "the keyword %q is not supported: leave it out, and check what it says when the answer is there", name)
}

func (s *schema) imply(kind string) {
	if !slices.Contains(s.implied, kind) {
		s.implied = append(s.implied, kind)
	}
}

func expect(v *value, kind, at string) error {
	if v.kind != kind {
		return fault(at, "this has to be of type %s, not %s", kind, v.kind)
	}
	return nil
}

func setCount(n *int, v *value, at string) error {
	count, ok := v.count()
	if !ok {
		return fault(at, "this has to be a whole number from 0 on")
	}
	*n = count
	return nil
}

func (s *schema) setTypes(v *value, at string) error {
	list := []*value{v}
	if v.kind == kindArray {
		list = v.items
	}
	for _, t := range list {
		known := []string{kindNull, kindBoolean, kindInteger, kindNumber, kindString, kindArray, kindObject}
		if t.kind != kindString || !slices.Contains(known, t.text) {
			return fault(at, "a type is one of %s", strings.Join(known, ", "))
		}
		s.types = append(s.types, t.text)
	}
	if len(s.types) == 0 {
		return fault(at, "the list of types is empty")
	}
	return nil
}

// setBound keeps the tighter of two bounds of one side.
func (s *schema) setBound(name string, v *value, at string) error {
	if err := expect(v, kindNumber, at); err != nil {
		return err
	}
	r, err := rational(v.text)
	if err != nil {
		return fault(at, "%w", err)
	}
	b, side, tighter := &bound{r, strings.HasPrefix(name, "exclusive")}, &s.low, 1
	if strings.HasSuffix(strings.ToLower(name), "maximum") {
		side, tighter = &s.high, -1
	}
	if old := *side; old == nil || r.Cmp(old.at) == tighter || r.Cmp(old.at) == 0 && b.open {
		*side = b
	}
	return nil
}

func (r *reader) arrayKeyword(s *schema, name string, v *value, at string) (err error) {
	switch name {
	case "minItems":
		return setCount(&s.minItems, v, at)
	case "maxItems":
		return setCount(&s.maxItems, v, at)
	}
	s.items, err = r.schema(v, at)
	return err
}

func (r *reader) objectKeyword(s *schema, name string, v *value, at string) (err error) {
	switch name {
	case "additionalProperties":
		s.extra, err = r.schema(v, at)
		return err
	case "properties":
		s.listed = true
		if err := expect(v, kindObject, at); err != nil {
			return err
		}
		for _, m := range v.members {
			inner, err := r.schema(m.value, within(at, m.name))
			if err != nil {
				return err
			}
			s.properties = append(s.properties, property{name: m.name, schema: inner})
		}
		return nil
	}
	if err := expect(v, kindArray, at); err != nil {
		return err
	}
	for _, item := range v.items {
		if err := expect(item, kindString, at); err != nil {
			return err
		}
		s.required = append(s.required, item.text)
	}
	return nil
}

// settle checks what only all keywords together show, and marks what is required.
func (s *schema) settle() error {
	if s.form != "" && len(s.implied) > 0 {
		return fault(s.at, "keywords of type %s beside %s are not supported: write them into each alternative", s.implied[0], s.form)
	}
	if s.form != "" && s.form != "enum" && s.form != "const" && s.types != nil {
		return fault(s.at, "type beside %s is not supported: write it into each alternative", s.form)
	}
	if s.types != nil && s.values != nil {
		s.values = slices.DeleteFunc(s.values, func(v *value) bool { return !slices.ContainsFunc(s.types, v.isA) })
	}
	for _, name := range s.required {
		at := slices.IndexFunc(s.properties, func(p property) bool { return p.name == name })
		if at < 0 {
			at = len(s.properties)
			s.properties = append(s.properties, property{name: name, schema: s.extra})
		}
		s.properties[at].required = true
	}
	return nil
}
