package grammar

import (
	"bytes"
	"encoding/json"
	"slices"
)

// text is the bytes of s.
func (a *automaton) text(s string) *state {
	out := a.empty
	for i := len(s) - 1; i >= 0; i-- {
		out = a.seq(a.one(setOf(s[i:i+1])), out)
	}
	return out
}

// comma and colon with the space that may follow them.
func (a *automaton) comma() *state { return a.seq(a.text(","), a.alt(a.empty, a.text(" "))) }
func (a *automaton) colon() *state { return a.seq(a.text(":"), a.alt(a.empty, a.text(" "))) }

// plain is a character that stands for itself in a JSON string, in well-formed UTF-8 (table 3-7 of the Unicode standard).
func (a *automaton) plain() *state {
	ascii := between(0x20, 0x7f)
	for _, b := range []byte(`"\`) {
		ascii[b/64] &^= 1 << (b % 64)
	}
	in := func(low, high byte) *state { return a.one(between(low, high)) }
	tail := in(0x80, 0xbf)
	return a.alt(
		a.one(ascii),
		a.seq(in(0xc2, 0xdf), tail),
		a.seq(in(0xe0, 0xe0), in(0xa0, 0xbf), tail),
		a.seq(in(0xe1, 0xec), tail, tail),
		a.seq(in(0xed, 0xed), in(0x80, 0x9f), tail),
		a.seq(in(0xee, 0xef), tail, tail),
		a.seq(in(0xf0, 0xf0), in(0x90, 0xbf), tail, tail),
		a.seq(in(0xf1, 0xf3), tail, tail, tail),
		a.seq(in(0xf4, 0xf4), in(0x80, 0x8f), tail, tail),
	)
}

// character is one code point of a JSON string: plain, or escaped, those above U+FFFF as a pair of surrogates.
func (a *automaton) character() *state {
	in := func(bytes string) *state { return a.one(setOf(bytes)) }
	hex, d := in("0123456789abcdefABCDEF"), in("dD")
	unit := a.alt(
		a.seq(in("0123456789abcefABCEF"), hex, hex, hex),
		a.seq(d, in("01234567"), hex, hex),
		a.seq(d, in("89abAB"), hex, hex, a.text(`\u`), d, in("cdefCDEF"), hex, hex),
	)
	return a.alt(a.plain(), a.seq(a.text(`\`), a.alt(in(`"\/bfnrt`), a.seq(a.text("u"), unit))))
}

// quoted is a JSON string of least to most characters.
func (a *automaton) quoted(least, most int) *state {
	return a.seq(a.text(`"`), a.repeat(a.character(), least, most), a.text(`"`))
}

// nameBut is a JSON string of plain characters that is none of names.
func (a *automaton) nameBut(names []string) *state {
	return a.seq(a.text(`"`), a.without(a.repeat(a.plain(), 0, open), names), a.text(`"`))
}

// without is the texts of s but for some.
func (a *automaton) without(s *state, texts []string) *state {
	if len(texts) == 0 || s == a.none || a.full {
		return s
	}
	var out []*state
	if s.nullable && !slices.Contains(texts, "") {
		out = append(out, a.empty)
	}
	rest := map[byte][]string{} // by first byte
	for _, t := range texts {
		if t != "" {
			rest[t[0]] = append(rest[t[0]], t[1:])
		}
	}
	sets := map[*state]byteSet{} // bytes that nothing in texts begins with, by what follows them
	for i := range 256 {
		b := byte(i)
		d := a.fresh(s, b)
		if rest[b] != nil {
			out = append(out, a.seq(a.one(setOf(string([]byte{b}))), a.without(d, rest[b])))
		} else if d != a.none {
			set := sets[d]
			set.add(b, b)
			sets[d] = set
		}
	}
	for d, set := range sets {
		out = append(out, a.seq(a.one(set), d))
	}
	return a.alt(out...)
}

// quote is a string as JSON, escaped where it has to be.
func quote(s string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string has none
		return `""`
	}
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
}
