package instruct

import (
	"strings"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// existence: every keyword, a pattern without word bounds, is found.
func existence(a *arguments) func(string) bool {
	var checks []func(string) bool
	for _, keyword := range a.texts("keywords") {
		checks = append(checks, a.pattern("keywords", keyword, "i").MatchString)
	}
	return func(s string) bool {
		for _, found := range checks {
			if !found(s) {
				return false
			}
		}
		return true
	}
}

// frequency: the keyword, also inside longer words, occurs less often than, or at least as often as, a number.
func frequency(a *arguments) func(string) bool {
	keyword := a.pattern("keyword", pytext.Strip(a.text("keyword")), "i")
	enough := a.compare("frequency", "relation")
	return func(s string) bool { return enough(len(keyword.FindAllStringIndex(s, -1))) }
}

// forbiddenWords: no word of the list, which may be a pattern inside, stands between word bounds.
func forbiddenWords(a *arguments) func(string) bool {
	var checks []func(string) bool
	plain := func(r rune) bool { return !strings.ContainsRune(metacharacters, r) }
	for _, w := range a.texts("forbidden_words") {
		first, _ := utf8.DecodeRuneInString(w)
		last, _ := utf8.DecodeLastRuneInString(w)
		if w == "" || !plain(first) || !plain(last) || strings.Contains(w, "|") {
			a.fail("forbidden_words", "holds %q: a word must start and end with a plain character", w)
			continue
		}
		checks = append(checks, a.words("forbidden_words", w, w).MatchString)
	}
	return func(s string) bool {
		for _, found := range checks {
			if found(s) {
				return false
			}
		}
		return true
	}
}

const metacharacters = `\.+*?()|[]{}^$`

// letterFrequency: one character is counted in the lower-cased response.
func letterFrequency(a *arguments) func(string) bool {
	letter := pytext.Lower(pytext.Strip(a.text("letter")))
	if a.err == nil && utf8.RuneCountInString(letter) != 1 {
		a.fail("letter", "is %q, not one character", letter)
	}
	enough := a.compare("let_frequency", "let_relation")
	return func(s string) bool { return enough(strings.Count(pytext.Lower(s), letter)) }
}
