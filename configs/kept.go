package configs

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kept is a foreign value that waits until all others are read.
type kept struct {
	name  string
	node  *yaml.Node
	from  string
	layer int
}

// keep is a special that leaves a value to the resolving of its framework.
func keep(l *loader, a alias, n *yaml.Node, from string) error { return keepAs(a.name)(l, a, n, from) }

// keepAs is keep under another name, for options that have several.
func keepAs(id string) func(l *loader, a alias, n *yaml.Node, from string) error {
	return func(l *loader, a alias, n *yaml.Node, from string) error {
		if l.pending.kept == nil {
			l.pending.kept = map[string]kept{}
		}
		l.pending.kept[id] = kept{a.name, n, from, l.layers}
		return nil
	}
}

// take reads a kept value. A value that cannot be read is a fault and counts as not written.
func take[T any](l *loader, id string) (x T, k kept, ok bool) {
	if k, ok = l.pending.kept[id]; !ok {
		return x, k, false
	}
	v, err := decode(k.node, reflect.TypeFor[T]())
	if err != nil {
		l.fail(k.from, k.name, "%w", err)
		delete(l.pending.kept, id)
		return x, k, false
	}
	return v.Interface().(T), k, true
}

// takeOr is take with the value of one that is not written.
func takeOr[T any](l *loader, id string, otherwise T) (x T, k kept, ok bool) {
	if x, k, ok = take[T](l, id); !ok {
		x = otherwise
	}
	return x, k, ok
}

// settle sets a key to what kept values mean, unless a later layer sets it itself. The same layer must not do so too.
func (l *loader) settle(c *Config, path string, value any, by ...kept) {
	last, names := by[0], []string{}
	for _, k := range by {
		if k.layer > last.layer {
			last = k
		}
		names = append(names, k.name)
	}
	switch from, set := l.sources[path], l.isSet(path); {
	case set && l.order[path] > last.layer:
		return
	case set && l.order[path] == last.layer:
		l.fail(last.from, last.name, "sets %s, which %s sets too: remove one", path, from)
		return
	}
	f, _ := l.schema.field(path)
	v, to := reflect.ValueOf(value), f.get(c)
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	to.Set(v.Convert(to.Type()))
	l.sources[path], l.order[path], l.names[path] = last.from, last.layer, strings.Join(names, ", ")
}

// unused notes that a kept value has no effect.
func (l *loader) unused(k kept, why string) {
	l.notes = append(l.notes, Note{k.name, k.from, "ignored: " + why})
}
