package english

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// The passes of the tokeniser that set characters apart, in their order.
var (
	quotes    = strings.NewReplacer("«", " « ", "“", " “ ", "‘", " ‘ ", "„", " „ ")
	openings  = strings.NewReplacer("``", " `` ")
	signs     = strings.NewReplacer(spaced(";@#$%&\u2012\u2013\u2014\u2015?!")...)
	brackets  = strings.NewReplacer(append(spaced("*[](){}<>"), "--", " -- ")...)
	closings  = strings.NewReplacer(append(spaced("»”’"), "''", " '' ", `"`, " '' ")...)
	clitics   = []string{"'s", "'S", "'m", "'M", "'d", "'D", "'"}
	clitics2  = []string{"'ll", "'LL", "'re", "'RE", "'ve", "'VE", "n't", "N'T"}
	compounds = pytext.MustCompile(`(can)(not)|(d)('ye)|(gim)(me)|(gon)(na)|(got)(ta)|(lem)(me)|(more)('n)|(wan)(na)`, "i")
	itIs      = pytext.MustCompile(`\A't(?:is|was)`, "i")
)

// spaced lists each character of s and the same with spaces around it.
func spaced(s string) []string {
	var pairs []string
	for _, r := range s {
		pairs = append(pairs, string(r), " "+string(r)+" ")
	}
	return pairs
}

// Words splits text as NLTK's word_tokenize does: sentence by sentence, by the rules of the Penn Treebank as NLTK
// extends them. Straight double quotation marks become “ and ”.
func Words(text string) []string {
	var words []string
	for _, s := range Sentences(text) {
		words = append(words, sentenceWords(s)...)
	}
	return words
}

func sentenceWords(s string) []string {
	s = openQuotes(s)
	s = finalPeriod(s)
	s = colons(s)
	s = signs.Replace(ellipses(s))
	s = brackets.Replace(quoteBeforeSpace(s))
	s = closings.Replace(s)
	var words []string
	for part := range strings.FieldsFuncSeq(s, isSpace) {
		for _, w := range cutClitic(part, clitics) {
			for _, w := range cutClitic(w, clitics2) {
				for field := range strings.FieldsFuncSeq(w, pytext.IsSpace) {
					words = appendCompounds(words, field)
				}
			}
		}
	}
	return words
}

// openQuotes sets apart the marks that open a quotation, among them apostrophes before words that are no clitics.
func openQuotes(s string) string {
	if !strings.ContainsAny(s, "«“‘„`\"'") {
		return s
	}
	s = quotes.Replace(s)
	if strings.Contains(s, "`") {
		s = backticks(s)
	}
	if strings.HasPrefix(s, `"`) {
		s = "``" + s[1:]
	}
	s = openings.Replace(s)
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		b.WriteByte(s[i])
		switch rest := s[i+1:]; {
		case strings.IndexByte(" ([{<", s[i]) >= 0 && strings.HasPrefix(rest, `"`):
			b.WriteString(" `` ")
			i++
		case strings.IndexByte(" ([{<", s[i]) >= 0 && strings.HasPrefix(rest, "''"):
			b.WriteString(" `` ")
			i += 2
		}
	}
	return apostrophes(b.String())
}

// backticks sets runs of backticks apart.
func backticks(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		run := len(s) - i - len(strings.TrimLeft(s[i:], "`"))
		if run == 0 {
			b.WriteByte(s[i])
			continue
		}
		b.WriteString(" " + s[i:i+run] + " ")
		i += run - 1
	}
	return b.String()
}

// apostrophes sets an apostrophe at a word's start apart, unless one of the clitics follows.
func apostrophes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		b.WriteByte(s[i])
		if s[i] == '\'' && !isWord(before(s, i)) && isWord(at(s, i+1)) && !startsClitic(s[i+1:]) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// startsClitic tells whether the first word of s is one of the clitics, case apart.
