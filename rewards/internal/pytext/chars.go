package pytext

import (
	"strings"
	"unicode"
)

// Punctuation is string.punctuation: the ASCII characters that are neither letters, digits nor space.
const Punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// Unpunctuated is s without the characters of Punctuation.
func Unpunctuated(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(Punctuation, r) {
			return -1
		}
		return r
	}, s)
}

// IsUpper is s.isupper(): there is a capital and no other cased character.
func IsUpper(s string) bool { return isCase(s, isUpper, isLower) }

// IsLower is s.islower(): there is a small letter and no other cased character.
func IsLower(s string) bool { return isCase(s, isLower, isUpper) }

func isCase(s string, want, other func(rune) bool) bool {
	found := false
	for _, r := range s {
		if other(r) || unicode.Is(unicode.Lt, r) {
			return false
		}
		found = found || want(r)
	}
	return found
}

// The derived properties Uppercase and Lowercase, which have more than letters.
func isUpper(r rune) bool { return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r) }
func isLower(r rune) bool { return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) }

// IsAlpha is str.isalpha for one character.
func IsAlpha(r rune) bool { return unicode.IsLetter(r) }

// IsAlnum is str.isalnum for one character.
func IsAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// otherDigits are the characters with a digit's value that are no decimal digits: superscripts, circled ones and so on.
var otherDigits = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xb2, 0xb3, 1}, {0xb9, 0xb9, 1}, {0x1369, 0x1371, 1}, {0x19da, 0x19da, 1}, {0x2070, 0x2070, 1},
		{0x2074, 0x2079, 1}, {0x2080, 0x2089, 1}, {0x2460, 0x2468, 1}, {0x2474, 0x247c, 1}, {0x2488, 0x2490, 1},
		{0x24ea, 0x24ea, 1}, {0x24f5, 0x24fd, 1}, {0x24ff, 0x24ff, 1}, {0x2776, 0x277e, 1}, {0x2780, 0x2788, 1},
		{0x278a, 0x2792, 1},
	},
	R32: []unicode.Range32{
		{0x10a40, 0x10a43, 1}, {0x10e60, 0x10e68, 1}, {0x11052, 0x1105a, 1}, {0x1f100, 0x1f10a, 1},
	},
	LatinOffset: 2,
}

// IsDigit is s.isdigit(): there are only characters with a digit's value, and at least one.
func IsDigit(s string) bool {
	for _, r := range s {
		if !unicode.Is(unicode.Nd, r) && !unicode.Is(otherDigits, r) {
			return false
		}
	}
	return s != ""
}

// Int is int(s) for a text of decimal digits of any script.
func Int(s string) int {
	n := 0
	for _, r := range s {
		n = n*10 + digitValue(r)
	}
	return n
}

// digitValue is the value of a decimal digit: Unicode gives them out by tens.
func digitValue(r rune) int {
	for _, t := range unicode.Nd.R16 {
		if lo := rune(t.Lo); lo <= r && r <= rune(t.Hi) {
			return int(r-lo) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if lo := rune(t.Lo); lo <= r && r <= rune(t.Hi) {
			return int(r-lo) % 10
		}
	}
	return 0
}
