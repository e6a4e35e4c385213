package minilm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// wordPieces is BERT's tokenizer. Words like [SEP] in a text are plain text to it: no text can end itself.
type wordPieces struct {
	vocab         map[string]int32
	cls, sep, unk int32
	lower         bool // upper case becomes lower case
	strip         bool // accents are dropped
	spaceHan      bool // Chinese characters are words
	prefix        string
	maxRunes      int // of a word; a longer one is unknown
}

// tokenizerFile is tokenizer.json, as far as it matters.
type tokenizerFile struct {
	Normalizer struct {
		Type      string `json:"type"`
		Han       bool   `json:"handle_chinese_chars"`
		Strip     *bool  `json:"strip_accents"`
		Lowercase bool   `json:"lowercase"`
	} `json:"normalizer"`
	PreTokenizer struct {
		Type string `json:"type"`
	} `json:"pre_tokenizer"`
	Model struct {
		Type   string           `json:"type"`
		Unk    string           `json:"unk_token"`
		Prefix string           `json:"continuing_subword_prefix"`
		Max    int              `json:"max_input_chars_per_word"`
		Vocab  map[string]int32 `json:"vocab"`
	} `json:"model"`
}

// loadWordPieces reads tokenizer.json, or, if there is none, vocab.txt and tokenizer_config.json.
func loadWordPieces(dir string) (*wordPieces, error) {
	path := filepath.Join(dir, "tokenizer.json")
	var f tokenizerFile
	err := readJSON(path, &f)
	if errors.Is(err, fs.ErrNotExist) {
		return loadVocab(dir)
	}
	if err != nil {
		return nil, err
	}
	if f.Model.Type != "WordPiece" || f.Normalizer.Type != "BertNormalizer" || f.PreTokenizer.Type != "BertPreTokenizer" {
		return nil, fmt.Errorf("%s: it has the parts %q, %q and %q: only WordPiece with BertNormalizer and BertPreTokenizer is known",
			path, f.Model.Type, f.Normalizer.Type, f.PreTokenizer.Type)
	}
	w := &wordPieces{vocab: f.Model.Vocab, prefix: f.Model.Prefix, maxRunes: f.Model.Max, spaceHan: f.Normalizer.Han}
	w.set(f.Normalizer.Lowercase, f.Normalizer.Strip)
	return w, w.mark(path, f.Model.Unk)
}

// loadVocab reads vocab.txt, which has a token on each line; the first one's id is 0.
func loadVocab(dir string) (*wordPieces, error) {
	path := filepath.Join(dir, "vocab.txt")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s has neither tokenizer.json nor vocab.txt: %w", dir, err)
	}
	o := struct {
		Lower bool  `json:"do_lower_case"`
		Han   bool  `json:"tokenize_chinese_chars"`
		Strip *bool `json:"strip_accents"`
	}{Lower: true, Han: true}
	if err := readJSON(filepath.Join(dir, "tokenizer_config.json"), &o); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w := &wordPieces{vocab: map[string]int32{}, prefix: "##", maxRunes: 100, spaceHan: o.Han}
	w.set(o.Lower, o.Strip)
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		w.vocab[strings.TrimSuffix(line, "\r")] = int32(i)
	}
	return w, w.mark(path, "[UNK]")
}

// set notes the options of the normaliser; accents go with upper case if nothing is said of them.
func (w *wordPieces) set(lower bool, strip *bool) {
	w.lower, w.strip = lower, lower
	if strip != nil {
		w.strip = *strip
	}
}

// mark finds the special tokens.
func (w *wordPieces) mark(path, unk string) error {
	for name, id := range map[string]*int32{"[CLS]": &w.cls, "[SEP]": &w.sep, unk: &w.unk} {
		found, ok := w.vocab[name]
		if !ok {
			return fmt.Errorf("%s: there is no token %q", path, name)
		}
		*id = found
	}
	if w.prefix == "" || w.maxRunes < 1 {
		return fmt.Errorf("%s: continuing_subword_prefix or max_input_chars_per_word is missing", path)
	}
	for name, id := range w.vocab {
		if id < 0 {
			return fmt.Errorf("%s: token %q has the id %d", path, name, id)
		}
	}
	return nil
}

// size is the highest id and one more.
func (w *wordPieces) size() int {
	n := 0
	for _, id := range w.vocab {
		n = max(n, int(id)+1)
	}
	return n
}

// encode returns the ids of a text between [CLS] and [SEP], limit at most.
func (w *wordPieces) encode(text string, limit int) []int32 {
	ids := []int32{w.cls}
	for _, word := range w.words(text) {
		if ids = w.pieces(ids, word); len(ids) >= limit-1 {
			ids = ids[:limit-1]
			break
		}
	}
	return append(ids, w.sep)
}

// words are a text's words; punctuation and, if so set, Chinese characters are words of one character.
func (w *wordPieces) words(text string) []string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == 0 || r == unicode.ReplacementChar || r != '\t' && r != '\n' && r != '\r' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case w.spaceHan && han(r):
			b.WriteString(" " + string(r) + " ")
		default:
			b.WriteRune(r)
		}
	}
	text = b.String()
	if w.strip {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(text))
	}
	if w.lower {
		text = strings.ToLower(text)
	}
	b.Reset()
	for _, r := range text {
		if punctuation(r) {
			b.WriteString(" " + string(r) + " ")
		} else {
			b.WriteRune(r)
		}
	}
	return strings.Fields(b.String())
}

// punctuation is what splits words: what Unicode calls so, and every other ASCII sign.
func punctuation(r rune) bool {
	return r > ' ' && r < 0x7f && !unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.IsPunct(r)
}

// han tells whether r is a Chinese character to BERT, which leaves out kana and Hangul.
func han(r rune) bool {
	for _, block := range [...][2]rune{
		{0x4e00, 0x9fff}, {0x3400, 0x4dbf}, {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
		{0xf900, 0xfaff}, {0x2f800, 0x2fa1f},
	} {
		if block[0] <= r && r <= block[1] {
			return true
		}
	}
	return false
}

// pieces appends the longest pieces that a word can be made of, one after the other; a word that cannot be is unknown.
func (w *wordPieces) pieces(ids []int32, word string) []int32 {
	runes := []rune(word)
	if len(runes) > w.maxRunes {
		return append(ids, w.unk)
	}
	whole := ids
	for begin := 0; begin < len(runes); {
		end, id := len(runes), int32(-1)
		for ; end > begin; end-- {
			piece := string(runes[begin:end])
			if begin > 0 {
				piece = w.prefix + piece
			}
			if found, ok := w.vocab[piece]; ok {
				id = found
				break
			}
		}
		if id < 0 {
			return append(whole, w.unk)
		}
		ids, begin = append(ids, id), end
	}
	return ids
}
