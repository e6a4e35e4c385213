package configs

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// alias is a foreign name of a key. It either has a place here, or has no meaning here and is accepted with a note, or is
// refused because leaving it out would change what the run does. A value that equals the foreign default is always
// accepted in silence.
type alias struct {
	name string // foreign name, with its sections if it has any; one that ends in .* stands for all names below it that have no own place
	def  string // its default there, as YAML; empty: it has none that means anything here
	path string // the key (or section) that it means here
	// convert turns a foreign value into ours; nil: as it is. A nil result sets nothing.
	convert func(n *yaml.Node) (*yaml.Node, error)
	// special handles what is more than one value of one key.
	special func(l *loader, a alias, n *yaml.Node, from string) error
	ignore  string // why it has no effect here
	refuse  string // why it cannot be had, and what to do instead
}

// means describes the alias for people.
func (a alias) means() string {
	switch {
	case a.refuse != "":
		return "refused: " + a.refuse
	case a.ignore != "":
		return "ignored: " + a.ignore
	}
	return a.path
}

// aliasTable is the table of all foreign names.
func aliasTable() map[string]alias {
	table := map[string]alias{}
	for _, a := range slices.Concat(trlNames(), trainingNames(), modelNames(), sftNames(), verlNames(), openRLHFNames()) {
		table[a.name] = a
	}
	return table
}

// below ends the name of an alias that stands for all names below another.
const below = ".*"

// find is the alias of key: its own, or that of the nearest section above it that is in the table as a whole.
func find(table map[string]alias, key string) (alias, bool) {
	if a, ok := table[key]; ok {
		return a, true
	}
	for i := strings.LastIndexByte(key, '.'); i > 0; i = strings.LastIndexByte(key[:i], '.') {
		if a, ok := table[key[:i]+below]; ok {
			return a, true
		}
	}
	return alias{}, false
}

// alias reads a value under a foreign name.
func (l *loader) alias(a alias, n *yaml.Node, from string) {
	plain := a.convert == nil && a.special == nil
	switch {
	case isNull(n) && a.def == "null":
	case (a.ignore != "" || a.refuse != "") && sameValue(n, a.def):
	case a.ignore != "":
		l.foreign(a, from, "ignored: "+a.ignore)
	case a.refuse != "":
		l.fail(from, a.name, "%s", a.refuse)
	case a.special != nil:
		if err := a.special(l, a, n, from); err != nil {
			l.fail(from, a.name, "%w", err)
			return
		}
		l.tell(a, from)
	case plain:
		l.give(a, n, from)
		l.tell(a, from)
	default:
		v, err := a.convert(n)
		if err != nil {
			l.fail(from, a.name, "%w", err)
			return
		}
		if v != nil {
			l.give(a, v, from)
		}
		l.tell(a, from)
	}
}

// tell notes what a name of verl or OpenRLHF, which all have sections, means here.
func (l *loader) tell(a alias, from string) {
	if strings.Contains(a.name, ".") {
		l.foreign(a, from, "means "+a.path)
	}
}

// foreign notes what became of a foreign name; that about all names below another is noted once.
func (l *loader) foreign(a alias, from, text string) {
	n := Note{a.name, from, text}
	if !strings.HasSuffix(a.name, below) || !slices.ContainsFunc(l.notes, func(m Note) bool { return m.Key == n.Key }) {
		l.notes = append(l.notes, n)
	}
}

// give sets the key that a means.
func (l *loader) give(a alias, n *yaml.Node, from string) {
	if f, ok := l.schema.field(a.path); ok {
		l.set(f, n, a.name, from)
		return
	}
	if text := n; text.Kind == yaml.ScalarNode { // a section in one string, as TRL allows: '{"num_cycles": 2}'
		if m, err := parseYAML(text.Value); err == nil {
			n = m
		}
	}
	l.mapping(a.path, n, func(*yaml.Node) string { return from })
}

// sameValue tells whether n is the value that the YAML text def stands for.
func sameValue(n *yaml.Node, def string) bool {
	if n.Kind == yaml.ScalarNode && n.Value == def {
		return true
	}
	d, err := parseYAML(def)
	if err != nil {
		return false
	}
	a, errA := decodeAny(n)
	b, errB := decodeAny(d)
	return errA == nil && errB == nil && (fmt.Sprint(a) == fmt.Sprint(b) || a == nil && b == nil)
}

// choose converts by a list of "foreign=ours" pairs; "foreign=" sets nothing. Any other value is an error.
func choose(pairs ...string) func(*yaml.Node) (*yaml.Node, error) {
	return func(n *yaml.Node) (*yaml.Node, error) {
		var known []string
		for _, pair := range pairs {
			theirs, ours, _ := strings.Cut(pair, "=")
			if n.Kind == yaml.ScalarNode && strings.EqualFold(n.Value, theirs) {
				if ours == "" {
					return nil, nil
				}
				return parseYAML(ours)
			}
			known = append(known, theirs)
		}
		return nil, fmt.Errorf("is %q, want one of %s", n.Value, strings.Join(known, ", "))
	}
}

// otherwise makes convert leave values that it does not know as they are.
func otherwise(convert func(*yaml.Node) (*yaml.Node, error)) func(*yaml.Node) (*yaml.Node, error) {
	return func(n *yaml.Node) (*yaml.Node, error) {
		if v, err := convert(n); err == nil {
			return v, nil
		}
		return n, nil
	}
}
