package english

import (
	"strings"
	"unicode"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// Syllables counts the syllables of a word as syllapy does: from its list, else the parts of a compound, else groups of
// vowels. A word with a digit, and one of punctuation alone, has 0.
func Syllables(word string) int {
	word = strings.Trim(pytext.Lower(pytext.Strip(word)), pytext.Punctuation)
	if word == "" || strings.IndexFunc(word, func(r rune) bool { return unicode.Is(unicode.Nd, r) }) >= 0 {
		return 0
	}
	if n, ok := syllables()[word]; ok {
		return n
	}
	if first, rest, ok := strings.Cut(word, "-"); ok && first != "" && rest != "" {
		a, b := Syllables(first), Syllables(rest)
		if a == 0 || b == 0 {
			return 0
		}
		return a + b
	}
	return vowelGroups([]rune(word))
}

// vowelGroups counts runs of vowels; a final e is silent, but not in -le behind a consonant.
func vowelGroups(word []rune) int {
	vowel := func(i int) bool { return strings.ContainsRune("aeiouy", word[i]) }
	n, last := 0, len(word)-1
	for i := range word {
		if vowel(i) && (i == 0 || !vowel(i-1)) {
			n++
		}
	}
	if word[last] == 'e' {
		n--
		if last > 1 && word[last-1] == 'l' && !vowel(last-2) {
			n++
		}
	}
	return max(n, 1)
}
