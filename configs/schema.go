package configs

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// field is one key of the configuration.
type field struct {
	Path  string       // section.key
	Doc   string       // what it is, with its unit and what 0 or empty means
	Type  reflect.Type // of its value
	Enum  []string     // the only values allowed; nil: any
	Min   *float64     // lowest value allowed
	Above *float64     // the value must be greater
	Max   *float64     // highest value allowed

	index []int // for reflect.Value.FieldByIndex on a Config
}

// Key is the last part of the path.
func (f field) Key() string { return f.Path[strings.LastIndexByte(f.Path, '.')+1:] }

// Section is the path without its last part; "" for a top-level key.
func (f field) Section() string { return f.Path[:max(0, strings.LastIndexByte(f.Path, '.'))] }

// section is a struct of the configuration.
type section struct{ path, doc string }

// schema is the list of all keys, in the order of the structs.
type schema struct {
	fields   []field
	sections []section
}

func newSchema() *schema {
	s := &schema{}
	s.walk(reflect.TypeFor[Config](), "", nil)
	s.describe("grpo.", grpoDocs(), grpoCopies())
	return s
}

// describe documents the keys below prefix, whose struct has no tags of ours, and removes those that are no keys.
func (s *schema) describe(prefix string, docs map[string]keyDoc, drop []string) {
	s.fields = slices.DeleteFunc(s.fields, func(f field) bool {
		key, ok := strings.CutPrefix(f.Path, prefix)
		return ok && slices.Contains(drop, key)
	})
	for i, f := range s.fields {
		key, ok := strings.CutPrefix(f.Path, prefix)
		if d := docs[key]; ok && f.Doc == "" {
			s.fields[i].Doc, s.fields[i].Min = d.doc, d.min
			if d.enum != "" {
				s.fields[i].Enum = strings.Split(d.enum, "|")
			}
		}
	}
}

func (s *schema) walk(t reflect.Type, prefix string, index []int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(slices.Clone(index), i)
		path := prefix + yamlKey(sf)
		switch {
		case sf.Anonymous && sf.Type.Kind() == reflect.Struct:
			s.walk(sf.Type, prefix, at)
		case sf.Type.Kind() == reflect.Struct:
			s.sections = append(s.sections, section{path, sf.Tag.Get("doc")})
			s.walk(sf.Type, path+".", at)
		default:
			s.fields = append(s.fields, newField(sf, path, at))
		}
	}
}

func newField(sf reflect.StructField, path string, index []int) field {
	f := field{Path: path, Doc: sf.Tag.Get("doc"), Type: sf.Type, index: index}
	if e := sf.Tag.Get("enum"); e != "" {
		f.Enum = strings.Split(e, "|")
	}
	f.Min, f.Above, f.Max = bound(sf, "min"), bound(sf, "above"), bound(sf, "max")
	return f
}

func bound(sf reflect.StructField, tag string) *float64 {
	text, ok := sf.Tag.Lookup(tag)
	if !ok {
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil // a mistake in the source, which TestTags finds
	}
	return &x
}

// yamlKey is the key of a struct field: its yaml tag.
func yamlKey(sf reflect.StructField) string {
	key, _, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
	return key
}

func (s *schema) field(path string) (field, bool) {
	i := slices.IndexFunc(s.fields, func(f field) bool { return f.Path == path })
	if i < 0 {
		return field{}, false
	}
	return s.fields[i], true
}

func (s *schema) isSection(path string) bool {
	return slices.ContainsFunc(s.sections, func(x section) bool { return x.path == path })
}

// above returns the field that path lies below ("reward.options.x" lies below reward.options), and the rest of path.
func (s *schema) above(path string) (field, string, bool) {
	for _, f := range s.fields {
		if rest, ok := strings.CutPrefix(path, f.Path+"."); ok {
			return f, rest, true
		}
	}
	return field{}, "", false
}

// get is the value of the field in c.
func (f field) get(c *Config) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(f.index) }
