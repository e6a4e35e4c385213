package pytext

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// What Python's classes hold, as the inside of a Go character class.
const (
	space = `\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	word  = `\p{L}\p{N}_`
	digit = `\p{Nd}`
)

// equal lists the characters that Python's IGNORECASE holds for equal and Go's (?i) does not.
var equal = []string{"iIıİ", "\u0390\u1fd3", "\u03b0\u1fe3", "\ufb05\ufb06"}

// Compile compiles a Python pattern; flags is "", "i" (IGNORECASE), "m" (MULTILINE), "s" (DOTALL) or several of them.
// Look-around, back references and \b have no counterpart in Go's engine: they are errors, never a different meaning.
func Compile(pattern, flags string) (*regexp.Regexp, error) {
	t := translator{fold: strings.Contains(flags, "i"), lines: strings.Contains(flags, "m")}
	text, err := t.translate(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	if flags != "" {
		text = "(?" + flags + ")" + text
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return re, nil
}

// MustCompile is Compile for patterns that stand in the source.
func MustCompile(pattern, flags string) *regexp.Regexp {
	re, err := Compile(pattern, flags)
	if err != nil {
		panic(err)
	}
	return re
}

type translator struct {
	out   strings.Builder
	fold  bool // IGNORECASE
	lines bool // MULTILINE
	class bool // inside [...]
}

func (t *translator) translate(pattern string) (string, error) {
	escaped := false
	for _, r := range pattern {
		switch {
		case escaped:
			escaped = false
			if err := t.escape(r); err != nil {
				return "", err
			}
		case r == '\\':
			escaped = true
		default:
			t.plain(r)
		}
	}
	if escaped {
		return "", fmt.Errorf("a backslash ends it")
	}
	return t.out.String(), nil
}

// escape writes the sequence backslash r.
func (t *translator) escape(r rune) error {
	set := map[rune]string{'w': word, 's': space, 'd': digit, 'W': word, 'S': space, 'D': digit}[r]
	negated := set != "" && unicode.IsUpper(r)
	switch {
	case strings.ContainsRune("bB123456789", r):
		return fmt.Errorf(`\%c is not supported`, r)
	case r == 'Z':
		t.out.WriteString(`\z`)
	case set == "":
		t.out.WriteString(`\` + string(r))
	case t.class && negated:
		return fmt.Errorf(`\%c inside a character class is not supported`, r)
	case t.class:
		t.out.WriteString(set)
	case negated:
		t.out.WriteString("[^" + set + "]")
	default:
		t.out.WriteString("[" + set + "]")
	}
	return nil
}

func (t *translator) plain(r rune) {
	same := ""
	if t.fold {
		for _, e := range equal {
			if strings.ContainsRune(e, r) {
				same = e
			}
		}
	}
	switch {
	case r == '[' && !t.class:
		t.class = true
	case r == ']' && t.class:
		t.class = false
	case r == '$' && !t.class && !t.lines: // Python's $ also stands before a final newline
		t.out.WriteString(`(?:\n?\z)`)
		return
	case same != "" && t.class:
		t.out.WriteString(same)
		return
	case same != "":
		t.out.WriteString("[" + same + "]")
		return
	}
	t.out.WriteRune(r)
}
