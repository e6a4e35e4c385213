package rubricmem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, o Options) *Memory {
	t.Helper()
	m, err := Open(o)
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	return m
}

// table is an embedder that looks vectors up, and counts what it is asked.
type table struct {
	vectors map[string][]float32
	name    string
	calls   atomic.Int64
	texts   atomic.Int64
	most    atomic.Int64
}

func (e *table) Name() string { return "table" + e.name }

func (e *table) Embed(_ context.Context, texts []string) ([][]float32, error) {
	e.calls.Add(1)
	e.texts.Add(int64(len(texts)))
	e.most.Store(max(e.most.Load(), int64(len(texts))))
	list := make([][]float32, len(texts))
	for i, text := range texts {
		v, ok := e.vectors[text]
		if !ok {
			v = spread(text, 8)
		}
		list[i] = slices.Clone(v)
	}
	return list, nil
}

// spread is a vector that depends on a text.
func spread(text string, dims int) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func doc(id string, kind Kind, step int, text string) Doc {
	return Doc{ID: id, Kind: kind, Scope: "global", Step: step, Text: text}
}

func ids[T Doc | Hit](list []T) string {
	var names []string
	for _, x := range list {
		switch x := any(x).(type) {
		case Doc:
			names = append(names, x.ID)
		case Hit:
			names = append(names, x.ID)
		}
	}
	return strings.Join(names, " ")
}

// The same ID is added once, and of the same text one document is found; a new text under an old ID is refused whole.
func TestDuplicates(t *testing.T) {
	m := open(t, Options{})
	must(t, m.Add(t.Context(), doc("b", Analysis, 1, "the same"), doc("a", StepSummary, 2, "the same"), doc("b", Analysis, 1, "the same")))
	must(t, m.Add(t.Context(), doc("a", StepSummary, 2, "the same")))
	if m.Len() != 2 {
		t.Errorf("%d documents", m.Len())
	}
	hits, err := m.Search(t.Context(), []string{"same"}, 5, Filter{})
	must(t, err)
	if ids(hits[0]) != "a" {
		t.Errorf("found %q", ids(hits[0]))
	}
	if err := m.Add(t.Context(), doc("new", Analysis, 1, "new"), doc("a", StepSummary, 2, "different")); err == nil || m.Len() != 2 {
		t.Errorf("error %v, %d documents", err, m.Len())
	}
	if err := m.Add(t.Context(), doc("x", Analysis, 1, "one"), doc("x", Analysis, 1, "two")); err == nil || m.Len() != 2 {
		t.Errorf("error %v, %d documents", err, m.Len())
	}
}

// A text is embedded once, in batches, and never again after a restart: it stands in the log.
func TestTextsAreEmbeddedOnce(t *testing.T) {
	e, dir := &table{}, t.TempDir()
	m, err := Open(Options{Dir: dir, Embedder: e})
	must(t, err)
	var docs []Doc
	for i := range 150 {
		docs = append(docs, doc(fmt.Sprint(i), Analysis, i, fmt.Sprint("text ", i/2)))
	}
	must(t, m.Add(t.Context(), docs...))
	before, err := m.Search(t.Context(), []string{"text 3", "q"}, 5, Filter{})
	must(t, err)
	if e.texts.Load() != 76 || e.calls.Load() != 3 || e.most.Load() != 64 {
		t.Errorf("%d texts in %d calls of up to %d", e.texts.Load(), e.calls.Load(), e.most.Load())
	}
	must(t, m.Close())
	e = &table{}
	m = open(t, Options{Dir: dir, Embedder: e})
	must(t, m.Add(t.Context(), doc("again", UpdateRecord, 9, "text 5")))
	after, err := m.Search(t.Context(), []string{"text 3"}, 5, Filter{Kinds: []Kind{Analysis}})
	must(t, err)
	if e.texts.Load() != 0 {
		t.Errorf("%d texts were embedded again", e.texts.Load())
	}
	if !reflect.DeepEqual(after[0], before[0]) {
		t.Errorf("found %v after a restart, %v before", after[0], before[0])
	}
}

