package rubricmem

import (
	"context"
	"hash/fnv"
	"math"
	"strings"
	"unicode"
)

const (
	lexicalName = "lexical 1" // to be raised when a vector changes
	lexicalDims = 512
	wordWeight  = 2.0 // of a word against a run of letters in it
)

// Lexical is an Embedder that needs no model: texts are similar when they share words, or parts of words. It gives the same
// vector for the same text everywhere.
//
// A text is put in lower case and cut into words at spaces; what is not a letter or digit is stripped from a word's ends,
// unless nothing else is in it. A word w counts as itself, with weight 2, and by the runs of 3, 4 and 5 characters of <w>, with
// weight 1. A feature that occurs n times adds its weight times 1 + ln n to one of 512 numbers, or subtracts it, as the bits of
// its FNV-1a hash say; then the vector is brought to length 1.
func Lexical() Embedder { return lexical{} }

type lexical struct{}

func (lexical) Name() string { return lexicalName }

func (lexical) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	list := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list[i] = lexicalVector(text)
	}
	return list, nil
}

// feature is a word or a part of one, and how often it occurs.
type feature struct {
	hash   uint64
	weight float64
	count  int
}

// lexicalVector is zero only for a text without any word.
func lexicalVector(text string) []float32 {
	list := features(text)
	if len(list) == 0 {
		return make([]float32, lexicalDims)
	}
	sums, squares := make([]float64, lexicalDims), 0.0
	for _, f := range list {
		x := f.weight * (1 + math.Log(float64(f.count)))
		if f.hash>>63 == 1 {
			x = -x
		}
		sums[f.hash%lexicalDims] += x
	}
	for _, x := range sums {
		squares += x * x
	}
	if squares == 0 { // they cancel each other, which a few can
		sums[list[0].hash%lexicalDims], squares = 1, 1
	}
	vector := make([]float32, lexicalDims)
	for i, x := range sums {
		vector[i] = float32(x / math.Sqrt(squares))
	}
	return vector
}

// features are those of a text, in the order in which they occur first.
func features(text string) []feature {
	var list []feature
	at := map[string]int{}
	count := func(s string, weight float64) {
		i, ok := at[s]
		if !ok {
			h := fnv.New64a()
			h.Write([]byte(s))
			i, at[s] = len(list), len(list)
			list = append(list, feature{hash: h.Sum64(), weight: weight})
		}
		list[i].count++
	}
	for _, word := range strings.Fields(strings.ToLower(text)) {
		if bare := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }); bare != "" {
			word = bare
		}
		count(word, wordWeight)
		runes := []rune("<" + word + ">")
		for n := 3; n <= 5; n++ {
			for i := 0; i+n <= len(runes); i++ {
				count("#"+string(runes[i:i+n]), 1)
			}
		}
	}
	return list
}
