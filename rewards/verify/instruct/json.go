package instruct

import (
	"regexp"
	"strings"
)

// maxDepth bounds the nesting of a JSON text; Python gives up near the same depth.
const maxDepth = 990

var jsonNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?`)

// validJSON tells whether Python's json.loads accepts s. Unlike the standard, and unlike encoding/json, it takes NaN
// and the infinities, and surrogates without a partner.
func validJSON(s string) bool {
	p := &parser{rest: s}
	p.space()
	if !p.value(0) {
		return false
	}
	p.space()
	return p.rest == ""
}

// parser consumes a text from its front; each method tells whether it found what it is named after.
type parser struct{ rest string }

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t\n\r") }

func (p *parser) take(token string) bool {
	rest, ok := strings.CutPrefix(p.rest, token)
	p.rest = rest
	return ok
}

func (p *parser) value(depth int) bool {
	if depth > maxDepth {
		return false
	}
	for _, literal := range []string{"null", "true", "false", "NaN", "Infinity", "-Infinity"} {
		if p.take(literal) {
			return true
		}
	}
	switch {
	case p.take("{"):
		return p.list("}", func() bool {
			if !p.take(`"`) || !p.text() {
				return false
			}
			p.space()
			if !p.take(":") {
				return false
			}
			p.space()
			return p.value(depth + 1)
		})
	case p.take("["):
		return p.list("]", func() bool { return p.value(depth + 1) })
	case p.take(`"`):
		return p.text()
	}
	return p.number()
}

// list reads elements divided by commas up to the closing bracket.
func (p *parser) list(closing string, element func() bool) bool {
	p.space()
	if p.take(closing) {
		return true
	}
	for {
		if !element() {
			return false
		}
		p.space()
		if p.take(closing) {
			return true
		}
		if !p.take(",") {
			return false
		}
		p.space()
	}
}

// text reads a string behind its opening quotation mark.
func (p *parser) text() bool {
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return true
		case c < 0x20:
			return false
		case c == '\\':
			n := escapeLength(p.rest[i+1:])
			if n == 0 {
				return false
			}
			i += n
		}
	}
	return false
}

// escapeLength is the length of the escape sequence that s starts with, its backslash not counted; 0: none.
func escapeLength(s string) int {
	if s == "" {
		return 0
	}
	if s[0] != 'u' {
		return strings.Count(`"\/bfnrt`, s[:1])
	}
	if len(s) < 5 || strings.Trim(s[1:5], "0123456789abcdefABCDEF") != "" {
		return 0
	}
	return 5
}

func (p *parser) number() bool {
	n := len(jsonNumber.FindString(p.rest))
	p.rest = p.rest[n:]
	return n > 0
}
