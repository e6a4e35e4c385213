package configs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file reads one YAML file. A name that no file has may be that of a configuration inside the binary, with or without its folder
// and ending.
func (l *loader) file(name string) {
	data, err := readFile(name)
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc yaml.Node
	if err := dec.Decode(&doc); err == io.EOF {
		return // empty: all defaults
	} else if err != nil {
		l.errs = append(l.errs, fmt.Errorf("%s: not valid YAML: %w", name, err))
		return
	}
	if err := dec.Decode(new(yaml.Node)); err != io.EOF {
		l.errs = append(l.errs, fmt.Errorf("%s: holds more than one document: remove what follows the second ---", name))
		return
	}
	l.mapping("", doc.Content[0], func(n *yaml.Node) string { return fmt.Sprintf("%s:%d", name, n.Line) })
}

// readFile reads a configuration file, or the one inside the binary that has this name.
func readFile(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if !errors.Is(err, os.ErrNotExist) {
		return data, err
	}
	base := strings.TrimSuffix(filepath.Base(name), ".yaml") + ".yaml"
	if data, err2 := embedded.ReadFile(base); err2 == nil {
		return data, nil
	}
	return nil, fmt.Errorf("%w; inside the binary are: %s", err, strings.Join(embeddedNames(), ", "))
}

// environment reads the RUBICON_ variables.
func (l *loader) environment(env []string) {
	vars := map[string]string{}
	for _, name := range l.allNames() {
		vars[envName(name)] = name
	}
	env = slices.Clone(env)
	slices.Sort(env)
	for _, e := range env {
		name, text, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		key, ok := vars[name]
		if !ok {
			names := slices.Sorted(maps.Keys(vars))
			l.fail("environment", name, "sets no key%s", cmp.Or(didYouMean(name, names), ": unset it"))
			continue
		}
		l.text(key, text, "environment variable "+name)
	}
}

// envName is the environment variable that sets a key.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// override reads one key=value.
func (l *loader) override(text string) {
	key, value, ok := strings.Cut(text, "=")
	if key = strings.TrimSpace(key); !ok || key == "" {
		l.errs = append(l.errs, fmt.Errorf("command line: %q is not key=value", text))
		return
	}
	l.text(key, value, "command line")
}

// text reads a key whose value is written as one string.
func (l *loader) text(key, text, from string) {
	if a, ok := l.aliases[key]; ok && a.def == "null" && (text == "null" || text == "None") {
		return // as TRL says "not set"
	}
	t := reflect.TypeFor[any]()
	if f, ok := l.schema.field(key); ok {
		t = f.Type
	} else if a, ok := l.aliases[key]; ok && a.convert == nil && a.special == nil {
		if f, ok := l.schema.field(a.path); ok {
			t = f.Type
		}
	} else if f, _, ok := l.schema.above(key); ok && f.Type.Kind() == reflect.Map {
		t = f.Type.Elem()
	}
	n, err := parseText(text, t)
	if err != nil {
		l.fail(from, key, "%w", err)
		return
	}
	l.entry(key, n, from, func(*yaml.Node) string { return from })
}