func startsClitic(s string) bool {
	end := strings.IndexFunc(s, func(r rune) bool { return !isWord(r) })
	if end < 0 {
		end = len(s)
	}
	for _, c := range []string{"re", "ve", "ll", "m", "t", "s", "d", "n"} {
		if strings.EqualFold(s[:end], c) {
			return true
		}
	}
	return false
}

// finalPeriod sets the period apart that ends the sentence; only closing marks may follow it.
func finalPeriod(s string) string {
	body := strings.TrimRight(strings.TrimRightFunc(s, isSpace), "])}>\"'»”’ ")
	period := len(body) - 1
	if !strings.HasSuffix(body, ".") || period == 0 || body[period-1] == '.' {
		return s
	}
	return s[:period] + " . " + s[period+1:] + " "
}

// colons sets colons and commas apart that no digit follows.
func colons(s string) string {
	if !strings.ContainsAny(s, ":,") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != ':' && s[i] != ',' {
			b.WriteByte(s[i])
			continue
		}
		next, size := utf8.DecodeRuneInString(s[i+1:])
		switch {
		case size == 0:
			b.WriteString(" " + s[i:i+1] + " ")
		case unicode.Is(unicode.Nd, next):
			b.WriteByte(s[i])
		default: // the next character is used up, even if it is one of the two
			b.WriteString(" " + s[i:i+1] + " " + s[i+1:i+1+size])
			i += size
		}
	}
	return b.String()
}

// ellipses sets runs of periods apart.
func ellipses(s string) string {
	if !strings.Contains(s, "..") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		run := len(s) - i - len(strings.TrimLeft(s[i:], "."))
		if run < 2 {
			b.WriteByte(s[i])
			continue
		}
		b.WriteString(" " + s[i:i+run] + " ")
		i += run - 1
	}
	return b.String()
}

// quoteBeforeSpace sets an apostrophe before a space apart, if none stands before it.
func quoteBeforeSpace(s string) string {
	if !strings.Contains(s, "' ") {
		return s
	}
	var b strings.Builder
	used := 0 // what a replacement has used up cannot begin another
	for i := 0; i < len(s); i++ {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		if strings.HasPrefix(s[i:], "' ") && i-size >= used && i > 0 && s[i-1] != '\'' {
			b.WriteString(" ' ")
			i++
			used = i + 1
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// cutClitic splits the first of the endings that word has off it.
func cutClitic(word string, endings []string) []string {
	for _, e := range endings {
		if stem, ok := strings.CutSuffix(word, e); ok && stem != "" && !strings.HasSuffix(stem, "'") {
			return []string{stem, e}
		}
	}
	return []string{word}
}

// appendCompounds appends word, with words such as cannot and gonna split in two.
func appendCompounds(words []string, word string) []string {
	start := 0
	for _, m := range compounds.FindAllStringSubmatchIndex(word, -1) {
		if !isBoundary(word, m[0]) || !isBoundary(word, m[1]) {
			continue
		}
		middle := m[0]
		for g := 2; g < len(m); g += 4 {
			if m[g] >= 0 {
				middle = m[g+1]
			}
		}
		if strings.EqualFold(word[m[0]:m[1]], "wanna") && m[1] < len(word) {
			continue // only before white space
		}
		words = appendPiece(words, word[start:m[0]])
		words = append(words, word[m[0]:middle], word[middle:m[1]])
		start = m[1]
	}
	return appendPiece(words, word[start:])
}

// appendPiece appends what stands between compounds; an 'tis or 'twas at its start is split too.
func appendPiece(words []string, piece string) []string {
	if m := itIs.FindStringIndex(piece); m != nil && isBoundary(piece, m[1]) {
		words = append(words, piece[:len("'t")])
		piece = piece[len("'t"):]
	}
	if piece == "" {
		return words
	}
	return append(words, piece)
}

// isBoundary is the \b of re before byte i of s.
func isBoundary(s string, i int) bool {
	return pytext.IsWord(before(s, i)) != pytext.IsWord(at(s, i))
}
