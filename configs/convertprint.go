package configs

import (
	"bytes"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// print writes the keys that are not at their default, and those that were written, each with where it comes from.
func (v *converter) print(c *Config, missing []Note, batches string) []byte {
	root := &yaml.Node{Kind: yaml.MappingNode}
	sections := map[string]*yaml.Node{"": root}
	d := Default()
	for _, f := range v.schema.fields {
		from, set := v.sources[f.Path]
		if !set || from == v.defaultFrom() && reflect.DeepEqual(f.get(c).Interface(), f.get(d).Interface()) {
			continue
		}
		value := toNode(f.get(c))
		comment := v.names[f.Path]
		if from == v.defaultFrom() {
			comment = v.defaultFrom() + ": " + comment
		}
		if value.Kind == yaml.ScalarNode || value.Style&yaml.FlowStyle != 0 {
			value.LineComment = comment
			comment = ""
		}
		s := sectionNode(sections, f.Section())
		s.Content = append(s.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.Key(), HeadComment: comment}, value)
	}
	var out bytes.Buffer
	out.WriteString(v.head(batches))
	if len(root.Content) > 0 {
		enc := yaml.NewEncoder(&out)
		enc.SetIndent(2)
		if err := enc.Encode(root); err != nil {
			panic(err) // a buffer takes everything, and all nodes are ours
		}
	}
	if len(missing) > 0 {
		out.WriteString("\n# Without an equal here:\n")
	}
	for _, n := range missing {
		out.WriteString(comment(n.String()))
	}
	return out.Bytes()
}

// head tells what the file is.
func (v *converter) head(batches string) string {
	text := "Made from a configuration of " + v.framework.name + ". Behind each key stands the name that it comes from."
	if batches != "" {
		text += " In one process: " + batches + ". With N processes divide optim.gradient_accumulation_steps, and grpo.steps_per_generation if it is set, by N."
	}
	return comment(text)
}

// comment is text as lines of comments.
func comment(text string) string {
	return "# " + strings.Join(wrap(text, 120), "\n#   ") + "\n"
}

// sectionNode is the mapping of a section, linked to those above it when it is first asked for.
func sectionNode(sections map[string]*yaml.Node, path string) *yaml.Node {
	if n := sections[path]; n != nil {
		return n
	}
	f := field{Path: path}
	parent := sectionNode(sections, f.Section())
	n := &yaml.Node{Kind: yaml.MappingNode}
	parent.Content = append(parent.Content, text(f.Key()), n)
	sections[path] = n
	return n
}
