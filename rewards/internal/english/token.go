package english

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// Orthographic contexts: a type has been seen at the start of a sentence, inside one, or it is not known where; with a
// capital first letter or without.
const (
	beginUpper = 1 << (iota + 1)
	middleUpper
	unknownUpper
	beginLower
	middleLower
	unknownLower

	upper = beginUpper | middleUpper | unknownUpper
	lower = beginLower | middleLower | unknownLower
)

// number is the type of all numbers.
const number = "##number##"

// token is a word with Punkt's judgement of its final period.
type token struct {
	text     string
	kind     string // its type: lower case, numbers made one
	ends     bool   // a sentence ends here
	shortens bool   // it is an abbreviation
	ellipsis bool
}

// newToken makes the first judgement, by the type alone (section 3 of the paper).
func newToken(text string) token {
	t := token{text: text, kind: pytext.Lower(text)}
	if isNumber(t.kind) {
		t.kind = number
	}
	switch {
	case text == "." || text == "?" || text == "!":
		t.ends = true
	case len(text) > 1 && strings.Trim(text, ".") == "":
		t.ellipsis = true
	case strings.HasSuffix(text, ".") && !strings.HasSuffix(text, ".."):
		name := pytext.Lower(text[:len(text)-1])
		known := punkt().abbreviations
		t.shortens = known[name] || known[name[strings.LastIndex(name, "-")+1:]]
		t.ends = !t.shortens
	}
	return t
}

// isNumber is the pattern -?[.,]?\d[\d,.-]*\.? for a whole text.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, ",") {
		s = s[1:]
	}
	first, size := utf8.DecodeRuneInString(s)
	return unicode.Is(unicode.Nd, first) &&
		strings.TrimFunc(s[size:], func(r rune) bool { return unicode.Is(unicode.Nd, r) || strings.ContainsRune(",.-", r) }) == ""
}

// withoutPeriod is the type without a final period.
func (t *token) withoutPeriod() string {
	if len(t.kind) > 1 {
		return strings.TrimSuffix(t.kind, ".")
	}
	return t.kind
}

// withoutEnd is the type without the period that ends a sentence.
func (t *token) withoutEnd() string {
	if t.ends {
		return t.withoutPeriod()
	}
	return t.kind
}

// initial: one letter and a period.
func (t *token) initial() bool {
	r, size := utf8.DecodeRuneInString(t.text)
	return t.text[size:] == "." && isWord(r) && !unicode.Is(unicode.Nd, r)
}

func (t *token) first() string {
	_, size := utf8.DecodeRuneInString(t.text)
	return t.text[:size]
}

// classify makes the second judgement, by the token that follows (section 4).
func (t *token) classify(next *token) {
	if !strings.HasSuffix(t.text, ".") {
		return
	}
	m := punkt()
	kind, following, initial := t.withoutPeriod(), next.withoutEnd(), t.initial()
	if m.collocations[kind+"\t"+following] {
		t.ends, t.shortens = false, true
		return
	}
	start := next.startsSentence()
	capital := pytext.IsUpper(next.first())
	if (t.shortens || t.ellipsis) && !initial && (start == yes || capital && m.starters[following]) {
		t.ends = true
		return
	}
	if !initial && kind != number {
		return
	}
	// An initial before a word that is always written with a capital: J. Bach.
	name := start == unknown && initial && capital && m.contexts[following]&lower == 0
	if start == no || name {
		t.ends, t.shortens = false, true
	}
}

// answer is what the spelling of a word says about whether it starts a sentence.
type answer int

const (
	unknown answer = iota
	yes
	no
)

// startsSentence is the orthographic heuristic (4.1.1).
func (t *token) startsSentence() answer {
	if strings.Contains(";:,.!?", t.text) && len(t.text) == 1 {
		return no
	}
	seen := punkt().contexts[t.withoutEnd()]
	switch {
	case pytext.IsUpper(t.first()) && seen&lower != 0 && seen&middleUpper == 0:
		return yes
	case pytext.IsLower(t.first()) && (seen&upper != 0 || seen&beginLower == 0):
		return no
	}
	return unknown
}

// punktWords splits a line into Punkt's tokens, which are not those of Words: only punctuation other than periods is
// split off.
func punktWords(line string) []string {
	var words []string
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		n := size
		switch several := punctuation(line[i:]); {
		case several > 0:
			n = several
		case isSpace(r):
			i += size
			continue
		case !strings.ContainsRune("(\"`{[:;&#*@)}]-,", r):
			for !wordEnds(line[i+n:]) {
				_, size := utf8.DecodeRuneInString(line[i+n:])
				n += size
			}
		}
		words = append(words, line[i:i+n])
		i += n
	}
	return words
}

// wordEnds tells whether a word ends before rest.
func wordEnds(rest string) bool {
	after, comma := strings.CutPrefix(rest, ",")
	if comma {
		rest = after
	}
	if rest == "" {
		return true
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return isSpace(r) || notWord(r) || punctuation(rest) > 0
}

// punctuation is the length of the dashes, periods, or periods with spaces between them that s starts with, which make
// one token; 0: none.
func punctuation(s string) int {
	for _, mark := range []string{"-", "."} {
		if n := len(s) - len(strings.TrimLeft(s, mark)); n > 1 {
			return n
		}
	}
	n := 0
	for periods := 1; strings.HasPrefix(s[n:], "."); periods++ {
		r, size := utf8.DecodeRuneInString(s[n+1:])
		if !isSpace(r) || !strings.HasPrefix(s[n+1+size:], ".") {
			if periods > 2 {
				return n + 1
			}
			break
		}
		n += 1 + size
	}
	return 0
}
