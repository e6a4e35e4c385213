package ptxsim

import (
	"fmt"
	"strings"
)

// token is a word (name, opcode, directive, number), a string or a punctuation mark.
type token struct {
	text string
	line int
	at   int // offset in the source
}

// lex splits PTX into tokens, without comments. The last token is empty: the end.
func lex(src string) ([]token, error) {
	out := make([]token, 0, len(src)/4)
	line := 1
	for i := 0; i < len(src); {
		n, lines, skip := 1, 0, false
		switch c := src[i]; {
		case c == '\n':
			lines, skip = 1, true
		case c == ' ' || c == '\t' || c == '\r':
			skip = true
		case strings.HasPrefix(src[i:], "//"):
			n, skip = until(src[i:], "\n"), true
		case strings.HasPrefix(src[i:], "/*"):
			n, skip = until(src[i:], "*/")+2, true
			if i+n > len(src) {
				return nil, fmt.Errorf("line %d: the comment does not end", line)
			}
			lines = strings.Count(src[i:i+n], "\n")
		case c == '"':
			n = 2 + until(src[i+1:], "\"")
			if i+n > len(src) || strings.Contains(src[i:i+n], "\n") {
				return nil, fmt.Errorf("line %d: the string does not end", line)
			}
		case inWord(c) || c == '-' && i+1 < len(src) && '0' <= src[i+1] && src[i+1] <= '9':
			n = wordLength(src[i:])
		case !strings.ContainsRune(",;:{}[]()<>+-!@|=", rune(c)):
			return nil, fmt.Errorf("line %d: unexpected character %q", line, c)
		}
		if !skip {
			out = append(out, token{src[i : i+n], line, i})
		}
		i, line = i+n, line+lines
	}
	return append(out, token{"", line, len(src)}), nil
}

// until is how many bytes of s come before mark; all if it does not occur.
func until(s, mark string) int {
	if i := strings.Index(s, mark); i >= 0 {
		return i
	}
	return len(s)
}

func inWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_$%.", c) >= 0
}

// wordLength is the length of the word that s begins with. Opcodes may have "::" within.
func wordLength(s string) int {
	n := 1
	for n < len(s) {
		switch {
		case inWord(s[n]):
			n++
		case strings.HasPrefix(s[n:], "::") && n+2 < len(s) && inWord(s[n+2]):
			n += 2
		default:
			return n
		}
	}
	return n
}
