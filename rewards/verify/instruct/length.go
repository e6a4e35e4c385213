package instruct

import (
	"regexp"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

var (
	// wordRun is \w+ of Python's regex module, with which NLTK tokenises: unlike re's it has combining marks and the
	// joiners, and of the numbers only digits and those that are letters too.
	wordRun = regexp.MustCompile(`[\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}` +
		`\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}]+`)
	divider = pytext.MustCompile(`\s?\*\*\*\s?`, "")
)

// numberWords counts words as NLTK's RegexpTokenizer does.
func numberWords(a *arguments) func(string) bool {
	enough := a.compare("num_words", "relation")
	return func(s string) bool { return enough(len(wordRun.FindAllStringIndex(s, -1))) }
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
