package configs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/config.md and default.yaml")

// words are values that YAML would take for something else, or that are hard to write.
var words = []string{"", "a", "null", "~", "true", "no", "1e3", "0x1F", "010", "2024-01-02", " lead", "trail ", "two\nlines\n", "\ttab",
	"日本語 é", "# no comment", "a: b", "- a", "{a}", "[", "'", `"`, `\`, "\x01\x7f", "\u2028", "<<", "=", "&a", "*a", "!t", "%", "@", "`", "a #b", "...", "---", "?", "|", ">", "1_000", ".5", ".inf"}

// random fills v with values of its type, valid or not.
func random(v reflect.Value, r *rand.Rand, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			random(v.Field(i), r, depth)
		}
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			random(v.Elem(), r, depth)
		} else {
			v.SetZero()
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.String:
		v.SetString(words[r.IntN(len(words))])
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(1<<uint(1+r.IntN(62))) - r.Int64N(1<<20))
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -1, 0.1, 1e-5, 1e21, 1e20, 123456789, r.NormFloat64(), r.ExpFloat64() * 1e-300}[r.IntN(10)])
	case reflect.Interface:
		kinds := []reflect.Type{reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[float64]()}
		if depth < 3 {
			kinds = append(kinds, reflect.TypeFor[map[string]any](), reflect.TypeFor[[]any]())
		}
		if i := r.IntN(len(kinds) + 1); i < len(kinds) {
			x := reflect.New(kinds[i]).Elem()
			if x.Kind() == reflect.Map { // inside a value of any type, empty is not nil
				x.Set(reflect.MakeMap(kinds[i]))
			} else if x.Kind() == reflect.Slice {
				x.Set(reflect.MakeSlice(kinds[i], 0, 0))
			}
			random(x, r, depth+1)
			v.Set(x)
		} else {
			v.SetZero()
		}
	case reflect.Slice:
		n := 0
		if depth < 3 {
			n = r.IntN(3)
		}
		if v.Type().Elem().Kind() != reflect.Interface {
			v.SetZero()
		}
		for range n {
			x := reflect.New(v.Type().Elem()).Elem()
			random(x, r, depth+1)
			v.Set(reflect.Append(v, x))
		}
	case reflect.Map:
		n := r.IntN(4)
		if n > 0 && v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		} else if n == 0 && depth == 0 {
			v.SetZero()
		}
		for range n {
			x := reflect.New(v.Type().Elem()).Elem()
			random(x, r, depth+1)
			v.SetMapIndex(reflect.ValueOf(words[1+r.IntN(len(words)-1)]), x)
		}
	default:
		panic(fmt.Sprint("no random ", v.Type()))
	}
}

// parse loads one file without the checks of Validate.
func parse(t *testing.T, data []byte) *Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLoader()
	l.file(path)
	l.commit()
	c := Default()
	l.fill(c)
	l.resolve(c, []string{path})
	for _, err := range l.errs {
		t.Fatalf("%v in\n%s", err, data)
	}
	if len(l.notes) > 0 {
		t.Fatalf("notes %v", l.notes)
	}
	return c
}

// Print and Load are inverse, for any values.
func TestPrintLoad(t *testing.T) {
	for seed := range uint64(300) {
		c := Default()
		if seed > 0 {
			random(reflect.ValueOf(c).Elem(), rand.New(rand.NewPCG(seed, 0)), 0)
		}
		c.complete()
		c.RunName, c.OutputDir = cmp.Or(c.RunName, "x"), cmp.Or(c.OutputDir, "y") // as after loading, never empty
		var out bytes.Buffer
		if err := Print(&out, c); err != nil {
			t.Fatal(err)
		}
		if got := parse(t, out.Bytes()); !reflect.DeepEqual(got, c) {
			t.Fatalf("seed %d: got %+v\nwant %+v\n%s", seed, got, c, out.String())
		}
	}
}

