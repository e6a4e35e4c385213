package criteria

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"
)

// Global is the scope of a rubric that serves every prompt. The scope of a prompt's own rubric is the prompt's ID.
const Global = "global"

// Set is a rubric: criteria in an order that matters, with a scope and a version. It never changes; With makes the next
// one. The zero Set is empty.
type Set struct {
	scope   string
	version int
	list    []Criterion
}

// NewSet makes a set of list, or says everything that is wrong with it: ids must be there and differ, texts and numbers
// be within bounds, and some weight be above 0.
func NewSet(scope string, version int, list []Criterion) (Set, error) {
	switch {
	case version < 0:
		return Set{}, fmt.Errorf("version is %d: use 0 or more", version)
	case !utf8.ValidString(scope):
		return Set{}, errors.New("scope is not UTF-8")
	case len(list) == 0:
		return Set{}, errors.New("there are no criteria: give at least one")
	case len(list) > MaxCriteria:
		return Set{}, fmt.Errorf("there are %d criteria: use at most %d", len(list), MaxCriteria)
	}
	s := Set{scope, version, make([]Criterion, len(list))}
	var faults []error
	place := map[string]int{} // of each id
	positive := false
	for i, c := range list {
		own, err := c.normal()
		if err != nil {
			faults = append(faults, fmt.Errorf("criterion %d (%s): %w", i+1, c.ID, err))
		}
		if before, there := place[c.ID]; there && c.ID != "" {
			faults = append(faults, fmt.Errorf("criteria %d and %d have the same id %q: give each its own", before+1, i+1, c.ID))
		}
		s.list[i], place[c.ID] = own, i
		positive = positive || c.Weight > 0
	}
	if !positive {
		faults = append(faults, errors.New("no criterion has a weight above 0, so there is nothing to earn: give one a positive weight"))
	}
	if len(faults) > 0 {
		return Set{}, errors.Join(faults...)
	}
	return s, nil
}

// Scope is what the set is for: Global, or a prompt's ID.
func (s Set) Scope() string { return s.scope }

// Version counts the sets of a scope.
func (s Set) Version() int { return s.version }

// Len is the number of criteria.
func (s Set) Len() int { return len(s.list) }

// At is the criterion at place i, from 0.
func (s Set) At(i int) Criterion { return s.list[i] }

// All yields the criteria in order.
func (s Set) All() iter.Seq2[int, Criterion] { return slices.All(s.list) }

// List is a copy of the criteria.
func (s Set) List() []Criterion { return slices.Clone(s.list) }

// Find returns the criterion with an id.
func (s Set) Find(id string) (Criterion, bool) {
	i := slices.IndexFunc(s.list, func(c Criterion) bool { return c.ID == id })
	if i < 0 {
		return Criterion{}, false
	}
	return s.list[i], true
}

// With is the next version: same scope, other criteria.
func (s Set) With(list []Criterion) (Set, error) { return NewSet(s.scope, s.version+1, list) }

// Equal reports whether two sets are the same in everything: scope, version, criteria and their order.
func (s Set) Equal(o Set) bool {
	return s.scope == o.scope && s.version == o.version && slices.EqualFunc(s.list, o.list, Criterion.Equal)
}

// setJSON is the canonical form.
type setJSON struct {
	Scope    string      `json:"scope"`
	Version  int         `json:"version"`
	Criteria []Criterion `json:"criteria"`
}

// MarshalJSON writes the canonical form: equal sets have equal bytes.
func (s Set) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(setJSON{s.scope, s.version, append([]Criterion{}, s.list...)}); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON reads the canonical form strictly and checks it as NewSet does. Version 0 without criteria is the empty
// set.
func (s *Set) UnmarshalJSON(data []byte) error {
	var in setJSON
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("rubric: %w", err)
	}
	if in.Version == 0 && len(in.Criteria) == 0 {
		*s = Set{scope: in.Scope}
		return nil
	}
	out, err := NewSet(in.Scope, in.Version, in.Criteria)
	if err != nil {
		return fmt.Errorf("rubric: %w", err)
	}
	*s = out
	return nil
}

// Hash identifies the set's content: the SHA-256 of its canonical form, in hexadecimal.
func (s Set) Hash() string {
	b, _ := s.MarshalJSON() // cannot fail: NewSet has made everything JSON
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

//go:embed schema.json
var schema string

// Schema is the JSON Schema of the canonical form.
func Schema() json.RawMessage { return json.RawMessage(schema) }
