package configs

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rubicon-rl/rubicon/internal/suggest"
)

// parseText reads a value that stands in an environment variable or an override, where YAML's quotes are a burden: text is
// taken as it is, and a list may be written with commas alone.
func parseText(text string, t reflect.Type) (*yaml.Node, error) {
	switch {
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.String && text != "null":
		return parseText(text, t.Elem())
	case t.Kind() == reflect.String:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, nil
	case t.Kind() == reflect.Slice && text != "" && text != "null" && !strings.HasPrefix(strings.TrimSpace(text), "["):
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for item := range strings.SplitSeq(text, ",") {
			n, err := parseText(strings.TrimSpace(item), t.Elem())
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, n)
		}
		return list, nil
	}
	return parseYAML(text)
}

// parseYAML reads one YAML value; no text at all is null.
func parseYAML(text string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("%q is not valid YAML: %w", text, err)
	}
	if len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	}
	return doc.Content[0], nil
}

// didYouMean is ": did you mean X?" for the nearest of the names, or nothing if none is near.
func didYouMean(name string, names []string) string {
	if best := suggest.Nearest(name, names); best != "" {
		return ": did you mean " + best + "?"
	}
	return ""
}
