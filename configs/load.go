package configs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// envPrefix begins the names of all environment variables that set a key: RUBICON_OPTIM_LEARNING_RATE.
const envPrefix = "RUBICON_"

// Note tells the user of something that loading decided.
type Note struct {
	Key  string // the key as written
	From string // where: "file.yaml:12", a variable, the command line; "" if nothing was written
	Text string
}

func (n Note) String() string {
	if n.From == "" {
		return n.Key + ": " + n.Text
	}
	return n.From + ": " + n.Key + ": " + n.Text
}

// Load reads the files in order, then the RUBICON_ variables of env (as from os.Environ), then overrides ("key=value"); what
// comes later wins, lists as a whole, mappings key by key; another reward.kind or env.kind begins its options anew. The result is
// valid. The notes are for the user to see. The error joins all faults, each with its place and what to do.
func Load(files, overrides, env []string) (*Config, []Note, error) {
	l := newLoader()
	for _, file := range files {
		l.file(file)
		l.commit()
	}
	l.environment(env)
	l.commit()
	isKind := func(o string) bool { return strings.HasPrefix(o, "reward.kind=") || strings.HasPrefix(o, "env.kind=") }
	last := slices.DeleteFunc(slices.Clone(overrides), isKind)
	for _, o := range append(slices.DeleteFunc(slices.Clone(overrides), func(o string) bool { return !isKind(o) }), last...) {
		l.override(o)
		l.commit()
	}
	c := Default()
	l.fill(c)
	l.resolve(c, files)
	l.validate(c)
	for _, w := range c.GRPO.Warnings() {
		key, text, _ := strings.Cut(w, " ")
		l.notes = append(l.notes, Note{key, l.sources[key], text})
	}
	if err := errors.Join(l.errs...); err != nil {
		return nil, l.notes, err
	}
	return c, l.notes, nil
}

// leaf is a checked value on its way through viper, which leaves types that it does not know alone.
type leaf struct {
	value reflect.Value
	whole bool // of a mapping: it replaces what stands in earlier layers
}

// loader collects what the sources say, and every fault on the way.
type loader struct {
	schema  *schema
	aliases map[string]alias
	store   *viper.Viper
	layer   map[string]*leaf  // the source being read
	sources map[string]string // path -> where its value stands
	names   map[string]string // path -> the name that it was written under
	order   map[string]int    // path -> the layer that it was written in
	layers  int               // layers read so far
	pending pending
	notes   []Note
	errs    []error
}

func newLoader() *loader {
	return &loader{
		schema: newSchema(), aliases: aliasTable(), store: viper.New(),
		layer: map[string]*leaf{}, sources: map[string]string{}, names: map[string]string{}, order: map[string]int{},
	}
}

// problem is a fault in what is written.
type problem struct {
	from, key string
	err       error
}

func (p problem) Error() string { return fmt.Sprintf("%s: %s: %v", p.from, p.key, p.err) }

func (p problem) Unwrap() error { return p.err }

func (l *loader) fail(from, key, format string, args ...any) {
	l.errs = append(l.errs, problem{from, key, fmt.Errorf(format, args...)})
}

// mapping reads a section, or the whole file if path is "".
func (l *loader) mapping(path string, n *yaml.Node, at func(*yaml.Node) string) {
	if n.Kind != yaml.MappingNode {
		if !isNull(n) {
			l.fail(at(n), cmp.Or(path, "the file"), "is not a mapping: write key: value lines")
		}
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		key := strings.TrimPrefix(path+"."+k.Value, ".")
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
			l.fail(at(k), path, "a key must be plain text: write the keys out")
		} else if seen[k.Value] {
			l.fail(at(k), key, "stands twice: remove one")
		} else {
			l.entry(key, n.Content[i+1], at(k), at)
		}
		seen[k.Value] = true
	}
}

// entry reads one key and its value.
func (l *loader) entry(key string, n *yaml.Node, from string, at func(*yaml.Node) string) {
	a, isAlias := find(l.aliases, key)
	switch f, isField := l.schema.field(key); {
	case isField && isAlias && isNull(n) && a.def == "null": // as TRL says "not set"
	case isField:
		if len(f.Enum) > 0 && n.ShortTag() == "!!bool" {
			n.Tag = "!!str" // true among words is a word
		}
		l.set(f, n, key, from)
	case l.schema.isSection(key) && !(isAlias && n.Kind == yaml.ScalarNode && !isNull(n)):
		l.mapping(key, n, at)
	case isAlias && l.schema.isSection(a.path) && n.Kind == yaml.MappingNode:
		l.mapping(a.path, n, at)
	case isAlias:
		l.alias(a, n, from)
	case n.Kind == yaml.MappingNode && l.isAliasSection(key):
		l.mapping(key, n, at)
	default:
		l.below(key, n, from)
	}
}

