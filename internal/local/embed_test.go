package local

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// openEmbedder makes an embedder over the tiny model, which is returned too.
func openEmbedder(t *testing.T) (*Embedder, *policy.Model) {
	t.Helper()
	tok, err := token.Load(tiny())
	must(t, err)
	dev, err := cpu.New(cpu.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, dev.Close()) })
	m, err := policy.Load(t.Context(), dev, tiny(), policy.LoadOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	e := NewEmbedder(tok)
	e.Bind(m)
	return e, m
}

// mean is that of a text's last hidden states, in float64; more than limit tokens are not seen.
func mean(t *testing.T, e *Embedder, m *policy.Model, text string, limit int) []float64 {
	t.Helper()
	ids := e.tok.Encode(text, token.EncodeOptions{AddSpecial: true, Plain: true})
	ids = ids[:min(len(ids), limit)]
	states, err := m.Hidden(&policy.Forest{Segments: []policy.Segment{{Parent: policy.Root, Tokens: ids}}}, "")
	must(t, err)
	list := make([]float64, m.Config().Width)
	for i, x := range states[0] {
		list[i%len(list)] += float64(x) / float64(len(ids))
	}
	return list
}

// A vector is the mean of its own text's states, though others are computed with it and the policy has an adapter; and it is
// the same bits alone.
func TestEmbeddings(t *testing.T) {
	e, m := openEmbedder(t)
	var texts []string
	for i := range 40 {
		texts = append(texts, strings.Repeat("The model repeats itself. ", 1+(i*7)%30)) // more than one pass has room for
	}
	vectors, err := e.Embed(t.Context(), texts)
	must(t, err)
	if len(vectors) != len(texts) {
		t.Fatalf("%d vectors", len(vectors))
	}
	limit := min(embedTokens, m.Config().MaxPositions)
	for i, text := range texts {
		want := mean(t, e, m, text, limit)
		for j := range want {
			if math.Abs(want[j]-float64(vectors[i][j])) > 1e-5 {
				t.Fatalf("text %d, number %d: %v, want %v", i, j, vectors[i][j], want[j])
			}
		}
	}
	alone, err := e.Embed(t.Context(), texts[3:4])
	must(t, err)
	if !slices.Equal(alone[0], vectors[3]) {
		t.Error("a text has other bits alone")
	}
}

// Of a text that is longer than the context its beginning counts.
func TestLongTextIsCut(t *testing.T) {
	e, m := openEmbedder(t)
	limit := min(embedTokens, m.Config().MaxPositions)
	text := strings.Repeat("a longer and longer text ", limit)
	vectors, err := e.Embed(t.Context(), []string{text})
	must(t, err)
	for j, want := range mean(t, e, m, text, limit) {
		if math.Abs(want-float64(vectors[0][j])) > 1e-5 {
			t.Fatalf("number %d: %v, want %v", j, vectors[0][j], want)
		}
	}
}

// Without a model there is an error and no name; with one, the name is the model's and the lock is held while it computes.
func TestEmbedderIsBoundLater(t *testing.T) {
	bound, m := openEmbedder(t)
	e := NewEmbedder(bound.tok)
	if _, err := e.Embed(t.Context(), []string{"x"}); err == nil || e.Name() != "" {
		t.Errorf("error %v, name %q", err, e.Name())
	}
	e.Bind(m)
	if want := "policy " + m.Fingerprint(); e.Name() != want {
		t.Errorf("name %q, want %q", e.Name(), want)
	}
	lock := &counting{}
	e.Lock = lock
	_, err := e.Embed(t.Context(), []string{"x"})
	must(t, err)
	if lock.n != 1 || !lock.TryLock() {
		t.Errorf("locked %d times", lock.n)
	}
	if _, err := e.Embed(t.Context(), []string{""}); err == nil {
		t.Error("an empty text: no error")
	}
}

// counting is a lock that counts how often it is taken.
type counting struct {
	sync.Mutex
	n int
}

func (c *counting) Lock() {
	c.Mutex.Lock()
	c.n++
}
