package token

// splitter cuts valid UTF-8 into pieces, in order.
type splitter interface {
	each(s string, piece func(string))
}

// chain cuts with the first splitter, its pieces with the second, and so on.
func chain(splitters []splitter, word func(string)) func(string) {
	for i := len(splitters) - 1; i >= 0; i-- {
		next, s := word, splitters[i]
		word = func(text string) { s.each(text, next) }
	}
	return word
}

// digitSplitter is the Digits pre-tokenizer: numeric characters stand alone, or runs of them if together.
type digitSplitter struct {
	numeric  *runeTable
	together bool
}

func (d digitSplitter) each(s string, piece func(string)) {
	start, inDigits := 0, false
	for i := 0; i < len(s); {
		r, w := rune(s[i]), 1
		if r >= 0x80 {
			r, w = runeAt(s, i)
		}
		digit := d.numeric.at(r) == 1
		if i > start && (digit != inDigits || digit && !d.together) {
			piece(s[start:i])
			start = i
		}
		inDigits = digit
		i += w
	}
	if start < len(s) {
		piece(s[start:])
	}
}

// spacePrefix is add_prefix_space of the ByteLevel pre-tokenizer.
type spacePrefix struct{}

func (spacePrefix) each(s string, piece func(string)) {
	if s[0] != ' ' {
		s = " " + s
	}
	piece(s)
}

// scanner walks over text by character class.
type scanner struct {
	ascii [128]class
	table *runeTable
}

func newScanner() *scanner {
	s := &scanner{table: classes()}
	for i := range s.ascii {
		s.ascii[i] = class(s.table.at(rune(i)))
	}
	return s
}

// at is the class and width of the character at s[i].
func (c *scanner) at(s string, i int) (class, int) {
	if s[i] < 0x80 {
		return c.ascii[s[i]], 1
	}
	r, w := runeAt(s, i)
	return class(c.table.at(r)), w
}

// run is the end of the run of characters of class k that starts at s[i].
func (c *scanner) run(s string, i int, k class) int {
	for i < len(s) {
		got, w := c.at(s, i)
		if got != k {
			break
		}
		i += w
	}
	return i
}

// blank cuts a run of white space that starts at s[i]: \s+(?!\S)|\s+ , before it \s*[\r\n]+ if lines.
func (c *scanner) blank(s string, i int, lines bool) int {
	j, last, line := i, i, 0
	for j < len(s) {
		k, w := c.at(s, j)
		if k != space && k != newline {
			break
		}
		last = j
		j += w
		if k == newline {
			line = j
		}
	}
	switch {
	case lines && line > 0:
		return line
	case j == len(s) || last == i:
		return j
	default: // the last one goes with the word behind it
		return last
	}
}

// modernSplitter is the regular expression of Qwen 2 and later and Llama 3, which differ in the digits per piece:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type modernSplitter struct {
	*scanner
	digits int
}

func (m modernSplitter) each(s string, piece func(string)) {
	for i := 0; i < len(s); {
		end := m.next(s, i)
		piece(s[i:end])
		i = end
	}
}

// next is the end of the piece that starts at s[i].
func (m modernSplitter) next(s string, i int) int {
	k, w := m.at(s, i)
	switch k {
	case letter:
		return m.run(s, i+w, letter)
	case number:
		return m.number(s, i+w)
	case newline:
		return m.blank(s, i, true)
	}
	if s[i] == '\'' {
		if end := contraction(s, i+1, true); end > 0 {
			return end
		}
	}
	if i+w == len(s) {
		return len(s)
	}
	after, width := m.at(s, i+w)
	switch {
	case after == letter:
		return m.run(s, i+w+width, letter)
	case k == other:
		return m.lines(s, m.run(s, i+w, other))
	case s[i] == ' ' && after == other:
		return m.lines(s, m.run(s, i+w+width, other))
	}
	return m.blank(s, i, true)
}

// number is the end of a piece of digits of which the first ends at s[i].
func (m modernSplitter) number(s string, i int) int {
	for n := 1; n < m.digits && i < len(s); n++ {
		k, w := m.at(s, i)
		if k != number {
			break
		}
		i += w
	}
	return i
}

// lines is the end of the line breaks at s[i].
func (m modernSplitter) lines(s string, i int) int {
	for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// classicSplitter is GPT-2's regular expression, which the ByteLevel pre-tokenizer applies by itself:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
type classicSplitter struct{ *scanner }

func (c classicSplitter) each(s string, piece func(string)) {
	for i := 0; i < len(s); {
		end := c.next(s, i)
		piece(s[i:end])
		i = end
	}
}

// next is the end of the piece that starts at s[i].
func (c classicSplitter) next(s string, i int) int {
	if s[i] == '\'' {
		if end := contraction(s, i+1, false); end > 0 {
			return end
		}
	}
	k, w := c.at(s, i)
	if s[i] == ' ' && i+1 < len(s) {
		if after, width := c.at(s, i+1); after != space && after != newline {
			return c.run(s, i+1+width, after)
		}
	}
	if k == space || k == newline {
		return c.blank(s, i, false)
	}
	return c.run(s, i+w, k)
}

// contraction is the end of s, t, re, ve, m, ll or d at s[i], behind an apostrophe; 0 if there is none. U+017F is an s
// to a comparison that ignores case.
func contraction(s string, i int, anyCase bool) int {
	if i == len(s) {
		return 0
	}
	fold := byte(0)
	if anyCase {
		fold = 0x20
	}
	at := func(j int) byte {
		if j < len(s) {
			return s[j] | fold
		}
		return 0
	}
	switch first, second := at(i), at(i+1); {
	case first == 's' || first == 't' || first == 'm' || first == 'd':
		return i + 1
	case (first == 'r' || first == 'v') && second == 'e', first == 'l' && second == 'l':
		return i + 2
	case anyCase && i+1 < len(s) && s[i:i+2] == "\u017f":
		return i + 2
	}
	return 0
}
