package english

import (
	"embed"
	"encoding/binary"
	"strconv"
	"strings"
	"sync"

	"github.com/rubicon-rl/rubicon/rewards/internal/packed"
)

// The tables are described in SOURCE.md. Each is unpacked when it is first needed.
//
//go:embed data
var files embed.FS

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// set makes a set of texts.
func set(texts []string) map[string]bool {
	m := make(map[string]bool, len(texts))
	for _, t := range texts {
		m[t] = true
	}
	return m
}

// punktModel is what Punkt learnt from English newspapers.
type punktModel struct {
	abbreviations map[string]bool // without the final period
	collocations  map[string]bool // two types with a tab between them, the first of which may end in a period
	starters      map[string]bool // frequent first words of sentences
	contexts      map[string]int  // how a type has been seen: begin..., middle... below
}

var punkt = sync.OnceValue(func() *punktModel {
	sections := strings.Split(string(packed.Read(files, "data/punkt.txt.gz")), "\n\n")
	m := &punktModel{set(lines(sections[0])), set(lines(sections[1])), set(lines(sections[2])), map[string]int{}}
	for _, line := range lines(sections[3]) {
		word, flags, _ := strings.Cut(line, "\t")
		m.contexts[word], _ = strconv.Atoi(flags)
	}
	return m
})

// weight is what a feature adds to the score of a class.
type weight struct {
	class int
	value float64
}

// taggerModel is the averaged perceptron.
type taggerModel struct {
	classes []string // sorted
	fixed   map[string]string
	weights map[string][]weight
}

var tagger = sync.OnceValue(func() *taggerModel {
	head, features, _ := strings.Cut(string(packed.Read(files, "data/tagger.txt.gz")), "\n\n")
	top := lines(head)
	m := &taggerModel{strings.Fields(top[0]), map[string]string{}, map[string][]weight{}}
	for _, line := range top[1:] {
		word, tag, _ := strings.Cut(line, "\t")
		m.fixed[word] = tag
	}
	names := lines(features)
	columns := packed.Read(files, "data/tagger.bin.gz")
	counts := columns[:len(names)]
	total := 0
	for _, n := range counts {
		total += int(n)
	}
	classes, values := columns[len(names):][:total], columns[len(names)+total:]
	all := make([]weight, total)
	for i := range all {
		v, n := binary.Varint(values)
		values = values[n:]
		all[i] = weight{int(classes[i]), float64(v) / 1000}
	}
	for i, name := range names {
		m.weights[name], all = all[:counts[i]], all[counts[i]:]
	}
	return m
})

var stopWords = sync.OnceValue(func() map[string]bool {
	data, err := files.ReadFile("data/stopwords.txt")
	if err != nil {
		panic(err)
	}
	return set(lines(string(data)))
})

// IsStopWord tells whether word, in lower case, is one of NLTK's 179 English stop words.
func IsStopWord(word string) bool { return stopWords()[word] }

var syllables = sync.OnceValue(func() map[string]int {
	m := map[string]int{}
	for _, line := range lines(string(packed.Read(files, "data/syllables.txt.gz"))) {
		word, n, _ := strings.Cut(line, " ")
		m[word], _ = strconv.Atoi(n)
	}
	return m
})
