package grammar

import "slices"

// prover finds out which schemas are apart. It remembers what it found; a pair that it is asked for while it looks at it
// counts as not apart, and so does every pair once it has looked at maxPairs.
type prover struct {
	pairs map[[2]*schema]bool
	kinds map[*schema]kinds
}

const maxPairs = 1 << 14

func newProver() *prover { return &prover{map[[2]*schema]bool{}, map[*schema]kinds{}} }

// apart reports whether it is plain that no value meets both schemas.
func (p *prover) apart(a, b *schema) bool {
	pair := [2]*schema{a, b}
	known, ok := p.pairs[pair]
	if !ok && len(p.pairs) < maxPairs {
		p.pairs[pair] = false
		known = p.look(a, b)
		p.pairs[pair] = known
	}
	return known
}

func (p *prover) look(a, b *schema) bool {
	switch {
	case a == nil || b == nil: // anything
		return a != nil && a.never || b != nil && b.never
	case p.kindsOf(a)&p.kindsOf(b) == 0:
		return true
	case a.nullable || b.nullable:
		return false
	case a.alternatives() != nil:
		return !slices.ContainsFunc(a.alternatives(), func(c *schema) bool { return !p.apart(c, b) })
	case b.alternatives() != nil:
		return !slices.ContainsFunc(b.alternatives(), func(c *schema) bool { return !p.apart(a, c) })
	case a.values != nil && b.values != nil:
		seen := map[string]bool{}
		for _, v := range a.values {
			seen[v.key()] = true
		}
		return !slices.ContainsFunc(b.values, func(v *value) bool { return seen[v.key()] })
	}
	return a.only(kindObject) && b.only(kindObject) && (p.objectsApart(a, b) || lacks(a, b) || lacks(b, a))
}

// alternatives are the schemas one of which a value of s has to meet, nil if s is not made of others.
func (s *schema) alternatives() []*schema {
	if s.target != nil {
		return []*schema{s.target}
	}
	return s.branches
}

// kinds is a set of types, integers as numbers.
type kinds uint8

const allKinds kinds = 1<<6 - 1

func kindsOf(name string) kinds {
	if name == kindInteger {
		name = kindNumber
	}
	return 1 << slices.Index([]string{kindNull, kindBoolean, kindNumber, kindString, kindArray, kindObject}, name)
}

// kindsOf are the types of the values that s may accept. As in JSON Schema, a value of a type that no keyword speaks of is
// accepted.
func (p *prover) kindsOf(s *schema) kinds {
	if known, ok := p.kinds[s]; ok {
		return known
	}
	var out kinds
	seen := map[*schema]bool{}
	for todo := []*schema{s}; len(todo) > 0; {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[c] {
			seen[c] = true
			out |= c.ownKinds()
			todo = append(todo, c.alternatives()...)
		}
	}
	p.kinds[s] = out
	return out
}

// ownKinds are those types that do not come from alternatives.
func (s *schema) ownKinds() (out kinds) {
	if s.nullable {
		out = kindsOf(kindNull)
	}
	for _, v := range s.values {
		out |= kindsOf(v.kind)
	}
	switch {
	case s.never || s.form != "":
		return out
	case s.types == nil:
		return allKinds
	}
	for _, t := range s.types {
		out |= kindsOf(t)
	}
	return out
}

// only reports whether s is declared to be of one type, by nothing but the keywords of that type.
func (s *schema) only(kind string) bool {
	return s.form == "" && len(s.types) == 1 && s.types[0] == kind
}

// objectsApart: a property that one of them requires and that is not the same in the other tells them apart.
func (p *prover) objectsApart(a, b *schema) bool {
	return slices.ContainsFunc(a.properties, func(x property) bool {
		y := b.property(x.name)
		return y != nil && (x.required || y.required) && p.apart(x.schema, y.schema)
	})
}

// lacks reports whether a requires a property that b forbids.
func lacks(a, b *schema) bool {
	return b.extra != nil && b.extra.never && slices.ContainsFunc(a.properties, func(x property) bool {
		return x.required && b.property(x.name) == nil
	})
}

// property is what s says of one, or nil.
func (s *schema) property(name string) *property {
	for i := range s.properties {
		if s.properties[i].name == name {
			return &s.properties[i]
		}
	}
	return nil
}
