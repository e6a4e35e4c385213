package configs

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Print writes c as a YAML file with every key and what it means. Loading that file gives c again.
func Print(w io.Writer, c *Config) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	in := map[string]*yaml.Node{"": root}
	s := newSchema()
	for _, x := range s.sections {
		in[x.path] = &yaml.Node{Kind: yaml.MappingNode}
	}
	for _, f := range s.fields {
		s.open(in, f.Section())
		add(in[f.Section()], f.Key(), strings.Join(wrap(f.Doc, 100), "\n"), toNode(f.get(c)))
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return enc.Close()
}

// Flat is every key with its value, on one line of YAML each.
func (c *Config) Flat() map[string]string {
	out := map[string]string{}
	for _, f := range newSchema().fields {
		out[f.Path] = oneLine(toNode(f.get(c)))
	}
	return out
}

// open links the section at path, and those around it, to their parents; sections without keys are never opened.
func (s *schema) open(in map[string]*yaml.Node, path string) {
	if path == "" {
		return
	}
	f := field{Path: path}
	s.open(in, f.Section())
	parent, node := in[f.Section()], in[path]
	if slices.Contains(parent.Content, node) {
		return
	}
	i := slices.IndexFunc(s.sections, func(x section) bool { return x.path == path })
	add(parent, f.Key(), strings.Join(wrap(s.sections[i].doc, 100), "\n"), node)
}

func add(m *yaml.Node, key, comment string, value *yaml.Node) {
	m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, HeadComment: comment}, value)
}

// toNode is the value as YAML that decode reads back unchanged.
func toNode(v reflect.Value) *yaml.Node {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return toNode(v.Elem())
		}
	case reflect.Interface:
		if e := v.Elem(); e.IsValid() {
			n := toNode(e)
			if e.CanFloat() && n.Tag == "!!int" {
				return number(n.Value + ".0") // else it would come back as an int
			}
			return n
		}
	case reflect.Bool:
		return scalar("!!bool", strconv.FormatBool(v.Bool()))
	case reflect.String:
		return text(v.String())
	case reflect.Slice:
		return listNode(v)
	case reflect.Map:
		return mapNode(v)
	case reflect.Struct:
		return structNode(v)
	default:
		if v.CanInt() {
			return scalar("!!int", strconv.FormatInt(v.Int(), 10))
		}
		return number(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	}
	return scalar("!!null", "null")
}

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// number is a float as YAML sees it: 3 is an int, which decode takes for a float as well.
func number(text string) *yaml.Node {
	if strings.ContainsAny(text, ".e") {
		if !strings.Contains(text, ".") {
			text = strings.Replace(text, "e", ".0e", 1) // YAML 1.1, which Python reads, wants the point
		}
		return scalar("!!float", text)
	}
	return scalar("!!int", text)
}

// text is plain where that is safe and in double quotes otherwise.
func text(s string) *yaml.Node {
	n := scalar("!!str", s)
	plain := func(r rune) bool {
		return r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("_-./ ", r)
	}
	if s == "" || strings.TrimSpace(s) != s || strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func listNode(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for i := range v.Len() {
		item := toNode(v.Index(i))
		if item.Kind != yaml.ScalarNode {
			n.Style = 0
		}
		n.Content = append(n.Content, item)
	}
	return n
}

func mapNode(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if v.Len() == 0 {
		n.Style = yaml.FlowStyle
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		n.Content = append(n.Content, text(k.String()), toNode(v.MapIndex(k)))
	}
	return n
}

// structNode is an item of a list such as reward.parts; what is empty in it is left out.
func structNode(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		f := v.Field(i)
		if (f.Kind() == reflect.Slice || f.Kind() == reflect.Map || f.Kind() == reflect.String) && f.Len() == 0 {
			continue
		}
		n.Content = append(n.Content, text(yamlKey(v.Type().Field(i))), toNode(f))
	}
	return n
}

// wrap breaks text into lines of at most width letters.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
