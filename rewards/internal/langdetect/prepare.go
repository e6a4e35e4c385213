package langdetect

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Lengths beyond which the rest is not looked at.
const (
	maxText = 10000
	maxURL  = 2076
)

var (
	url  = regexp.MustCompile(`https?://[-_.?&~;+=/#0-9A-Za-z]`)
	mail = regexp.MustCompile(`[-_.0-9A-Za-z]{1,64}@[-_0-9A-Za-z]{1,255}[-_.0-9A-Za-z]{1,255}`)
)

// prepare leaves out addresses, joins spaces and Vietnamese tone marks, and drops the Latin letters of a text that is
// mostly not Latin.
func prepare(text string) []rune {
	text = withoutURLs(text)
	if strings.Contains(text, "@") {
		text = mail.ReplaceAllString(text, " ")
	}
	var kept []rune
	previous := rune(0)
	for i, r := range joinTones([]rune(text)) {
		if i == maxText {
			break
		}
		if r != ' ' || previous != ' ' {
			kept = append(kept, r)
		}
		previous = r
	}
	return withoutLatin(kept)
}

func withoutURLs(text string) string {
	var b strings.Builder
	for {
		m := url.FindStringIndex(text)
		if m == nil {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:m[0]] + " ")
		end := m[1]
		for end < len(text) && end-m[1]+1 < maxURL && isURL(text[end]) {
			end++
		}
		text = text[end:]
	}
}

func isURL(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || strings.IndexByte("-_.?&~;+=/#", c) >= 0
}

// joinTones makes one character of a Vietnamese vowel and the tone mark behind it.
func joinTones(text []rune) []rune {
	out := text[:0]
	for i := 0; i < len(text); i++ {
		r := text[i]
		if i+1 < len(text) && strings.ContainsRune("\u0300\u0301\u0303\u0309\u0323", text[i+1]) &&
			strings.ContainsRune("AEIOUYaeiouyÂÊÔâêôĂăƠơƯư", r) {
			r, _ = utf8.DecodeRuneInString(norm.NFC.String(string(text[i : i+2])))
			i++
		}
		out = append(out, r)
	}
	return out
}

func withoutLatin(text []rune) []rune {
	latin, other := 0, 0
	isLatin := func(r rune) bool { return 'A' <= r && r <= 'z' }
	for _, r := range text {
		if isLatin(r) {
			latin++
		} else if r >= 0x300 && (r < 0x1e00 || r > 0x1eff) {
			other++
		}
	}
	if latin*2 >= other {
		return text
	}
	out := text[:0]
	for _, r := range text {
		if !isLatin(r) {
			out = append(out, r)
		}
	}
	return out
}
