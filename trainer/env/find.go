package env

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/rubicon-rl/rubicon/rewards"
)

const retrieverBM25 = "bm25"

// finder finds the paragraph of an episode that fits a query best.
type finder interface {
	// best is the place of the nearest text, the first of several; -1: no text is near at all.
	best(ctx context.Context, texts []string, query string) (int, error)
}

func newFinder(run Run, name string) (finder, error) {
	switch {
	case name == retrieverBM25:
		return byWords{}, nil
	case run.Embedder == nil:
		return nil, fmt.Errorf("%q cannot be opened here: use %s", name, retrieverBM25)
	}
	e, err := run.Embedder(name)
	return &byMeaning{embedder: e, known: map[string][]float32{}}, err
}

// byWords ranks by BM25.
type byWords struct{}

func (byWords) best(_ context.Context, texts []string, query string) (int, error) {
	return newBM25(texts).best(query), nil
}

// byMeaning ranks by the cosine of vectors.
type byMeaning struct {
	embedder rewards.Embedder

	mu    sync.Mutex
	known map[string][]float32 // vectors of paragraphs, which come again in every episode of a row
}

// maxKnown vectors are kept.
const maxKnown = 1 << 16

func (f *byMeaning) best(ctx context.Context, texts []string, query string) (int, error) {
	vectors, err := f.vectors(ctx, append(slices.Clone(texts), query))
	if err != nil {
		return 0, err
	}
	n := len(texts)
	at, most := -1, 0.0
	for i, v := range vectors[:n] {
		if c := cosine(vectors[n], v); c > most {
			at, most = i, c
		}
	}
	return at, nil
}

// vectors embeds the texts that are not known.
func (f *byMeaning) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	var missing []string
	f.mu.Lock()
	for i, text := range texts {
		if out[i] = f.known[text]; out[i] == nil {
			missing = append(missing, text)
		}
	}
	f.mu.Unlock()
	if len(missing) == 0 {
		return out, nil
	}
	made, err := f.embedder.Embed(ctx, missing)
	if err == nil && len(made) != len(missing) {
		err = fmt.Errorf("embedder %s gave %d vectors for %d texts", f.embedder.Name(), len(made), len(missing))
	}
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) > maxKnown {
		clear(f.known)
	}
	for i := range out {
		if out[i] == nil {
			out[i], made = made[0], made[1:]
			f.known[texts[i]] = out[i]
		}
	}
	return out, nil
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}