// faulty gives the vectors that it is told to.
type faulty struct{ list [][]float32 }

func (faulty) Name() string { return "faulty" }

func (e faulty) Embed(context.Context, []string) ([][]float32, error) { return e.list, nil }

// A vector without a direction, or of another length, is refused; chromem would take it and find nothing ever after.
func TestBadVectors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for name, list := range map[string][][]float32{
		"zero": {{1, 0}, {0, 0}}, "NaN": {{1, 0}, {nan, 1}}, "infinite": {{1, 0}, {1, inf}}, "longer": {{1, 0}, {1, 0, 0}},
		"empty": {{}, {}}, "one missing": {{1, 0}}, "one too many": {{1, 0}, {1, 0}, {1, 0}},
	} {
		m := open(t, Options{Embedder: faulty{list}})
		if err := m.Add(t.Context(), doc("a", Analysis, 1, "a"), doc("b", Analysis, 1, "b")); err == nil {
			t.Errorf("%s: no error", name)
		}
		if m.Len() != 0 || m.Size() != 0 {
			t.Errorf("%s: %d documents, %d bytes", name, m.Len(), m.Size())
		}
	}
	m := open(t, Options{Embedder: &table{vectors: map[string][]float32{"long": {1, 2, 3}}}})
	must(t, m.Add(t.Context(), doc("a", Analysis, 1, "a")))
	if _, err := m.Search(t.Context(), []string{"long"}, 1, Filter{}); err == nil {
		t.Error("a query of another length: no error")
	}
}

func TestBadDocuments(t *testing.T) {
	m := open(t, Options{})
	for _, d := range []Doc{
		doc("", Analysis, 1, "x"), doc("a", "song", 1, "x"), doc("a", Analysis, 1, " \n"),
		{ID: "a", Kind: Analysis, Text: "x", Data: json.RawMessage("{")},
	} {
		if err := m.Add(t.Context(), doc("good", Analysis, 1, "good"), d); err == nil || m.Len() != 0 {
			t.Errorf("%+v: error %v, %d documents", d, err, m.Len())
		}
	}
}

func TestLast(t *testing.T) {
	m := open(t, Options{})
	must(t, m.Add(t.Context(), doc("a", StepSummary, 1, "a"), doc("b", StepSummary, 5, "b"), doc("c", StepSummary, 3, "c"),
		doc("d", Analysis, 4, "d"), doc("e", StepSummary, 5, "e")))
	for _, c := range []struct {
		n    int
		f    Filter
		want string
	}{
		{3, Filter{Kinds: []Kind{StepSummary}}, "e b c"}, {9, Filter{Before: 5}, "d c a"}, {0, Filter{}, ""}, {1, Filter{Scope: "other"}, ""},
	} {
		if got := ids(m.Last(c.n, c.f)); got != c.want {
			t.Errorf("last %d of %+v: %q, want %q", c.n, c.f, got, c.want)
		}
	}
}

// Adding, searching and listing at the same time is safe (with -race), and nothing is added twice.
func TestConcurrentUse(t *testing.T) {
	m := open(t, Options{Dir: t.TempDir()})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 20 {
				if err := m.Add(t.Context(), doc(fmt.Sprint(i), Kinds()[i%4], i, fmt.Sprint("text ", i)), doc(fmt.Sprint(w, " ", i), Analysis, i, "own")); err != nil {
					t.Error(err)
				}
				if _, err := m.Search(t.Context(), []string{"text 3"}, 3, Filter{}); err != nil {
					t.Error(err)
				}
				m.Last(3, Filter{})
				m.Size()
			}
		})
	}
	wg.Wait()
	if m.Len() != 20+4*20 {
		t.Errorf("%d documents", m.Len())
	}
}

func TestCancelledAddKeepsNothing(t *testing.T) {
	m := open(t, Options{Dir: t.TempDir()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Add(ctx, doc("a", Analysis, 1, "a")); !errors.Is(err, context.Canceled) || m.Len() != 0 {
		t.Errorf("error %v, %d documents", err, m.Len())
	}
}
