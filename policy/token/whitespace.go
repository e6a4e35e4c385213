package token

import (
	"errors"
	"fmt"
	"strings"
)

// tagSource rewrites a Jinja template so that no white space depends on the engine: it applies trim_blocks,
// lstrip_blocks and the signs of {%- -%} {%+ +%} as Jinja does with the settings of transformers (gonja also strips
// blanks that stand behind something in their line), and removes the signs. Raw blocks and comments stay in place.
func tagSource(source string) (string, error) {
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	t := &tagger{rest: strings.TrimSuffix(source, "\n"), lineStart: true}
	for {
		i := tagStart(t.rest)
		if i < 0 {
			t.out.WriteString(t.rest)
			return t.out.String(), nil
		}
		text := t.text(i)
		if before, brace := strings.CutSuffix(text, "{"); brace { // would open another tag with the one behind it
			text = before + "{{ '{' }}"
		}
		t.out.WriteString(text)
		if err := t.tag(); err != nil {
			return "", err
		}
	}
}

// tagger is the state of tagSource.
type tagger struct {
	out       strings.Builder
	rest      string
	lineStart bool // what was written ends where a line starts
}

// tagStart is the place of the first tag, -1 if there is none.
func tagStart(s string) int {
	for from := 0; ; from++ {
		i := strings.IndexByte(s[from:], '{')
		if i < 0 || from+i+1 >= len(s) {
			return -1
		}
		from += i
		if c := s[from+1]; c == '{' || c == '%' || c == '#' {
			return from
		}
	}
}

// text takes i bytes from rest, which a tag follows, and returns what stays of them.
func (t *tagger) text(i int) string {
	text := t.rest[:i]
	t.rest = t.rest[i:]
	sign := byte(0)
	if len(t.rest) > 2 {
		sign = t.rest[2]
	}
	if sign == '-' {
		return strings.TrimRightFunc(text, isSpace)
	}
	if line := strings.LastIndexByte(text, '\n') + 1; sign != '+' && t.rest[1] != '{' && (line > 0 || t.lineStart) {
		if strings.TrimFunc(text[line:], isSpace) == "" {
			return text[:line]
		}
	}
	return text
}

// tag writes the tag at rest, without its signs, and drops the white space behind it that goes.
func (t *tagger) tag() error {
	kind := t.rest[1]
	inner := t.rest[2:]
	if inner != "" && (inner[0] == '-' || inner[0] == '+') {
		inner = inner[1:]
	}
	end, err := tagEnd(inner, kind)
	if err != nil {
		return err
	}
	body := inner[:end]
	sign := byte(0)
	if n := len(body); n > 0 && (body[n-1] == '-' || body[n-1] == '+' && kind != '{') {
		sign, body = body[n-1], body[:n-1]
	}
	t.rest = inner[end+2:]
	switch kind {
	case '{':
		t.out.WriteString("{{ " + body + " }}")
	case '#':
		t.out.WriteString("{##}")
	default:
		t.out.WriteString("{% " + body + " %}")
	}
	t.lineStart = false
	name := strings.TrimSpace(body)
	switch {
	case sign == '-':
		after := strings.TrimLeftFunc(t.rest, isSpace)
		t.lineStart = strings.HasSuffix(t.rest[:len(t.rest)-len(after)], "\n")
		t.rest = after
	case sign == 0 && kind != '{' && name != "raw" && strings.HasPrefix(t.rest, "\n"):
		t.rest, t.lineStart = t.rest[1:], true
	}
	if kind == '%' && name == "raw" {
		return t.raw()
	}
	return nil
}

// raw writes what stands before the endraw tag.
func (t *tagger) raw() error {
	for i := 0; i < len(t.rest); i++ {
		tag, ok := strings.CutPrefix(t.rest[i:], "{%")
		if ok && strings.HasPrefix(strings.TrimLeftFunc(strings.TrimLeft(tag, "-+"), isSpace), "endraw") {
			t.out.WriteString(t.text(i))
			return nil
		}
	}
	return errors.New("a raw block has no end")
}

// tagEnd is the place in a tag of its closing }}, %} or #}, behind brackets and strings.
func tagEnd(s string, kind byte) (int, error) {
	closing := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[kind]
	if kind == '#' {
		if i := strings.Index(s, closing); i >= 0 {
			return i, nil
		}
		return 0, errors.New("a comment has no end")
	}
	depth := 0
	for i := 0; i < len(s); i++ {
		if depth == 0 && strings.HasPrefix(s[i:], closing) {
			return i, nil
		}
		switch s[i] {
		case '(', '[', '{':
			if depth++; depth > maxNesting {
				return 0, fmt.Errorf("brackets are nested deeper than %d", maxNesting)
			}
		case ')', ']', '}':
			depth = max(0, depth-1)
		case '\'', '"':
			quote := s[i]
			for i++; i < len(s) && s[i] != quote; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		}
	}
	return 0, fmt.Errorf("the tag {%c %.40s... has no end", kind, s)
}
