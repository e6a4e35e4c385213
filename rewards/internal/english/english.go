// Package english takes English text apart as the Python libraries do that the official checks of IFEval and IFBench
// call: sentences, words and tags as NLTK 3.10 (sent_tokenize, word_tokenize, pos_tag and a RegexpTokenizer of \w+),
// syllables as syllapy 0.8. All functions are safe for concurrent use.
package english

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// WordRuns returns the runs of word characters, NLTK's RegexpTokenizer(r"\w+").
func WordRuns(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !isWord(r) })
}

// isWord is \w. NLTK runs its patterns in Python's regex module, whose \w is wider than that of re, which package
// pytext has: combining marks and the joiners belong to it; of the numbers only digits and those that are letters too.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || r == '_'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc) ||
		r == 0x200c || r == 0x200d || 0x24b6 <= r && r <= 0x24e9 ||
		0x1f130 <= r && r <= 0x1f149 || 0x1f150 <= r && r <= 0x1f169 || 0x1f170 <= r && r <= 0x1f189
}

// isSpace is the \s of the regex module, which lacks the separators U+001C to U+001F.
func isSpace(r rune) bool { return unicode.IsSpace(r) }

// at is the character of s at byte i, or -1 behind its end.
func at(s string, i int) rune {
	if i >= len(s) {
		return -1
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return r
}

// before is the character of s that ends at byte i, or -1 at its start.
func before(s string, i int) rune {
	if i <= 0 {
		return -1
	}
	r, _ := utf8.DecodeLastRuneInString(s[:i])
	return r
}
