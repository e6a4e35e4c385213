package instruct

import (
	"strings"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/english"
	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// stopWords: at most such a percentage of the words are stop words; without words it fails.
func stopWords(a *arguments) func(string) bool {
	most := a.amount("percentage")
	return func(s string) bool {
		words := english.WordRuns(s)
		n := 0
		for _, w := range words {
			if english.IsStopWord(pytext.Lower(w)) {
				n++
			}
		}
		return len(words) > 0 && float64(n)/float64(len(words))*100 <= most
	}
}

// endings counts the sentences of s that end in mark.
func endings(sentences []string, mark string) int {
	n := 0
	for _, s := range sentences {
		if strings.HasSuffix(s, mark) {
			n++
		}
	}
	return n
}

// sentenceType: twice as many sentences end in a period as in a question mark.
func sentenceType(*arguments) func(string) bool {
	return func(s string) bool {
		sentences := english.Sentences(s)
		return endings(sentences, ".") == 2*endings(sentences, "?")
	}
}

// sentenceBalance: as many sentences end in a period as in a question mark and in an exclamation mark.
func sentenceBalance(*arguments) func(string) bool {
	return func(s string) bool {
		sentences := english.Sentences(s)
		n := endings(sentences, ".")
		return n == endings(sentences, "?") && n == endings(sentences, "!")
	}
}

// sentenceWords: three sentences of the same length. That their words differ, which the prompt asks for too, is not
// checked by the official code.
func sentenceWords(*arguments) func(string) bool {
	return func(s string) bool {
		sentences := english.Sentences(s)
		for _, t := range sentences {
			if utf8.RuneCountInString(pytext.Strip(t)) != utf8.RuneCountInString(pytext.Strip(sentences[0])) {
				return false
			}
		}
		return len(sentences) == 3
	}
}

// overlap: of the response's different runs of three characters such a percentage, two points more or less, occurs in a
// text too.
func overlap(a *arguments) func(string) bool {
	reference := trigrams(a.text("reference_text"))
	want := a.amount("percentage")
	return func(s string) bool {
		all := trigrams(s)
		n := 0
		for t := range all {
			if reference[t] {
				n++
			}
		}
		share := float64(n) / float64(len(all)) * 100
		return len(all) > 0 && want-2 <= share && share <= want+2
	}
}

func trigrams(s string) map[[3]rune]bool {
	runes := []rune(s)
	set := map[[3]rune]bool{}
	for i := range len(runes) - 2 {
		set[[3]rune(runes[i:])] = true
	}
	return set
}
