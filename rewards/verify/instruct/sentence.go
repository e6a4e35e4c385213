package instruct

import (
	"regexp"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/internal/english"
	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// alliterationIncrement: each sentence has more words that start like a neighbour than the sentence before.
func alliterationIncrement(*arguments) func(string) bool {
	return func(s string) bool {
		previous := -1
		for _, sentence := range english.Sentences(s) {
			n := alliteration(sentence)
			if n <= previous {
				return false
			}
			previous = n
		}
		return true
	}
}

// alliteration counts the words in runs of words that start with the same letter.
func alliteration(sentence string) int {
	n := 0
	before := rune(-1)
	run := false
	for _, w := range pytext.Fields(pytext.Lower(sentence)) {
		if w = strings.TrimLeft(w, marks); w == "" {
			continue
		}
		same := first(w) == before
		if same && !run {
			n++ // the word before
		}
		if same {
			n++
		}
		before, run = first(w), same
	}
	return n
}

// increment: each sentence has exactly so many words more than the one before.
func increment(a *arguments) func(string) bool {
	by := a.number("small_n")
	return func(s string) bool {
		sentences := english.Sentences(s)
		for i := range len(sentences) - 1 {
			if len(plainWords(sentences[i+1])) != len(plainWords(sentences[i]))+by {
				return false
			}
		}
		return true
	}
}

// sentenceKeyword: the keyword stands, between word bounds, in the N-th sentence.
func sentenceKeyword(a *arguments) func(string) bool {
	keyword, n := a.text("word"), a.positive("N")
	found := a.words("word", keyword, regexp.QuoteMeta(keyword))
	return func(s string) bool {
		sentences := english.Sentences(s)
		return len(sentences) >= n && found.MatchString(sentences[n-1])
	}
}
