package rubricmem

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What was added after a checkpoint is gone after Truncate, for all who ask, and what is added then takes its place.
func TestTruncate(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		m := open(t, Options{Dir: dir})
		must(t, m.Add(t.Context(), doc("a", Analysis, 1, "first")))
		size := m.Size()
		must(t, m.Add(t.Context(), doc("b", Analysis, 2, "second"), doc("c", Analysis, 2, "third")))
		for _, bad := range []int64{-1, 5, size + 1, m.Size() + 1} {
			if err := m.Truncate(bad); err == nil || m.Len() != 3 {
				t.Fatalf("Truncate(%d): error %v, %d documents", bad, err, m.Len())
			}
		}
		before := m.All()
		must(t, m.Truncate(size))
		must(t, m.Add(t.Context(), doc("b", Analysis, 2, "another second")))
		if got := ids(slices.Collect(m.All())); got != "a b" || m.Len() != 2 {
			t.Errorf("documents %q", got)
		}
		if got := ids(slices.Collect(before)); got != "a b c" {
			t.Errorf("an older list changed to %q", got)
		}
		hits, err := m.Search(t.Context(), []string{"second"}, 5, Filter{})
		must(t, err)
		if ids(hits[0]) != "b a" {
			t.Errorf("found %q", ids(hits[0]))
		}
		must(t, m.Truncate(0))
		if _, ok := m.Get("a"); ok || m.Size() != 0 || m.Len() != 0 {
			t.Error("something is left of nothing")
		}
		must(t, m.Add(t.Context(), doc("a", Analysis, 1, "first")))
		if m.Size() != size {
			t.Errorf("size %d, before %d", m.Size(), size)
		}
	}
}

// Documents come back from the log as they are found before: data without needless spaces, no bytes that are not UTF-8.
func TestDocumentsAreTheSameAfterARestart(t *testing.T) {
	dir := t.TempDir()
	m, err := Open(Options{Dir: dir})
	must(t, err)
	data := json.RawMessage(`{ "ops": [1, "<b>&\u2028"] }`)
	d := Doc{ID: "é\xff", Kind: UpdateRecord, Scope: "<s>", Prompt: "p", Step: 7, Version: 3, Text: "t\xfe & <x>", Data: data}
	must(t, m.Add(t.Context(), d))
	must(t, m.Add(t.Context(), d))
	copy(data, "xxxxx")
	before := slices.Collect(m.All())
	must(t, m.Close())
	after := slices.Collect(open(t, Options{Dir: dir}).All())
	if len(before) != 1 || !reflect.DeepEqual(after, before) {
		t.Errorf("after a restart %+v, before %+v", after, before)
	}
	if got, want := string(after[0].Data), `{"ops":[1,"<b>&\u2028"]}`; got != want {
		t.Errorf("data %s, want %s", got, want)
	}
}

// Vectors of different models are not comparable: another embedder is refused, not mixed in.
func TestAnotherEmbedderIsRefused(t *testing.T) {
	dir := t.TempDir()
	m, err := Open(Options{Dir: dir, Embedder: &table{}})
	must(t, err)
	must(t, m.Add(t.Context(), doc("a", Analysis, 1, "a")))
	must(t, m.Close())
	if _, err := Open(Options{Dir: dir, Embedder: &table{name: "2"}}); err == nil || !strings.Contains(err.Error(), `"table"`) {
		t.Errorf("error %v", err)
	}
	r, err := Read(dir, &table{name: "2"})
	must(t, err)
	if _, err := r.Search(t.Context(), []string{"a"}, 1, Filter{}); err != nil {
		t.Errorf("a text that is in the memory has a vector there: %v", err)
	}
	if _, err := r.Search(t.Context(), []string{"b"}, 1, Filter{}); err == nil {
		t.Error("another model's vector was compared")
	}
}

// An embedder whose model is loaded later has no name yet when the memory is opened; it is looked at when it is needed.
func TestEmbedderThatIsNamedLater(t *testing.T) {
	dir, late := t.TempDir(), &later{}
	m, err := Open(Options{Dir: dir, Embedder: late})
	must(t, err)
	late.name = "first model"
	must(t, m.Add(t.Context(), doc("a", Analysis, 1, "a")))
	must(t, m.Close())
	late = &later{}
	m = open(t, Options{Dir: dir, Embedder: late})
	if m.EmbeddedBy() != "first model" {
		t.Errorf("embedded by %q", m.EmbeddedBy())
	}
	late.name = "another model"
	if err := m.Add(t.Context(), doc("b", Analysis, 1, "b")); err == nil || m.Len() != 1 {
		t.Errorf("error %v, %d documents", err, m.Len())
	}
	late.name = "first model"
	must(t, m.Add(t.Context(), doc("b", Analysis, 1, "b")))
}

// short is an embedder of little work.
type short struct{}

func (short) Name() string { return "short" }

func (short) Embed(_ context.Context, texts []string) ([][]float32, error) {
	list := make([][]float32, len(texts))
	for i, text := range texts {
		list[i] = []float32{1, float32(len(text))}
	}
	return list, nil
}

// later is an embedder that gets its name when it is opened.
type later struct {
	short
	name string
}

func (l *later) Name() string { return l.name }
