package token

import (
	"strings"
)

// marks are two characters that stand around a part of a string, so that it can be found again in what a template
// makes of the string. Methods of strings treat marked text as if the marks were not there and carry them along. The
// zero value is no marks.
type marks struct{ open, close rune }

// markedText is a string with its marks taken out.
type markedText struct {
	m     marks
	clean string
	at    []int  // places of the marks in clean
	open  []bool // which mark
}

func (m marks) text(s string) markedText {
	t := markedText{m: m, clean: s}
	if m.open == 0 || !strings.ContainsRune(s, m.open) && !strings.ContainsRune(s, m.close) {
		return t
	}
	var out strings.Builder
	for _, r := range s {
		if r == m.open || r == m.close {
			t.at, t.open = append(t.at, out.Len()), append(t.open, r == m.open)
		} else {
			out.WriteRune(r)
		}
	}
	t.clean = out.String()
	return t
}

// cut is clean[a:b] with the marks of what stands there.
func (t markedText) cut(a, b int) string {
	if len(t.at) == 0 || a == b {
		return t.clean[a:b]
	}
	var out strings.Builder
	from := a
	for i, at := range t.at {
		mark, inside := t.m.close, at > a && at <= b
		if t.open[i] {
			mark, inside = t.m.open, at >= a && at < b
		}
		if inside {
			out.WriteString(t.clean[from:at])
			out.WriteRune(mark)
			from = at
		}
	}
	out.WriteString(t.clean[from:b])
	return out.String()
}

// spans are the marked parts of clean.
func (t markedText) spans() []span {
	var out []span
	start := -1
	for i, at := range t.at {
		switch {
		case t.open[i]:
			start = at
		case start >= 0:
			out = append(out, span{start, at})
			start = -1
		}
	}
	return out
}

// around marks spans, in order, of s.
func (m marks) around(s string, spans []span) string {
	var out strings.Builder
	from := 0
	for _, p := range spans {
		out.WriteString(s[from:p.start])
		out.WriteRune(m.open)
		out.WriteString(s[p.start:p.end])
		out.WriteRune(m.close)
		from = p.end
	}
	out.WriteString(s[from:])
	return out.String()
}

// unusedMarks picks two of the characters that Unicode keeps for use inside programs which stand in none of the texts;
// ok is false if there are not two left.
func unusedMarks(texts ...string) (m marks, ok bool) {
	for r := rune(0xfdd0); r <= 0xfdef; r++ {
		used := false
		for _, t := range texts {
			used = used || strings.ContainsRune(t, r)
		}
		switch {
		case used:
		case m.open == 0:
			m.open = r
		default:
			m.close = r
			return m, true
		}
	}
	return m, false
}

// guard finds the parts of foreign text that could become an added token, or part of one, in the text of a chat.
// Tokens of white space alone are left out: they are ways to write white space and steer nothing.
type guard struct {
	matcher *matcher
	longest int
	last    [256]bool // bytes that tokens end with
}

func newGuard(tokens []addedToken) *guard {
	g := &guard{}
	var kept []addedToken
	for _, t := range tokens {
		if strings.TrimSpace(t.Content) != "" {
			kept = append(kept, t)
			g.longest = max(g.longest, len(t.Content))
			g.last[t.Content[len(t.Content)-1]] = true
		}
	}
	g.matcher = newMatcher(kept)
	return g
}

// spans are the parts of s, in order and apart: whole tokens, the start of one at the end of s and the end of one at
// its start, white space there aside.
func (g *guard) spans(s string) []span {
	var out []span
	add := func(start, end int) {
		if n := len(out); n > 0 && start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, end)
		} else {
			out = append(out, span{start, end})
		}
	}
	left := len(s) - len(strings.TrimLeftFunc(s, isSpace))
	right := len(strings.TrimRightFunc(s, isSpace))
	if n := g.tail(s[left:]); n > 0 {
		add(left, left+n)
	}
	for i := g.matcher.start(s, 0); i < len(s); i = g.matcher.start(s, i+1) {
		longest := 0
		g.matcher.at(s, i, func(end int, _ *addedToken) { longest = end })
		if longest == 0 && (g.matcher.partial(s[i:right]) || g.matcher.partial(s[i:])) {
			longest = max(i, right)
		}
		if longest > i {
			add(i, longest)
		}
	}
	return out
}

// tail is the length of the longest start of s that is the end of a token, but not a whole one.
func (g *guard) tail(s string) int {
	for n := min(g.longest-1, len(s)); n > 0; n-- {
		if !g.last[s[n-1]] {
			continue
		}
		for _, t := range g.matcher.tokens {
			if len(t.Content) > n && strings.HasSuffix(t.Content, s[:n]) {
				return n
			}
		}
	}
	return 0
}

// partial tells whether s, which is not empty, is the start of a token.
func (m *matcher) partial(s string) bool {
	n := 0
	for i := range len(s) {
		child, ok := m.nodes[n].next[s[i]]
		if !ok {
			return false
		}
		n = child
	}
	return len(s) > 0
}
