package english

import (
	"strings"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// Tag gives each word its part of speech under the Penn Treebank's names, as NLTK's pos_tag does: an averaged
// perceptron over the word, its neighbours and the two tags before it. A word's tag depends on those before it and on
// the next two words.
func Tag(words []string) []string {
	m := tagger()
	context := []string{"-START-", "-START2-"}
	for _, w := range words {
		context = append(context, normalize(w))
	}
	context = append(context, "-END-", "-END2-")
	tags := make([]string, len(words))
	last, last2 := context[0], context[1]
	for i, w := range words {
		tag, ok := m.fixed[w]
		if !ok {
			tag = m.best(features(w, context[i:i+5], last, last2))
		}
		tags[i] = tag
		last, last2 = tag, last
	}
	return tags
}

// normalize makes words alike whose spelling says little.
func normalize(word string) string {
	first, _ := utf8.DecodeRuneInString(word)
	switch {
	case strings.Contains(word, "-") && word[0] != '-':
		return "!HYPHEN"
	case pytext.IsDigit(word) && utf8.RuneCountInString(word) == 4:
		return "!YEAR"
	case pytext.IsDigit(string(first)):
		return "!DIGITS"
	}
	return pytext.Lower(word)
}

// features lists what the tagger sees of a word: near holds it, normalised, between its two neighbours on each side,
// and last and last2 are the tags before it.
func features(word string, near []string, last, last2 string) []string {
	_, size := utf8.DecodeRuneInString(word)
	return []string{
		"bias",
		"i suffix " + suffix(word),
		"i pref1 " + word[:size],
		"i-1 tag " + last,
		"i-2 tag " + last2,
		"i tag+i-2 tag " + last + " " + last2,
		"i word " + near[2],
		"i-1 tag+i word " + last + " " + near[2],
		"i-1 word " + near[1],
		"i-1 suffix " + suffix(near[1]),
		"i-2 word " + near[0],
		"i+1 word " + near[3],
		"i+1 suffix " + suffix(near[3]),
		"i+2 word " + near[4],
	}
}

// suffix is the last three characters of a word.
func suffix(word string) string {
	start := len(word)
	for range 3 {
		_, size := utf8.DecodeLastRuneInString(word[:start])
		start -= size
	}
	return word[start:]
}

// best is the class with the highest score; of equal ones the last in the order of names.
func (m *taggerModel) best(features []string) string {
	scores := make([]float64, len(m.classes))
	for _, f := range features {
		for _, w := range m.weights[f] {
			scores[w.class] += w.value
		}
	}
	best := 0
	for i, s := range scores {
		if s >= scores[best] {
			best = i
		}
	}
	return m.classes[best]
}
