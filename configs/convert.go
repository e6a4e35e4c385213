package configs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rubicon-rl/rubicon/grpo"
)

// Source is a configuration of another framework.
type Source struct {
	Name      string   // of the file, for messages; "" if there is none
	Data      []byte   // YAML or JSON
	Overrides []string // key=value, which win over the file
	GPUs      int      // how many the other framework's run has, whose batches are per GPU; 0: 1
}

// Conversion is what such a configuration means here, in one process.
type Conversion struct {
	YAML    []byte // a valid configuration file, unless Batches says otherwise
	Missing []Note // what has no equal and is left out, and what to do instead
	Ignored []Note // what is not needed here
	Batches error  // why its batch sizes do not fit together; nil if they do
}

// framework is one whose configurations can be converted.
type framework struct {
	name  string                 // "TRL"
	table []alias                // its names
	skip  func(name string) bool // whether its default is not taken over
}

// converter turns the entries of one configuration into a loader's values.
type converter struct {
	framework
	*loader
	written map[string]bool // names in the file or in overrides
	remarks []Note          // for the list of what is missing
}

func newConverter(f framework) *converter {
	l := newLoader()
	l.aliases = map[string]alias{}
	for _, a := range f.table {
		l.aliases[a.name] = a
	}
	return &converter{framework: f, loader: l, written: map[string]bool{}}
}

// defaultFrom is where a value stands that nobody wrote.
func (v *converter) defaultFrom() string { return v.name + "'s default" }

// put reads one name with its value.
func (v *converter) put(name string, n *yaml.Node, from string) {
	v.written[name] = true
	a, ok := find(v.aliases, name)
	switch {
	case !ok:
		v.fail(from, name, "is no name of %s that is known here%s", v.framework.name, didYouMean(name, v.knownNames()))
	case isNull(n) && (a.def == "null" || a.def == ""):
	case a.convert == nil && a.special == nil && a.path != "":
		v.putPlain(a, n, from)
	default:
		v.alias(a, n, from)
	}
}

// putPlain sets the key or section that a means, text as lists and numbers where the key wants those.
func (v *converter) putPlain(a alias, n *yaml.Node, from string) {
	if f, ok := v.schema.field(a.path); ok {
		if len(f.Enum) > 0 && n.ShortTag() == "!!bool" {
			n.Tag = "!!str"
		}
		if n.Kind == yaml.ScalarNode && f.Type.Kind() == reflect.Slice {
			if list, err := parseText(n.Value, f.Type); err == nil {
				n = list
			}
		}
	}
	v.give(a, n, from)
}

func (v *converter) knownNames() []string {
	var names []string
	for _, a := range v.table {
		names = append(names, a.name)
	}
	return names
}

// putDefaults reads the framework's defaults of all names that are not written and whose key nothing else sets.
func (v *converter) putDefaults() {
	for _, a := range v.table {
		if v.written[a.name] || a.path == "" || a.def == "" || a.def == "null" || v.layer[a.path] != nil || v.skip(a.name) {
			continue
		}
		n, err := parseYAML(a.def)
		if err != nil {
			continue // TestConvertDefaults
		}
		v.put(a.name, n, v.defaultFrom())
	}
}

// finish resolves everything. What is faulty is left out and listed.
func (v *converter) finish(gpus int) *Conversion {
	v.commit()
	c := Default()
	v.fill(c)
	v.resolve(c, nil)
	v.scale(c, gpus)
	v.drop(c)
	out := &Conversion{Missing: append(v.missing(), v.remarks...)}
	for _, n := range v.notes {
		if strings.HasPrefix(n.Text, "ignored: ") {
			out.Ignored = append(out.Ignored, n)
		}
	}
	batches := ""
	var b grpo.Batching
	if b, out.Batches = c.Batching(1); out.Batches == nil {
		batches = b.String()
	}
	out.YAML = v.print(c, out.Missing, batches)
	return out
}

// scale makes the batches of one process as large as those of all GPUs together.
func (v *converter) scale(c *Config, gpus int) {
	if gpus < 2 || c.Data.TrainBatchSize > 0 {
		return
	}
	times := func(path string, n *int) {
		*n *= gpus
		name := cmp.Or(v.names[path], "gradient_accumulation_steps")
		v.sources[path], v.names[path] = cmp.Or(v.sources[path], v.defaultFrom()), fmt.Sprintf("%s x %d GPUs", name, gpus)
	}
	times("optim.gradient_accumulation_steps", &c.Optim.GradientAccumulationSteps)
	if c.GRPO.StepsPerGeneration != nil {
		times("grpo.steps_per_generation", c.GRPO.StepsPerGeneration)
	}
}

// drop sets keys that are faulty back to the default, until nothing is; each that somebody wrote is listed.
func (v *converter) drop(c *Config) {
	d := Default()
	for range v.schema.fields {
		faults := c.faults()
		i := slices.IndexFunc(faults, func(f Fault) bool { return v.isSet(f.Path) })
		if i < 0 {
			return
		}
		path := faults[i].Path
		f, _ := v.schema.field(path)
		f.get(c).Set(f.get(d))
		c.complete()
		if from := v.sources[path]; from != v.defaultFrom() {
			v.errs = append(v.errs, problem{from, v.names[path], fmt.Errorf("left out: %s", faults[i].Text)})
		}
		delete(v.sources, path)
	}
}

// missing lists the faults as what has no equal.
func (v *converter) missing() []Note {
	var list []Note
	for _, err := range v.errs {
		var p problem
		if errors.As(err, &p) {
			list = append(list, Note{p.key, p.from, p.err.Error()})
		} else {
			list = append(list, Note{Text: err.Error()})
		}
	}
	return list
}

// entries are the pairs of a mapping, in order, each with its line.
func entries(n *yaml.Node, file string, each func(name string, value *yaml.Node, from string)) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("%s is not a mapping: write key: value lines", file)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
			return fmt.Errorf("%s:%d: a key must be plain text", file, k.Line)
		}
		if seen[k.Value] {
			return fmt.Errorf("%s:%d: %s stands twice: remove one", file, k.Line, k.Value)
		}
		seen[k.Value] = true
		each(k.Value, n.Content[i+1], fmt.Sprintf("%s:%d", file, k.Line))
	}
	return nil
}

// parseSource reads the file of a source; nil: it has none.
func parseSource(s Source) (*yaml.Node, error) {
	if s.Name == "" {
		return nil, nil
	}
	n, err := parseYAML(string(s.Data))
	if err != nil {
		return nil, fmt.Errorf("%s: neither YAML nor JSON: %w", s.Name, err)
	}
	if isNull(n) {
		return nil, nil
	}
	return n, nil
}

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
		if comment == f.Key() {
			comment = ""
		}
		if from == v.defaultFrom() {
			comment = v.defaultFrom() + ": " + v.names[f.Path]
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
	text := "Made from a configuration of " + v.framework.name + ". Behind a key stands the name that it comes from, if that is another."
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
