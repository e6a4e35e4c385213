package token

import (
	"sync"
	"unicode"
)

// class is what the pre-tokenizers' regular expressions ask of a character.
type class uint8

const (
	other   class = iota // none of the below
	letter               // \p{L}
	number               // \p{N}
	space                // \s but not the next
	newline              // \r, \n
)

// runeTable maps every character to a byte, in pages of 256 that equal characters share.
type runeTable struct {
	page  [0x1100]uint16
	cells [][256]uint8
}

func (t *runeTable) at(r rune) uint8 { return t.cells[t.page[r>>8]][byte(r)] }

// newRuneTable packs what value says of each character.
func newRuneTable(value func(rune) uint8) *runeTable {
	t := &runeTable{}
	seen := map[[256]uint8]uint16{}
	for p := range t.page {
		var cell [256]uint8
		for i := range cell {
			cell[i] = value(rune(p<<8 | i))
		}
		n, ok := seen[cell]
		if !ok {
			n = uint16(len(t.cells))
			seen[cell] = n
			t.cells = append(t.cells, cell)
		}
		t.page[p] = n
	}
	return t
}

// spread sets f of every character in ranges (first, last, ...).
func spread(ranges []rune, f func(rune)) {
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			f(r)
		}
	}
}

// classes is the class of every character, as Hugging Face's regular expressions see it.
var classes = sync.OnceValue(func() *runeTable {
	m := map[rune]class{'\r': newline, '\n': newline}
	spread(letterRanges[:], func(r rune) { m[r] = letter })
	spread(numberRanges[:], func(r rune) { m[r] = number })
	return newRuneTable(func(r rune) uint8 {
		c, ok := m[r]
		if !ok && unicode.Is(unicode.White_Space, r) {
			c = space
		}
		return uint8(c)
	})
})

// digits says (1) which characters the Digits pre-tokenizer splits off; they are a few more than \p{N}.
var digits = sync.OnceValue(func() *runeTable {
	m := map[rune]uint8{}
	spread(digitRanges[:], func(r rune) { m[r] = 1 })
	return newRuneTable(func(r rune) uint8 { return m[r] })
})

// runeAt decodes the character at s[i] of valid UTF-8 that is not ASCII.
func runeAt(s string, i int) (r rune, width int) {
	switch c := s[i]; {
	case c < 0xe0:
		return rune(c&0x1f)<<6 | rune(s[i+1]&0x3f), 2
	case c < 0xf0:
		return rune(c&0x0f)<<12 | rune(s[i+1]&0x3f)<<6 | rune(s[i+2]&0x3f), 3
	default:
		return rune(c&0x07)<<18 | rune(s[i+1]&0x3f)<<12 | rune(s[i+2]&0x3f)<<6 | rune(s[i+3]&0x3f), 4
	}
}
