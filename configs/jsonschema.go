package configs

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Schema writes the JSON Schema (draft 2020-12) of a configuration file, for editors that complete and check YAML.
func Schema(w io.Writer) error {
	s := newSchema()
	d := Default()
	root := object()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "rubicon configuration"
	root["$defs"] = map[string]any{"reward": rewardSchema(s)}
	objects := map[string]map[string]any{"": root}
	for _, x := range s.sections {
		o := object()
		o["description"] = x.doc
		objects[x.path] = o
		parent := field{Path: x.path}
		properties(objects[parent.Section()])[parent.Key()] = o
	}
	for _, f := range s.fields {
		properties(objects[f.Section()])[f.Key()] = f.schema(f.get(d))
	}
	foreignProperties(root)
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the schema: %w", err)
	}
	_, err = w.Write(append(out, '\n'))
	return err
}

// foreignProperties adds the foreign names: at the top level, or in sections, of which only the first two steps are said.
func foreignProperties(root map[string]any) {
	top := properties(root)
	table := aliasTable()
	for _, name := range slices.Sorted(maps.Keys(table)) {
		section, rest, inSection := strings.Cut(name, ".")
		if !inSection {
			if top[name] == nil {
				top[name] = map[string]any{"description": "Name of TRL's: " + table[name].means()}
			}
			continue
		}
		if top[section] == nil {
			top[section] = map[string]any{"type": "object", "description": "Names of verl or OpenRLHF; see the configuration reference."}
		}
		// Where a section has keys of its own, the schema must let foreign ones pass.
		if o := top[section].(map[string]any); o["properties"] != nil {
			key, _, deeper := strings.Cut(rest, ".")
			if p := properties(o); p[key] == nil && deeper {
				p[key] = map[string]any{"type": "object", "description": "Names of verl or OpenRLHF; see the configuration reference."}
			} else if p[key] == nil {
				p[key] = map[string]any{"description": "Name of verl's or OpenRLHF's: " + table[name].means()}
			}
		}
	}
	for name := range table { // a section may have the name of a key
		if o, ok := top[name].(map[string]any); ok && o["properties"] != nil {
			o["type"] = []string{"object", "string"}
		}
	}
}

func object() map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}
}

func properties(o map[string]any) map[string]any { return o["properties"].(map[string]any) }

// schema is the JSON Schema of one key, def its default.
func (f field) schema(def reflect.Value) map[string]any {
	o := typeSchema(f.Type)
	o["description"] = f.Doc
	var x any
	if err := toNode(def).Decode(&x); err == nil {
		o["default"] = x
	}
	if f.Enum != nil {
		words := []any{}
		for _, word := range f.Enum {
			words = append(words, word)
		}
		if f.Type.Kind() == reflect.Pointer {
			words = append(words, nil)
		}
		o["enum"] = words
	}
	for key, b := range map[string]*float64{"minimum": f.Min, "exclusiveMinimum": f.Above, "maximum": f.Max} {
		if b != nil {
			o[key] = *b
		}
	}
	return o
}

func typeSchema(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		o := typeSchema(t.Elem())
		o["type"] = []any{o["type"], "null"}
		return o
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Interface:
		return map[string]any{}
	case reflect.Struct:
		return map[string]any{"$ref": "#/$defs/reward"}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": typeSchema(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return map[string]any{"type": []string{"array", "string", "null"}, "items": typeSchema(t.Elem())}
		}
		return map[string]any{"type": []string{"array", "null"}, "items": typeSchema(t.Elem())}
	}
	return map[string]any{"type": "integer"}
}

// rewardSchema is an item of reward.parts.
func rewardSchema(s *schema) map[string]any {
	o := object()
	d := Default()
	for _, f := range s.fields {
		if f.Section() == "reward" {
			properties(o)[f.Key()] = f.schema(f.get(d))
		}
	}
	return o
}