// below reads a key that lies below a field: an entry of a mapping such as reward.options.
func (l *loader) below(key string, n *yaml.Node, from string) {
	f, rest, ok := l.schema.above(key)
	switch {
	case !ok:
		l.fail(from, key, "unknown key%s", cmp.Or(didYouMean(key, l.namesLike(key)), ": rubicon config print shows all keys"))
	case f.Type.Kind() == reflect.Slice:
		l.fail(from, key, "an item of a list cannot be set by itself: set %s as a whole", f.Path)
	case f.Type.Kind() != reflect.Map:
		l.fail(from, key, "%s is no section: set it itself", f.Path)
	default:
		parts := strings.Split(rest, ".")
		for _, part := range slices.Backward(parts) {
			n = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: part}, n}}
		}
		l.set(f, n, key, from)
	}
}

// set puts a value in the layer being read.
func (l *loader) set(f field, n *yaml.Node, key, from string) {
	v, err := decode(n, f.Type)
	if err != nil {
		l.fail(from, key, "%w", err)
		return
	}
	if l.layer[f.Path] != nil && f.Type.Kind() != reflect.Map {
		l.fail(from, key, "sets %s, which %s sets too: remove one", f.Path, l.sources[f.Path])
		return
	}
	x := &leaf{value: v, whole: isNull(n)}
	if before := l.layer[f.Path]; before != nil && !x.whole {
		x.value, x.whole = merged(before.value, v), before.whole
	}
	l.layer[f.Path] = x
	l.sources[f.Path], l.names[f.Path], l.order[f.Path] = from, key, l.layers
}

// commit makes the layer being read the strongest so far.
func (l *loader) commit() {
	for path, from := range l.pending.off {
		f, _ := l.schema.field(path)
		l.layer[path], l.sources[path], l.order[path] = &leaf{value: reflect.Zero(f.Type)}, from, l.layers
	}
	l.pending.off = nil
	l.newKind("reward", Default().Reward.Kind)
	l.newKind("env", "")
	for path, x := range l.layer {
		if before := l.stored(path); before != nil && x.value.Kind() == reflect.Map && !x.whole {
			x.value = merged(before.value, x.value)
		}
		l.store.Set(path, x)
	}
	l.layer = map[string]*leaf{}
	l.layers++
}

// stored is what earlier layers say; nil: nothing.
func (l *loader) stored(path string) *leaf {
	x, _ := l.store.Get(path).(*leaf)
	return x
}

// newKind begins the options of a section anew where the layer being read names another kind: those of the one before are none of
// this one's. before is the kind without any source.
func (l *loader) newKind(section, before string) {
	x, options := l.layer[section+".kind"], section+".options"
	if x == nil || l.stored(options) == nil {
		return
	}
	if earlier := l.stored(section + ".kind"); earlier != nil {
		before = earlier.value.String()
	}
	if before == x.value.String() {
		return
	}
	if l.layer[options] == nil {
		l.layer[options] = &leaf{value: reflect.Zero(reflect.TypeFor[map[string]any]())}
	}
	l.layer[options].whole = true
}

// fill writes everything that was set into c.
func (l *loader) fill(c *Config) {
	for _, f := range l.schema.fields {
		if x, ok := l.store.Get(f.Path).(*leaf); ok {
			f.get(c).Set(x.value)
		}
	}
}

// isSet tells whether any source set path.
func (l *loader) isSet(path string) bool { return l.sources[path] != "" }

// names are all keys that may be written.
func (l *loader) allNames() []string {
	var names []string
	for _, f := range l.schema.fields {
		names = append(names, f.Path)
	}
	for _, name := range slices.Sorted(maps.Keys(l.aliases)) {
		if !strings.HasSuffix(name, below) {
			names = append(names, name)
		}
	}
	return names
}

// namesLike are those that key may be a misspelling of: in a section, foreign names outside of it do not help.
func (l *loader) namesLike(key string) []string {
	section, _, below := strings.Cut(key, ".")
	return slices.DeleteFunc(l.allNames(), func(name string) bool {
		_, own := l.schema.field(name)
		return !own && below && !strings.HasPrefix(name, section+".")
	})
}

func (l *loader) isAliasSection(key string) bool {
	for name := range l.aliases {
		if strings.HasPrefix(name, key+".") {
			return true
		}
	}
	return false
}

// merged is the mapping a with the entries of b over it, nested mappings entry by entry.
func merged(a, b reflect.Value) reflect.Value {
	if !a.IsValid() || a.Len() == 0 {
		return b
	}
	m := reflect.MakeMap(a.Type())
	for _, from := range []reflect.Value{a, b} {
		for it := from.MapRange(); it.Next(); {
			v := it.Value()
			old := m.MapIndex(it.Key())
			switch {
			case old.IsValid() && isMapping(old) && isMapping(v):
				v = merged(old.Elem(), v.Elem())
			case old.IsValid() && v.Kind() == reflect.Struct:
				v = filled(v, old)
			}
			m.SetMapIndex(it.Key(), v)
		}
	}
	return m
}

// filled is the entry v of a mapping such as judge.tiers, with what it leaves out taken from old.
func filled(v, old reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(old)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			out.Field(i).Set(v.Field(i))
		}
	}
	return out
}

func isMapping(v reflect.Value) bool {
	return v.Kind() == reflect.Interface && v.Elem().Kind() == reflect.Map
}
