package configs

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FromVerl converts a configuration of verl's main_ppo: the nested YAML that Hydra composes (or a part of it), and overrides as on its
// command line, a.b=c, +a.b=c, ++a.b=c and ~a.b. ${...} is replaced where it refers to the same configuration. An error means that the
// source cannot be read at all.
func FromVerl(s Source) (*Conversion, error) {
	v := newConverter(framework{name: "verl", table: verlNames()})
	v.skip = v.skipVerl
	defaults := map[string]string{}
	for _, a := range v.table {
		defaults[a.name] = a.def
	}
	t := newTree(func(name string) (*yaml.Node, bool) {
		def := defaults[name]
		n, err := parseYAML(def)
		return n, def != "" && err == nil
	})
	root, err := parseSource(s)
	if err != nil {
		return nil, err
	}
	if root != nil {
		if err := t.flatten("", root, s.Name, func(name string) bool { return isWhole(v.aliases, name) }); err != nil {
			return nil, err
		}
	}
	for _, o := range s.Overrides {
		if err := t.override(o); err != nil {
			return nil, err
		}
	}
	v.putTree(t)
	v.putDefaults()
	v.remarkVerl()
	return v.finish(1), nil
}

// isWhole tells whether a mapping is the value of a name and not a section of names.
func isWhole(table map[string]alias, name string) bool {
	_, own := table[name]
	return own || strings.HasPrefix(name, "hydra") || name == "defaults"
}

// override reads one argument of Hydra's command line.
func (t *tree) override(text string) error {
	if name, ok := strings.CutPrefix(text, "~"); ok {
		name, _, _ = strings.Cut(name, "=")
		delete(t.values, name)
		t.names = slices.DeleteFunc(t.names, func(x string) bool { return x == name })
		return nil
	}
	name, n, err := override(strings.TrimLeft(text, "+"))
	if err == nil {
		t.set(name, n, "command line")
	}
	return err
}

// putTree reads what is written.
func (v *converter) putTree(t *tree) {
	for _, name := range t.names {
		from := t.from[name]
		if strings.HasPrefix(name, "hydra") || strings.HasSuffix(name, "_target_") {
			v.written[name] = true
			continue
		}
		if name == "defaults" {
			v.fail(from, name, "the files that it names are not read: give what Hydra made of them (outputs/.../.hydra/config.yaml), or the defaults of verl count")
			continue
		}
		n, err := t.resolved(name)
		if err != nil {
			v.written[name] = true
			v.fail(from, name, "%w", err)
			continue
		}
		if n.Kind == yaml.ScalarNode && n.Value == "???" { // Hydra's mark for what must be given
			continue
		}
		v.put(name, n, from)
	}
}

// skipVerl tells whether a default of verl is not taken over: second names, and data.max_response_length where what follows it there is
// written.
func (v *converter) skipVerl(name string) bool {
	return name == "rollout.n" || strings.Contains(name, "overlong") ||
		name == "data.max_response_length" && v.written[verlSampleAt+"response_length"]
}

// remarkVerl lists what differs although nothing in the file says so.
func (v *converter) remarkVerl() {
	say := func(name, text string) { v.remarks = append(v.remarks, Note{Key: name, Text: text}) }
	if !v.written["reward.custom_reward_function.path"] && !v.written["custom_reward_function.path"] {
		say("data_source", "verl chooses a reward by this column: set reward.kind (docs/rewards.md); for GSM8K kind verify with the check {kind: number, from: hash, column: answer}, and data.columns: {answer: reward_model.ground_truth}")
	}
}

// tree is a nested configuration as dotted names in order, in which ${...} may stand for other values.
type tree struct {
	names  []string
	values map[string]*yaml.Node
	from   map[string]string
	outer  func(name string) (*yaml.Node, bool) // what a name has that is not in the tree
}

func newTree(outer func(name string) (*yaml.Node, bool)) *tree {
	return &tree{values: map[string]*yaml.Node{}, from: map[string]string{}, outer: outer}
}

func (t *tree) set(name string, n *yaml.Node, from string) {
	if t.values[name] == nil {
		t.names = append(t.names, name)
	}
	t.values[name], t.from[name] = n, from
}

// flatten adds a nested mapping; stop tells which names are whole values although they are mappings.
func (t *tree) flatten(prefix string, n *yaml.Node, file string, stop func(name string) bool) (err error) {
	return entries(n, file, func(key string, value *yaml.Node, from string) {
		name := prefix + key
		if value.Kind == yaml.MappingNode && !stop(name) {
			if e := t.flatten(name+".", value, file, stop); e != nil && err == nil {
				err = e
			}
			return
		}
		t.set(name, value, from)
	})
}

// maxDepth bounds interpolations that refer to each other.
const maxDepth = 20

// resolved is the value of a name with all ${...} replaced.
func (t *tree) resolved(name string) (*yaml.Node, error) { return t.value(name, t.values[name], 0) }

func (t *tree) value(name string, n *yaml.Node, depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("${...} refers to itself")
	}
	if n.Kind == yaml.SequenceNode {
		out := *n
		out.Content = nil
		for _, item := range n.Content {
			v, err := t.value(name, item, depth)
			if err != nil {
				return nil, err
			}
			out.Content = append(out.Content, v)
		}
		return &out, nil
	}
	if n.Kind != yaml.ScalarNode || !strings.Contains(n.Value, "${") {
		return n, nil
	}
	return t.text(name, n.Value, depth)
}

// text replaces the innermost ${...} until there is none. A value that is one ${...} alone keeps its kind.
func (t *tree) text(name, s string, depth int) (*yaml.Node, error) {
	for range maxDepth {
		start := strings.LastIndex(s, "${")
		if start < 0 {
			return scalar("!!str", s), nil
		}
		length := strings.IndexByte(s[start:], '}')
		if length < 0 {
			return nil, fmt.Errorf("%q has a ${ without its }", s)
		}
		end := start + length
		v, err := t.refer(name, s[start+2:end], depth)
		if err != nil {
			return nil, err
		}
		if start == 0 && end == len(s)-1 {
			return v, nil
		}
		if v.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%s is no text that could stand in %q", s[start:end+1], s)
		}
		s = s[:start] + v.Value + s[end+1:]
	}
	return nil, fmt.Errorf("has more than %d ${...}", maxDepth)
}

// refer is what stands for ${ref}: the value of another name, or of oc.select with its default.
func (t *tree) refer(name, ref string, depth int) (*yaml.Node, error) {
	resolver, args, called := strings.Cut(ref, ":")
	target := ref
	fallback, hasFallback := "", false
	switch {
	case called && resolver == "oc.select":
		target, fallback, hasFallback = strings.Cut(args, ",")
	case called:
		return nil, fmt.Errorf("${%s} is not in this file: write its value out", ref)
	}
	target = absolute(name, strings.TrimSpace(target))
	if n, ok := t.values[target]; ok {
		return t.value(target, n, depth+1)
	}
	if n, ok := t.outer(target); ok {
		return t.value(target, n, depth+1)
	}
	if hasFallback {
		return parseYAML(strings.TrimSpace(fallback))
	}
	return nil, fmt.Errorf("${%s} refers to %s, which is not in this file: write its value out", ref, target)
}

// absolute is the name that ref means in the value of name: .x is a sibling, ..x a sibling of the section.
func absolute(name, ref string) string {
	for strings.HasPrefix(ref, ".") {
		name = name[:max(0, strings.LastIndexByte(name, '.'))]
		ref = ref[1:]
		if !strings.HasPrefix(ref, ".") {
			return strings.TrimPrefix(name+"."+ref, ".")
		}
	}
	return ref
}
