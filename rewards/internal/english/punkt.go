package english

import (
	"strings"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// Sentences splits text as NLTK's sent_tokenize does: Punkt (Kiss and Strunk 2006, Unsupervised multilingual sentence
// boundary detection) with its English model. White space between sentences belongs to none of them.
func Sentences(text string) []string {
	var spans []span
	last := 0
	for _, e := range sentenceEnds(text) {
		if !breaks(e.context(text)) {
			continue
		}
		spans = append(spans, span{last, e.at + 1})
		last = e.at + 1
		if e.space {
			last = e.next
		}
	}
	spans = append(spans, span{last, max(last, len(strings.TrimRightFunc(text, pytext.IsSpace)))})
	var sentences []string
	for _, s := range realign(text, spans) {
		sentences = append(sentences, text[s.start:s.end])
	}
	return sentences
}

type span struct{ start, end int }

// end is a place where a sentence may end.
type end struct {
	at    int  // index of the . ? or !
	word  int  // start of the word before it
	next  int  // start of what follows it: a character that is not part of words, or the next word
	after int  // end of that
	space bool // white space stands before next
}

// context is the text by which the place is judged.
func (e *end) context(text string) string { return text[e.word:e.after] }

// sentenceEnds finds the places where sentences may end. Of places with the same word before them only the last counts.
func sentenceEnds(text string) []end {
	var ends []end
	previous := end{at: -1}
	word := span{} // word before the previous place
	for i := 0; i < len(text); i++ {
		if c := text[i]; c != '.' && c != '?' && c != '!' {
			continue
		}
		e, ok := endAt(text, i)
		if !ok {
			continue
		}
		e.word = word.start
		if space := strings.LastIndexAny(text[word.end:i], " \t\n\r\v\f"); space > 0 {
			e.word = word.end + space + 1
		}
		if previous.at >= 0 && word.end <= e.word {
			ends = append(ends, previous)
		}
		previous, word = e, span{e.word, i}
	}
	if previous.at >= 0 {
		ends = append(ends, previous)
	}
	return ends
}

// endAt reads what follows the . ? or ! at i: a sentence may end there only before a character that is not part of
// words, or before white space and another word.
func endAt(text string, i int) (end, bool) {
	r, size := utf8.DecodeRuneInString(text[i+1:])
	if notWord(r) {
		return end{at: i, next: i + 1, after: i + 1 + size}, true
	}
	next := skipSpace(text, i+1)
	if next == i+1 || next == len(text) {
		return end{}, false
	}
	after := next
	for after < len(text) {
		r, size := utf8.DecodeRuneInString(text[after:])
		if isSpace(r) {
			break
		}
		after += size
	}
	return end{at: i, next: next, after: after, space: true}, true
}

// skipSpace is the index behind the white space at i.
func skipSpace(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !isSpace(r) {
			break
		}
		i += size
	}
	return i
}

// notWord tells whether r cannot stand inside a word.
func notWord(r rune) bool { return strings.ContainsRune(`)";}]*:@'({[‘’“”«»?!`, r) }

// realign moves closing quotation marks and brackets behind a sentence's end into the sentence.
func realign(text string, spans []span) []span {
	var out []span
	moved := 0
	for i, s := range spans {
		s.start += moved
		moved = 0
		if i+1 < len(spans) {
			next := spans[i+1]
			if marks, all := closing(text[next.start:next.end]); all > 0 {
				out = append(out, span{s.start, next.start + marks})
				moved = all
				continue
			}
		}
		if s.start < s.end {
			out = append(out, s)
		}
	}
	return out
}

// closing measures the marks at the start of a sentence that belong to the one before, without and with the white space
// behind them. They end at white space, at two dashes or with the sentence.
func closing(sentence string) (marks, all int) {
	for marks < len(sentence) {
		r, size := utf8.DecodeRuneInString(sentence[marks:])
		if !strings.ContainsRune(`"')]}‘’“”«»`, r) {
			return 0, 0
		}
		marks += size
		rest := skipSpace(sentence, marks)
		if rest > marks || rest == len(sentence) || strings.HasPrefix(sentence[marks:], "--") {
			return marks, rest
		}
	}
	return 0, 0
}

// breaks tells whether a sentence ends in context before its last token.
func breaks(context string) bool {
	var tokens []token
	for line := range strings.SplitSeq(context, "\n") {
		if pytext.Blank(line) {
			continue
		}
		for _, t := range punktWords(line) {
			tokens = append(tokens, newToken(t))
		}
	}
	for i := range tokens[:max(len(tokens)-1, 0)] {
		tokens[i].classify(&tokens[i+1])
		if tokens[i].ends {
			return true
		}
	}
	return false
}
