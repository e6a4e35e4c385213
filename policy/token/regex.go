package token

import (
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// regexSplitter is the Split pre-tokenizer with any regular expression: pieces are the matches, the text between
// them, or both.
type regexSplitter struct {
	pattern       *regexp2.Regexp
	matches, gaps bool
	table         *runeTable
}

func (x regexSplitter) each(s string, piece func(string)) {
	text := x.text(s)
	from, fromRune := 0, 0 // end of the last piece, in bytes and in characters
	cut := func(end int, keep bool) {
		to := from
		for ; fromRune < end; fromRune++ {
			_, w := utf8.DecodeRuneInString(s[to:])
			to += w
		}
		if keep && to > from {
			piece(s[from:to])
		}
		from = to
	}
	// Matching fails only on a time-out, and none is set.
	for m, err := x.pattern.FindRunesMatch(text); err == nil && m != nil; m, err = x.pattern.FindNextMatch(m) {
		cut(m.Index, x.gaps)
		cut(m.Index+m.Length, x.matches)
	}
	cut(len(text), x.gaps)
}

// text is s for the matcher, which knows Go's \p{L} and \p{N}: a character that Hugging Face's Unicode version puts
// into another class than Go's is replaced by one that both put there.
func (x regexSplitter) text(s string) []rune {
	text := []rune(s)
	for i, r := range text {
		if r < 0x80 {
			continue
		}
		want := class(x.table.at(r))
		switch {
		case want == letter && !unicode.IsLetter(r):
			text[i] = '一'
		case want == number && !unicode.IsNumber(r):
			text[i] = '٠'
		case want == other && (unicode.IsLetter(r) || unicode.IsNumber(r)):
			text[i] = '\ufffd'
		}
	}
	return text
}
