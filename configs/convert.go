package configs

import (
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
	GPUs      int      // how many the other framework's run has; 0: as the file says, else 1
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
	sft   bool                   // there are no groups
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

// finish resolves everything. What is faulty is left out and listed; a default of the framework that is faulty too.
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
	if !v.sft {
		var b grpo.Batching
		if b, out.Batches = c.Batching(1); out.Batches == nil {
			batches = b.String()
		}
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

// drop sets keys that are faulty back to the default, until nothing is; each is listed.
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
		v.errs = append(v.errs, problem{v.sources[path], v.names[path], fmt.Errorf("left out: %s", faults[i].Text)})
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
