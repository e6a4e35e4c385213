package rubricmem

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// The similarities are those of the angles that the vectors were given, 0, 60 and 90 degrees; their lengths do not count.
func TestSearch(t *testing.T) {
	e := &table{vectors: map[string][]float32{
		"east": {3, 0}, "east-north-east": {1, float32(math.Sqrt(3))}, "north": {0, 0.5}, "west": {-1, 0}, "?": {20, 0},
	}}
	m := open(t, Options{Embedder: e})
	p := doc("b", StepSummary, 2, "east-north-east")
	p.Scope, p.Prompt = "p7", "p7"
	must(t, m.Add(t.Context(), doc("d", Analysis, 1, "north"), p, doc("c", Analysis, 3, "east"), doc("z", Analysis, 3, "west")))
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{}, "c b d z"},
		{Filter{Kinds: []Kind{Analysis}}, "c d z"},
		{Filter{Kinds: []Kind{StepSummary, UpdateRecord, StepSummary}}, "b"},
		{Filter{Scope: "global", Before: 3}, "d"},
		{Filter{Prompt: "p7"}, "b"},
		{Filter{Before: 1}, ""},
	} {
		hits, err := m.Search(t.Context(), []string{"?"}, 9, c.f)
		must(t, err)
		if ids(hits[0]) != c.want {
			t.Errorf("%+v: found %q, want %q", c.f, ids(hits[0]), c.want)
		}
	}
	hits, err := m.Search(t.Context(), []string{"?", "west"}, 2, Filter{})
	must(t, err)
	if ids(hits[0]) != "c b" || ids(hits[1]) != "z d" {
		t.Errorf("found %q and %q", ids(hits[0]), ids(hits[1]))
	}
	for i, want := range []float64{1, 0.5} {
		if got := float64(hits[0][i].Similarity); math.Abs(got-want) > 1e-6 {
			t.Errorf("similarity %v of hit %d, want %v", got, i, want)
		}
	}
}

// A search that can find nothing says so.
func TestBadSearches(t *testing.T) {
	m := open(t, Options{})
	for _, bad := range []struct {
		queries []string
		d       int
		f       Filter
	}{{[]string{"?"}, 0, Filter{}}, {[]string{" "}, 1, Filter{}}, {[]string{"?"}, 1, Filter{Kinds: []Kind{"song"}}}} {
		if _, err := m.Search(t.Context(), bad.queries, bad.d, bad.f); err == nil {
			t.Errorf("no error for %+v", bad)
		}
	}
}

// Among documents with equal vectors those with the lowest IDs are found, each time and whatever else is there: chromem alone
// would return any of them.
func TestTiesAreByID(t *testing.T) {
	same := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	e := &table{vectors: map[string][]float32{"?": same}}
	m := open(t, Options{Embedder: e})
	for i := range 300 {
		text := fmt.Sprint("text ", i)
		e.vectors[text] = same
		must(t, m.Add(t.Context(), doc(fmt.Sprintf("doc %03d", (i*77)%300), Kinds()[i%4], i, text)))
	}
	for range 20 {
		hits, err := m.Search(t.Context(), []string{"?"}, 3, Filter{})
		must(t, err)
		if got := ids(hits[0]); got != "doc 000 doc 001 doc 002" {
			t.Fatalf("found %q", got)
		}
	}
	hits, err := m.Search(t.Context(), []string{"?"}, 2, Filter{Before: 4}) // 0, 77, 154 and 231 are of the steps 0 to 3
	must(t, err)
	if got := ids(hits[0]); got != "doc 000 doc 077" {
		t.Errorf("found %q before step 4", got)
	}
}

// Search agrees with sorting all documents by the cosine in float64.
func TestSearchIsExact(t *testing.T) {
	m := open(t, Options{Embedder: &table{}})
	var all []Doc
	for i := range 500 {
		all = append(all, doc(fmt.Sprintf("%03d", i), Kinds()[i%4], i%10, fmt.Sprint("text ", i)))
	}
	must(t, m.Add(t.Context(), all...))
	for q := range 10 {
		query, f := fmt.Sprint("query ", q), Filter{Before: q, Kinds: Kinds()[:1+q%4]}
		want := slices.DeleteFunc(slices.Clone(all), func(d Doc) bool { return q > 0 && d.Step >= q || !slices.Contains(f.Kinds, d.Kind) })
		slices.SortFunc(want, func(a, b Doc) int {
			if cosine(query, a.Text) > cosine(query, b.Text) {
				return -1
			}
			return 1
		})
		hits, err := m.Search(t.Context(), []string{query}, 7, f)
		must(t, err)
		if ids(hits[0]) != ids(want[:7]) {
			t.Errorf("query %d: found %q, want %q", q, ids(hits[0]), ids(want[:7]))
		}
	}
}

func cosine(a, b string) float64 {
	var ab, aa, bb float64
	x, y := spread(a, 8), spread(b, 8)
	for i := range x {
		p, q := float64(x[i]), float64(y[i])
		ab, aa, bb = ab+p*q, aa+p*p, bb+q*q
	}
	return ab / math.Sqrt(aa*bb)
}
