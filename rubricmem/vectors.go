package rubricmem

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

const (
	maxDims    = 1 << 16 // length of a vector
	batchTexts = 64      // that are embedded at once
)

// vectors embeds texts, each only once. It keeps all vectors: those of documents have to be there anyway, and queries are few.
type vectors struct {
	embedder Embedder

	mu    sync.Mutex
	name  string // of the embedder of the vectors that are known; "": there are none
	dims  int    // 0: not known yet
	known map[[sha256.Size]byte][]float32
}

func key(text string) [sha256.Size]byte { return sha256.Sum256([]byte(text)) }

// by is the name of the embedder that made the vectors; "": there are none.
func (v *vectors) by() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.name
}

// learn notes the vector of a text.
func (v *vectors) learn(text string, vector []float32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known[key(text)] = vector
}

// of returns the unit vectors of texts.
func (v *vectors) of(ctx context.Context, texts []string) ([][]float32, error) {
	for batch := range slices.Chunk(v.unknown(texts), batchTexts) {
		if err := v.embed(ctx, batch); err != nil {
			return nil, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	list := make([][]float32, len(texts))
	for i, text := range texts {
		list[i] = v.known[key(text)]
	}
	return list, nil
}

// unknown are the texts, each once, that have no vector yet.
func (v *vectors) unknown(texts []string) (list []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := map[string]bool{}
	for _, text := range texts {
		if v.known[key(text)] == nil && !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
	}
	return list
}

// comparable reports an error if the embedder's vectors cannot be compared with those that are known.
func (v *vectors) comparable() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.embedder == nil {
		return errors.New("memory: it was opened without an embedder and cannot look for texts")
	}
	if name := v.embedder.Name(); v.name != "" && v.name != name {
		return fmt.Errorf("memory: its vectors are of the embedder %q and cannot be compared with those of %q: set the embedder back, or begin a new run folder", v.name, name)
	}
	return nil
}

func (v *vectors) embed(ctx context.Context, texts []string) error {
	if err := v.comparable(); err != nil {
		return err
	}
	for _, text := range texts {
		if strings.TrimSpace(text) == "" {
			return errors.New("memory: an empty text has no vector")
		}
	}
	list, err := v.embedder.Embed(ctx, texts)
	if err != nil {
		return fmt.Errorf("memory: embedding %d texts with %s: %w", len(texts), v.embedder.Name(), err)
	}
	if len(list) != len(texts) {
		return fmt.Errorf("memory: embedder %s gave %d vectors for %d texts", v.embedder.Name(), len(list), len(texts))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	dims := v.dims
	for i, x := range list {
		if dims == 0 {
			dims = len(x)
		}
		unit, err := unit(x, dims)
		if err != nil {
			return fmt.Errorf("memory: embedder %s, text %q: %w", v.embedder.Name(), shorten(texts[i]), err)
		}
		list[i] = unit
	}
	v.name, v.dims = v.embedder.Name(), dims
	for i, x := range list {
		v.known[key(texts[i])] = x
	}
	return nil
}

// unit is a new vector of length 1 in the direction of x, which has to have dims numbers.
func unit(x []float32, dims int) ([]float32, error) {
	if len(x) != dims || dims < 1 || dims > maxDims {
		return nil, fmt.Errorf("its vector has %d numbers, not %d: was another model put in the embedder's place?", len(x), dims)
	}
	norm, err := length(x)
	if err != nil {
		return nil, err
	}
	list := make([]float32, len(x))
	for i, a := range x {
		list[i] = float32(float64(a) / norm)
	}
	return list, nil
}

// length is that of a vector which has a direction.
func length(x []float32) (float64, error) {
	squares := 0.0
	for _, a := range x {
		squares += float64(a) * float64(a)
	}
	if math.IsNaN(squares) || math.IsInf(squares, 0) {
		return 0, errors.New("its vector has a number that is not finite")
	}
	if squares == 0 {
		return 0, errors.New("its vector is zero, which is similar to nothing")
	}
	return math.Sqrt(squares), nil
}

func shorten(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40]) + " ..."
	}
	return text
}
