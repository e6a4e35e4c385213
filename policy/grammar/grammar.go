package grammar

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Grammar is a JSON Schema that samples can be held to.
type Grammar struct{ root *schema }

// Compile reads a JSON Schema. Its error names the keyword that is wrong or not supported and the JSON pointer to it;
// a schema that is too large, or that no value meets, is an error too.
func Compile(text json.RawMessage) (*Grammar, error) {
	root, err := readValue(text)
	if err != nil {
		return nil, fmt.Errorf("json schema: %w", err)
	}
	r := &reader{root: root, known: map[string]*schema{}, targets: map[string]bool{}}
	s, err := r.schema(root, "")
	if err != nil {
		return nil, err
	}
	if err := checkOneOf(append(s.below(), s)); err != nil {
		return nil, err
	}
	g := &Grammar{s}
	_, err = g.automaton(between(0, 0xff))
	return g, err
}

// automaton accepts the grammar's texts that are made of some bytes.
func (g *Grammar) automaton(bytes byteSet) (*automaton, error) {
	a := build(g.root, bytes)
	if a.full {
		return nil, fmt.Errorf("json schema: it is too large: use fewer or shorter properties, enum values and bounds")
	}
	if a.root != a.none {
		return a, nil
	}
	missing := missing(bytes)
	if missing == "" {
		return nil, fmt.Errorf("json schema: no value meets it: look at false, empty enums, bounds that exclude each other and definitions that contain themselves always")
	}
	return nil, fmt.Errorf("json schema: the vocabulary has no tokens for the bytes %q alone, and without them no value can be written", missing)
}

// missing are the printable bytes of ASCII that are not in a set.
func missing(bytes byteSet) string {
	var out strings.Builder
	for b := byte(' '); b <= '~'; b++ {
		if !bytes.has(b) {
			out.WriteByte(b)
		}
	}
	return out.String()
}
