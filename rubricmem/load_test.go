package rubricmem

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkOpen opens a log of 100,000 documents with 384 numbers each, and BenchmarkSearch asks one query of it.
func BenchmarkOpen(b *testing.B) {
	dir := large(b)
	for b.Loop() {
		m, err := Open(Options{Dir: dir, Embedder: wide{}})
		must(b, err)
		if m.Len() != largeDocs {
			b.Fatalf("%d documents", m.Len())
		}
		must(b, m.Close())
	}
}

func BenchmarkSearch(b *testing.B) {
	m := open(b, Options{Dir: large(b), Embedder: wide{}})
	for b.Loop() {
		_, err := m.Search(b.Context(), []string{"text 7"}, 10, Filter{})
		must(b, err)
	}
}

const largeDocs = 100_000

func large(b *testing.B) string {
	dir := b.TempDir()
	m, err := Open(Options{Dir: dir, Embedder: wide{}})
	must(b, err)
	var list []Doc
	for i := range largeDocs {
		list = append(list, doc(fmt.Sprint("step-", i/256, "-", i), Kinds()[i%4], i/256, fmt.Sprintf("text %d: %300d", i, i)))
		if len(list) == 250 {
			must(b, m.Add(b.Context(), list...))
			list = nil
		}
	}
	must(b, m.Close())
	return dir
}

// wide gives vectors of 384 numbers.
type wide struct{ short }

func (wide) Embed(_ context.Context, texts []string) ([][]float32, error) {
	list := make([][]float32, len(texts))
	for i, text := range texts {
		list[i] = spread(text, 384)
	}
	return list, nil
}
