package grammar

import "slices"

// Limits of what contains itself.
const (
	maxRecursion = 16 // how often a definition is unfolded within itself
	maxAnything  = 4  // arrays and objects within one another in a value of any type
)

// builder makes the expression of a schema.
type builder struct {
	a       *automaton
	targets map[visit]*state
	loops   map[*schema]bool // whether a target contains itself
	level   [maxAnything + 1]*state
}

// visit is a $ref's target at a depth of recursion.
type visit struct {
	target *schema
	depth  int
}

// build makes the automaton of a schema, for texts of some bytes.
func build(s *schema, bytes byteSet) *automaton {
	b := &builder{a: newAutomaton(bytes), targets: map[visit]*state{}, loops: map[*schema]bool{}}
	root := b.schema(s, 0)
	b.a.start(root)
	return b.a
}

// schema is the values that s accepts, below depth definitions that contain themselves. nil is any value.
func (b *builder) schema(s *schema, depth int) *state {
	b.a.grow(1)
	switch {
	case b.a.full:
		return b.a.none // it is not used
	case s == nil:
		return b.anything(0)
	case s.nullable:
		return b.a.alt(b.bare(s, depth), b.a.text("null"))
	}
	return b.bare(s, depth)
}

// bare is schema but for nullable.
func (b *builder) bare(s *schema, depth int) *state {
	var out []*state
	switch {
	case s.never:
		return b.a.none
	case s.target != nil:
		return b.target(s.target, depth)
	case s.form == "enum" || s.form == "const":
		for _, v := range s.values {
			out = append(out, b.literal(v))
		}
	case s.form != "":
		for _, branch := range s.branches {
			out = append(out, b.schema(branch, depth))
		}
	case s.types == nil && s.implied == nil:
		return b.anything(0)
	default:
		types := s.types
		if types == nil {
			types = s.implied
		}
		for _, t := range types {
			out = append(out, b.ofType(t, s, depth))
		}
	}
	return b.a.alt(out...)
}

func (b *builder) target(s *schema, depth int) *state {
	loops, ok := b.loops[s]
	if !ok {
		loops = slices.Contains(s.below(), s)
		b.loops[s] = loops
	}
	if loops {
		depth++
	}
	if depth > maxRecursion {
		return b.a.none
	}
	at := visit{s, depth}
	if b.targets[at] == nil {
		b.targets[at] = b.schema(s, depth)
	}
	return b.targets[at]
}

func (b *builder) ofType(name string, s *schema, depth int) *state {
	a := b.a
	switch name {
	case kindNull:
		return a.text("null")
	case kindBoolean:
		return a.alt(a.text("true"), a.text("false"))
	case kindInteger:
		return a.number(s, 0)
	case kindNumber:
		return a.number(s, maxFraction)
	case kindString:
		return a.quoted(s.minLen, s.maxLen)
	case kindArray:
		return b.array(b.schema(s.items, depth), s.minItems, s.maxItems)
	}
	return b.object(s, depth)
}

// array is least to most items.
func (b *builder) array(item *state, least, most int) *state {
	a := b.a
	var out []*state
	if least == 0 {
		out = append(out, a.text("[]"))
	}
	if most != 0 {
		more := a.repeat(a.seq(a.comma(), item), max(least-1, 0), less(most))
		out = append(out, a.seq(a.text("["), item, more, a.text("]")))
	}
	return a.alt(out...)
}

// object is the properties of s in order, then additional ones.
func (b *builder) object(s *schema, depth int) *state {
	a := b.a
	closed := s.extra == nil && s.listed || s.extra != nil && s.extra.never
	end := a.text("}")
	first, next := end, end // what follows {, and what follows a property
	if !closed {
		var names []string
		for _, p := range s.properties {
			names = append(names, p.name)
		}
		pair := a.seq(a.nameBut(names), a.colon(), b.schema(s.extra, depth))
		next = a.seq(a.repeat(a.seq(a.comma(), pair), 0, open), end)
		first = a.alt(end, a.seq(pair, next))
	}
	for i := len(s.properties) - 1; i >= 0; i-- {
		p := s.properties[i]
		pair := a.seq(a.text(quote(p.name)), a.colon(), b.schema(p.schema, depth))
		here, behind := a.seq(pair, next), a.seq(a.comma(), pair, next)
		if !p.required {
			here, behind = a.alt(here, first), a.alt(behind, next)
		}
		first, next = here, behind
	}
	return a.seq(a.text("{"), first)
}

// anything is any value that is within depth arrays and objects of any values.
func (b *builder) anything(depth int) *state {
	if b.level[depth] == nil {
		s, a := &schema{maxLen: open}, b.a
		var out []*state
		for _, t := range []string{kindNull, kindBoolean, kindNumber, kindString} {
			out = append(out, b.ofType(t, s, 0))
		}
		if depth < maxAnything {
			inner := b.anything(depth + 1)
			pair := a.seq(a.nameBut(nil), a.colon(), inner)
			out = append(out, b.array(inner, 0, open), a.text("{}"))
			out = append(out, a.seq(a.text("{"), pair, a.repeat(a.seq(a.comma(), pair), 0, open), a.text("}")))
		}
		b.level[depth] = a.alt(out...)
	}
	return b.level[depth]
}

// literal is one value.
func (b *builder) literal(v *value) *state {
	a := b.a
	var parts []*state
	for i, item := range v.items {
		if i > 0 {
			parts = append(parts, a.comma())
		}
		parts = append(parts, b.literal(item))
	}
	for i, m := range v.members {
		if i > 0 {
			parts = append(parts, a.comma())
		}
		parts = append(parts, a.text(quote(m.name)), a.colon(), b.literal(m.value))
	}
	switch v.kind {
	case kindString:
		return a.text(quote(v.text))
	case kindArray:
		return a.seq(a.text("["), a.seq(parts...), a.text("]"))
	case kindObject:
		return a.seq(a.text("{"), a.seq(parts...), a.text("}"))
	}
	return a.text(v.text)
}
