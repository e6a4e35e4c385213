package env

import (
	"math"
	"strings"
	"unicode"
)

// bm25 ranks a few paragraphs by the words of a query (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, eq. 3.15,
// with the logarithm that is never negative).
type bm25 struct {
	docs   []map[string]int
	length []float64
	mean   float64
	in     map[string]int // documents with the word
}

const bm25K, bm25B = 1.2, 0.75

func newBM25(texts []string) *bm25 {
	m := &bm25{in: map[string]int{}}
	for _, text := range texts {
		count := map[string]int{}
		list := terms(text)
		for _, w := range list {
			count[w]++
		}
		for w := range count {
			m.in[w]++
		}
		m.docs, m.length = append(m.docs, count), append(m.length, float64(len(list)))
		m.mean += float64(len(list)) / float64(len(texts))
	}
	return m
}

// terms are a text's runs of letters and digits, in lower case.
func terms(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// best is the place of the paragraph with the highest score, the first of several; -1 if none has a word of the query.
func (m *bm25) best(query string) int {
	at, most := -1, 0.0
	words := terms(query)
	for i := range m.docs {
		score := 0.0
		for _, w := range words {
			score += m.score(i, w)
		}
		if score > most {
			at, most = i, score
		}
	}
	return at
}

func (m *bm25) score(doc int, word string) float64 {
	f := float64(m.docs[doc][word])
	if f == 0 {
		return 0
	}
	n := float64(m.in[word])
	idf := math.Log(1 + (float64(len(m.docs))-n+0.5)/(n+0.5))
	return idf * f * (bm25K + 1) / (f + bm25K*(1-bm25B+bm25B*m.length[doc]/m.mean))
}
