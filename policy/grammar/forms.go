package grammar

import (
	"net/url"
	"strconv"
	"strings"
)

// Limits that keep the work on a hostile schema small.
const (
	maxAlternatives = 256
	maxTargets      = 256 // places that $ref names
)

// setForm reads a keyword that says all of what a schema accepts.
func (r *reader) setForm(s *schema, name string, v *value, at string) error {
	if s.form != "" {
		return fault(at, "%s beside %s is not supported: join them to one", name, s.form)
	}
	s.form = name
	switch name {
	case "$ref":
		return r.setTarget(s, v, at)
	case "const":
		s.values = []*value{v}
		return nil
	case "enum":
		s.values = append([]*value{}, v.items...)
		return expect(v, kindArray, at)
	}
	return r.setBranches(s, v, at)
}

func (r *reader) setBranches(s *schema, v *value, at string) error {
	if err := expect(v, kindArray, at); err != nil {
		return err
	}
	if len(v.items) == 0 || len(v.items) > maxAlternatives {
		return fault(at, "there are %d alternatives, from 1 to %d are supported", len(v.items), maxAlternatives)
	}
	if s.form == "allOf" && len(v.items) > 1 {
		return fault(at, "allOf of several schemas is not supported: write them as one schema")
	}
	for i, item := range v.items {
		branch, err := r.schema(item, within(at, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		s.branches = append(s.branches, branch)
	}
	return nil
}

// setTarget finds the schema that a $ref names. It may be one that is being read.
func (r *reader) setTarget(s *schema, v *value, at string) error {
	if err := expect(v, kindString, at); err != nil {
		return err
	}
	pointer, ok := strings.CutPrefix(v.text, "#")
	names, err := url.PathUnescape(pointer)
	if !ok || err != nil || names != "" && names[0] != '/' {
		return fault(at, "%q is no pointer that begins with #/: only places in the same document can be referred to", v.text)
	}
	place, pointer := r.find(strings.Split(names, "/")[1:])
	if place == nil {
		return fault(at, "there is nothing at %q", v.text)
	}
	r.targets[pointer] = true
	if len(r.targets) > maxTargets {
		return fault(at, "more than %d different places are referred to", maxTargets)
	}
	s.target, err = r.schema(place, pointer)
	return err
}

// find is what the names of a pointer lead to, or nil, and that pointer as it is written elsewhere here.
func (r *reader) find(names []string) (v *value, pointer string) {
	v = r.root
	for _, name := range names {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if v.kind == kindArray {
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v.items) {
				return nil, ""
			}
			v, name = v.items[i], strconv.Itoa(i)
		} else if v = v.find(name); v == nil {
			return nil, ""
		}
		pointer = within(pointer, name)
	}
	return v, pointer
}

// checkOneOf refuses alternatives of oneOf that a value could meet two of. parts are the schema and all below it.
func checkOneOf(parts []*schema) error {
	p := newProver()
	for _, s := range parts {
		if s.form != "oneOf" {
			continue
		}
		for j, b := range s.branches {
			for i, a := range s.branches[:j] {
				if !p.apart(a, b) {
					return fault(s.at, "a value could meet alternatives %d and %d of oneOf: use anyOf, or tell them apart by type or by a required property of different const", i, j)
				}
			}
		}
	}
	return nil
}

// children are the schemas that s refers to directly.
func (s *schema) children() []*schema {
	out := append([]*schema{}, s.branches...)
	for _, p := range s.properties {
		out = append(out, p.schema)
	}
	return append(out, s.target, s.extra, s.items)
}

// below are the schemas that can be reached from s in a step or more.
func (s *schema) below() []*schema {
	var out []*schema
	seen := map[*schema]bool{nil: true}
	for todo := s.children(); len(todo) > 0; {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[c] {
			seen[c] = true
			out = append(out, c)
			todo = append(todo, c.children()...)
		}
	}
	return out
}
