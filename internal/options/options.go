// Package options decodes options strictly: a map from a configuration file or a data row onto a struct
// that holds the defaults.
package options

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/suggest"
)

// Decode sets the fields of *dst (named by their json tags) that m names; the others keep their values. A name that
// no field has is an error that suggests the nearest one; a value of the wrong type is one too, and a number with a
// fraction is of the wrong type for a whole number.
func Decode(m map[string]any, dst any) error {
	known := names(reflect.TypeOf(dst).Elem())
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, name) {
			return Unknown("option", name, known)
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("reading options: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return fmt.Errorf("option %s is a %s: give %s", wrong.Field, wrong.Value, describe(wrong.Type))
		}
		return fmt.Errorf("reading options: %w", err)
	}
	return nil
}

// Unknown is the error for a name that is not among known: it says which one may have been meant.
func Unknown(what, name string, known []string) error {
	slices.Sort(known)
	known = slices.Compact(known) // a struct may hide an option of one that it embeds
	if best := suggest.Nearest(name, known); best != "" {
		return fmt.Errorf("unknown %s %q: did you mean %q?", what, name, best)
	}
	return fmt.Errorf("unknown %s %q: use one of %s", what, name, strings.Join(known, ", "))
}

// names lists the json names of a struct's fields, those of embedded structs among them.
func names(t reflect.Type) []string {
	var list []string
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Anonymous:
			list = append(list, names(f.Type)...)
		case f.IsExported():
			list = append(list, f.Tag.Get("json"))
		}
	}
	return list
}

// describe words a Go type for people who write YAML.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "a map"
}
