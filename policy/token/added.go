package token

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is found in the text before anything else is done to it.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	Special    bool   `json:"special"`    // left out by Decode with skipSpecial
	Normalized bool   `json:"normalized"` // looked for in normalised text
	LStrip     bool   `json:"lstrip"`     // takes the white space before it
	RStrip     bool   `json:"rstrip"`     // takes the white space behind it
	SingleWord bool   `json:"single_word"`
}

// span is a half-open range of bytes.
type span struct{ start, end int }

// match is a place where an added token stands, with the white space that it takes.
type match struct {
	span
	id int32
}

// matcher finds added tokens, leftmost first and the longest of those that start at the same place.
type matcher struct {
	tokens []addedToken
	nodes  []trieNode
	first  string // the bytes that tokens start with
}

type trieNode struct {
	token int // index into tokens, or -1
	next  map[byte]int
}

// newMatcher finds tokens, whose contents are not empty and differ.
func newMatcher(tokens []addedToken) *matcher {
	m := &matcher{tokens: tokens, nodes: []trieNode{{token: -1}}}
	for k, t := range tokens {
		n := 0
		for i := 0; i < len(t.Content); i++ {
			child, ok := m.nodes[n].next[t.Content[i]]
			if !ok {
				child = len(m.nodes)
				m.nodes = append(m.nodes, trieNode{token: -1})
				if m.nodes[n].next == nil {
					m.nodes[n].next = map[byte]int{}
				}
				m.nodes[n].next[t.Content[i]] = child
			}
			n = child
		}
		m.nodes[n].token = k
	}
	var first []byte
	for c := range m.nodes[0].next {
		first = append(first, c)
	}
	sort.Slice(first, func(i, j int) bool { return first[i] < first[j] })
	m.first = string(first)
	return m
}

// start is the first place at or behind i where a token may start, or len(s).
func (m *matcher) start(s string, i int) int {
	switch len(m.first) {
	case 0:
		return len(s)
	case 1:
		if k := strings.IndexByte(s[i:], m.first[0]); k >= 0 {
			return i + k
		}
		return len(s)
	}
	for ; i < len(s); i++ {
		if m.nodes[0].next[s[i]] != 0 {
			break
		}
	}
	return i
}

// at calls f for each token that starts at s[i], shortest first.
func (m *matcher) at(s string, i int, f func(end int, t *addedToken)) {
	n := 0
	for ; i < len(s); i++ {
		child, ok := m.nodes[n].next[s[i]]
		if !ok {
			return
		}
		n = child
		if k := m.nodes[n].token; k >= 0 {
			f(i+1, &m.tokens[k])
		}
	}
}

// walk calls found with each match in s that overlaps none of the spans in plain, which are in order, and gap with the
// text before, between and behind them. A token that takes white space behind it does not hide other tokens there.
func (m *matcher) walk(s string, plain []span, gap func(start, end int), found func(match)) {
	from := 0
	for i := m.start(s, 0); i < len(s); {
		for len(plain) > 0 && plain[0].end <= i {
			plain = plain[1:]
		}
		end, t := m.longest(s, i, plain)
		if t == nil {
			i = m.start(s, i+1)
			continue
		}
		if !t.SingleWord || !endsWord(s[:i]) && !startsWord(s[end:]) {
			at := match{span{i, end}, t.ID}
			if t.LStrip {
				at.start = max(from, len(strings.TrimRightFunc(s[:i], unicode.IsSpace)))
			}
			if t.RStrip {
				at.end = len(s) - len(strings.TrimLeftFunc(s[end:], unicode.IsSpace))
			}
			if from < at.start {
				gap(from, at.start)
			}
			found(at)
			from = at.end
		}
		i = m.start(s, end)
	}
	if from < len(s) {
		gap(from, len(s))
	}
}

// longest is the longest token at s[i] that ends before plain, and where it ends.
func (m *matcher) longest(s string, i int, plain []span) (end int, t *addedToken) {
	limit := len(s)
	if len(plain) > 0 {
		limit = plain[0].start
	}
	m.at(s, i, func(e int, token *addedToken) {
		if e <= limit {
			end, t = e, token
		}
	})
	return end, t
}

func endsWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && isWord(r)
}

func startsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && isWord(r)
}

// isWord is \w of Rust's regular expressions.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