// Every key is documented, every bound is a number, every default within its bounds.
func TestTags(t *testing.T) {
	s := newSchema()
	if len(s.fields) < 100 {
		t.Errorf("only %d keys", len(s.fields))
	}
	seen := map[string]string{}
	for _, f := range s.fields {
		if f.Doc == "" || f.Key() == "" || strings.ToLower(f.Path) != f.Path {
			t.Errorf("%q: doc %q", f.Path, f.Doc)
		}
		if other := seen[envName(f.Path)]; other != "" {
			t.Errorf("%s and %s share the variable %s", other, f.Path, envName(f.Path))
		}
		seen[envName(f.Path)] = f.Path
		sf := reflect.TypeFor[Config]().FieldByIndex(f.index)
		for tag, b := range map[string]*float64{"min": f.Min, "above": f.Above, "max": f.Max} {
			if _, ok := sf.Tag.Lookup(tag); ok && b == nil {
				t.Errorf("%s: tag %s is not a number", f.Path, tag)
			}
		}
	}
	for _, x := range s.sections {
		if x.doc == "" {
			t.Errorf("section %s has no doc", x.path)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

// What the reference says of section grpo is what grpo checks: its words are the allowed ones, its bounds hold.
func TestGRPODocs(t *testing.T) {
	docs := grpoDocs()
	s := newSchema()
	for key := range docs {
		if _, ok := s.field("grpo." + key); !ok {
			t.Errorf("grpo.%s is documented but is no key", key)
		}
	}
	for _, key := range grpoCopies() {
		if _, ok := s.field("grpo." + key); ok {
			t.Errorf("grpo.%s is a copy and must not be a key", key)
		}
	}
	faulty := func(override string) bool {
		_, _, err := Load(nil, []string{"grpo.dynamic_sampling=true", "grpo.beta=0.1", override}, nil)
		return err != nil
	}
	for _, f := range s.fields {
		if f.Section() != "grpo" {
			continue
		}
		for _, word := range f.Enum {
			if faulty(f.Path+"="+word) && word != "normalize_then_sum" {
				t.Errorf("%s=%s is refused", f.Path, word)
			}
		}
		if f.Enum != nil && !faulty(f.Path+"=nonsense") {
			t.Errorf("%s=nonsense is accepted", f.Path)
		}
		if f.Min != nil && !faulty(fmt.Sprintf("%s=%v", f.Path, *f.Min-1)) {
			t.Errorf("%s=%v is accepted, below its lowest value", f.Path, *f.Min-1)
		}
	}
}

// The schema is JSON, knows every key and foreign name, and every default satisfies it.
func TestSchema(t *testing.T) {
	var out bytes.Buffer
	if err := Schema(&out); err != nil {
		t.Fatal(err)
	}
	type node struct {
		Properties           map[string]json.RawMessage
		AdditionalProperties any
		Type                 any
		Description          string
		Default              any
		Enum                 []any
	}
	read := func(raw []byte) node {
		var n node
		if err := json.Unmarshal(raw, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	root := read(out.Bytes())
	for _, f := range newSchema().fields {
		n := root
		for key := range strings.SplitSeq(f.Path, ".") {
			raw, ok := n.Properties[key]
			if !ok {
				t.Fatalf("%s is not in the schema", f.Path)
			}
			n = read(raw)
		}
		if n.Description != f.Doc {
			t.Errorf("%s: description %q", f.Path, n.Description)
		}
		if n.Enum != nil && !strings.Contains(fmt.Sprint(n.Enum), fmt.Sprint(n.Default)) {
			t.Errorf("%s: default %v is not among %v", f.Path, n.Default, n.Enum)
		}
	}
	for name := range aliasTable() {
		top, _, _ := strings.Cut(name, ".")
		if _, ok := root.Properties[top]; !ok {
			t.Errorf("%s is not in the schema", name)
		}
	}
	if root.AdditionalProperties != false {
		t.Error("unknown keys are allowed")
	}
}

// The files in the repository are what the code writes now.
func TestReference(t *testing.T) {
	for path, write := range map[string]func(*bytes.Buffer) error{
		"../docs/config.md": func(b *bytes.Buffer) error { return Reference(b) },
		"default.yaml":      func(b *bytes.Buffer) error { return Print(b, Default()) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, out.Bytes()) {
			t.Errorf("%s is out of date: go test ./configs -run TestReference -update", path)
		}
	}
}
