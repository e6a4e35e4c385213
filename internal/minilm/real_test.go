//go:build slow

package minilm

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// realDir is all-MiniLM-L6-v2's folder.
func realDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("RUBICON_TEST_MINILM")
	if dir == "" {
		t.Fatal("set RUBICON_TEST_MINILM to the folder of all-MiniLM-L6-v2")
	}
	return dir
}

// The vectors are those of sentence-transformers.
func TestRealVectors(t *testing.T) {
	e := openOn(t, realDir(t))
	var cases []struct {
		Text      string
		IDs       []int32
		Embedding []float64
	}
	text, err := os.ReadFile(filepath.Join("testdata", "embeddings.json"))
	must(t, err)
	must(t, json.Unmarshal(text, &cases))
	var texts []string
	for _, c := range cases {
		texts = append(texts, c.Text)
		if ids := e.tok.encode(c.Text, e.cfg.maxTokens); !slices.Equal(ids, c.IDs) {
			t.Errorf("%.40q: ids %v, want %v", c.Text, ids, c.IDs)
		}
	}
	vectors, err := e.Embed(t.Context(), texts)
	must(t, err)
	worst := 0.0
	for i, c := range cases {
		for j, want := range c.Embedding {
			worst = max(worst, math.Abs(want-float64(vectors[i][j])))
		}
	}
	if t.Logf("off by %.2g at most", worst); worst > 1e-5 {
		t.Error("that is above 1e-5")
	}
}

// vocab.txt says the same as tokenizer.json.
func TestRealVocabulary(t *testing.T) {
	w, err := loadWordPieces(realDir(t))
	must(t, err)
	v, err := loadVocab(realDir(t))
	must(t, err)
	if !maps.Equal(v.vocab, w.vocab) {
		t.Errorf("%d and %d tokens", len(v.vocab), len(w.vocab))
	}
	v.vocab, w.vocab = nil, nil
	if !reflect.DeepEqual(v, w) {
		t.Errorf("%+v and %+v", v, w)
	}
}

func BenchmarkReal(b *testing.B) {
	e := openOn(b, realDir(b))
	for name, text := range map[string]string{"256 tokens": strings.Repeat("word ", 300), "30 tokens": strings.Repeat("word ", 28)} {
		b.Run(name, func(b *testing.B) {
			texts := slices.Repeat([]string{text}, 16)
			for b.Loop() {
				_, err := e.Embed(b.Context(), texts)
				must(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(16*b.N), "ms/text")
		})
	}
}
