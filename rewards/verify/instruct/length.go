package instruct

import (
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/internal/english"
	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

var divider = pytext.MustCompile(`\s?\*\*\*\s?`, "")

// numberSentences counts sentences as NLTK does.
func numberSentences(a *arguments) func(string) bool {
	enough := a.compare("num_sentences", "relation")
	return func(s string) bool { return enough(len(english.Sentences(s))) }
}

// numberWords counts words as NLTK's RegexpTokenizer does.
func numberWords(a *arguments) func(string) bool {
	enough := a.compare("num_words", "relation")
	return func(s string) bool { return enough(len(english.WordRuns(s))) }
}

// numberParagraphs: paragraphs divided by ***; a blank one is left out at either end and fails in between.
func numberParagraphs(a *arguments) func(string) bool {
	want := a.number("num_paragraphs")
	return func(s string) bool {
		n, ok := countParts(divider.Split(s, -1))
		return ok && n == want
	}
}

// countParts counts parts, the first and the last only if they are not blank; a blank one between them is not ok.
func countParts(parts []string) (n int, ok bool) {
	for i, p := range parts {
		switch {
		case !pytext.Blank(p):
			n++
		case i != 0 && i != len(parts)-1:
			return 0, false
		}
	}
	return n, true
}

// nthParagraphFirstWord: so many paragraphs divided by blank lines, the nth of which starts with a word. As in the
// official code the index runs over all parts and the limit over those that are not blank.
func nthParagraphFirstWord(a *arguments) func(string) bool {
	want, nth, first := a.number("num_paragraphs"), a.number("nth_paragraph"), pytext.Lower(a.text("first_word"))
	if a.err == nil && nth < 1 {
		a.fail("nth_paragraph", "is %d: the first paragraph is 1", nth)
	}
	return func(s string) bool {
		parts := strings.Split(s, "\n\n")
		n := 0
		for _, p := range parts {
			if !pytext.Blank(p) {
				n++
			}
		}
		if nth > n || n != want {
			return false
		}
		fields := pytext.Fields(parts[nth-1])
		return len(fields) > 0 && firstWord(fields[0]) == first
	}
}

// firstWord is token in lower case without quotation marks before it and without anything from the first punctuation
// mark on.
func firstWord(token string) string {
	token = strings.TrimLeft(strings.TrimLeft(token, "'"), `"`)
	if i := strings.IndexAny(token, `.,?!'"`); i >= 0 {
		token = token[:i]
	}
	var b strings.Builder
	for _, r := range token { // one character at a time: a final sigma stays σ
		b.WriteString(pytext.Lower(string(r)))
	}
	return b.String()
}
