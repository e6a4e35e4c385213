// Package pytext gives text the meaning that Python's str and re give it, so that checks whose official code is
// Python decide alike here: white space, lower case, letters and digits are Unicode's, and patterns are compiled
// with Python's classes instead of Go's ASCII ones.
package pytext

import (
	"strings"
	"unicode"
)

// IsSpace is str.isspace for one character: Unicode white space and the four separators U+001C to U+001F.
func IsSpace(r rune) bool {
	return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f
}

// IsWord tells whether the regular expression \w matches r: a letter, a number of any kind, or the underscore.
// Combining marks are not word characters in Python.
func IsWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
}

// Strip is s.strip().
func Strip(s string) string { return strings.TrimFunc(s, IsSpace) }

// Blank tells whether s.strip() is empty.
func Blank(s string) bool { return Strip(s) == "" }

// Fields is s.split().
func Fields(s string) []string { return strings.FieldsFunc(s, IsSpace) }

// Lower is s.lower(): the full Unicode mapping, in which İ becomes two characters and a capital sigma that ends a
// word becomes ς (Unicode 3.13, Final_Sigma).
func Lower(s string) string {
	if !strings.ContainsAny(s, "İΣ") {
		return strings.ToLower(s)
	}
	runes := []rune(s)
	var b strings.Builder
	for i, r := range runes {
		switch {
		case r == 'İ':
			b.WriteString("i\u0307")
		case r == 'Σ' && finalSigma(runes, i):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// finalSigma: a cased letter stands before position i and none behind it, case-ignorable characters left out.
func finalSigma(runes []rune, i int) bool {
	before := i - 1
	for before >= 0 && caseIgnorable(runes[before]) {
		before--
	}
	after := i + 1
	for after < len(runes) && caseIgnorable(runes[after]) {
		after++
	}
	return before >= 0 && cased(runes[before]) && (after == len(runes) || !cased(runes[after]))
}

// cased is Unicode's property of the same name.
func cased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

// caseIgnorable is Unicode's property Case_Ignorable: marks, format characters, modifiers, and the punctuation that
// may stand inside a word.
func caseIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		strings.ContainsRune("'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a", r)
}
