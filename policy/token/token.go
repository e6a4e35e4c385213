package token

import (
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Tokenizer turns text into token ids and back. It is safe for use by several goroutines at once.
type Tokenizer struct {
	from        string // folder or file, for messages
	files       Files
	vocab       *vocabulary
	raw, normal *matcher // added tokens looked for in the text as it is, and in normalised text
	nfc         bool
	splitters   []splitter
	bpe         *bpe
	cache       *wordCache
	encoders    sync.Pool         // of *encoder
	prefix      []int32           // what AddSpecial puts before the text
	suffix      []int32           // and behind it
	named       map[string]string // bos_token, eos_token, ...
	templates   map[string]*template
	guard       *guard
}

// EncodeOptions change how Encode treats special tokens. The zero value is transformers'
// encode(text, add_special_tokens=False).
type EncodeOptions struct {
	AddSpecial bool // put around the text what the tokenizer's post-processor adds, such as Llama's begin of text
	Plain      bool // match no added token: "<|im_end|>" is text like any other
}

// Encode returns the ids of text. Bytes that are not UTF-8 are read as U+FFFD, one per maximal subpart of an
// ill-formed sequence, as Python decodes with errors="replace".
func (t *Tokenizer) Encode(text string, o EncodeOptions) []int32 {
	var dst []int32
	if o.AddSpecial {
		dst = append(dst, t.prefix...)
	}
	var plain []span
	if o.Plain {
		plain = []span{{0, math.MaxInt}}
	}
	dst = t.encode(dst, text, plain)
	if o.AddSpecial {
		dst = append(dst, t.suffix...)
	}
	return dst
}

// encode appends the ids of text, in which no added token overlaps the spans in plain.
func (t *Tokenizer) encode(dst []int32, text string, plain []span) []int32 {
	text = lossy(text)
	e := t.encoders.Get().(*encoder)
	e.dst = slices.Grow(dst, len(text)/3+8)
	t.raw.walk(text, plain,
		func(start, end int) { t.between(e, text[start:end], within(plain, start, end)) },
		func(m match) { e.dst = append(e.dst, m.id) })
	dst, e.dst = e.dst, nil
	t.encoders.Put(e)
	return dst
}

// within are the spans that touch [start,end), from start on.
func within(spans []span, start, end int) []span {
	var out []span
	for _, s := range spans {
		if s.end > start && s.start < end {
			out = append(out, span{s.start - start, s.end - start})
		}
	}
	return out
}

// between encodes text that holds no raw added token. Tokens that are looked for in normalised text are looked for in
// the text as it is where some of it is plain, since normalising moves places.
func (t *Tokenizer) between(e *encoder, text string, plain []span) {
	if len(plain) == 0 {
		text = t.normalize(text)
	}
	t.normal.walk(text, plain, func(start, end int) {
		piece := text[start:end]
		if len(plain) > 0 {
			piece = t.normalize(piece)
		}
		e.split(piece)
	}, func(m match) { e.dst = append(e.dst, m.id) })
}

func (t *Tokenizer) normalize(text string) string {
	if t.nfc {
		return nfc().String(text)
	}
	return text
}

// encoder is one goroutine's state of an encoding.
type encoder struct {
	t       *Tokenizer
	dst     []int32
	split   func(string)
	scratch scratch
}

func (t *Tokenizer) newEncoder() *encoder {
	e := &encoder{t: t}
	e.split = chain(t.splitters, e.word)
	return e
}

// word appends the tokens of a piece that no merge crosses.
func (e *encoder) word(w string) {
	if len(w) > longestCached {
		e.dst = e.t.bpe.word(e.dst, w, &e.scratch)
		e.scratch.trim()
		return
	}
	ids, hash := e.t.cache.get(w)
	if ids != nil {
		e.dst = append(e.dst, ids...)
		return
	}
	n := len(e.dst)
	e.dst = e.t.bpe.word(e.dst, w, &e.scratch)
	e.t.cache.put(w, hash, e.dst[n:])
}

// VocabSize is the number of ids: one more than the largest.
func (t *Tokenizer) VocabSize() int { return len(t.vocab.token) }

// TokenToID is the id of a token as tokenizer.json writes it ("Ġthe", "<|im_end|>").
func (t *Tokenizer) TokenToID(token string) (id int32, ok bool) {
	id, ok = t.vocab.id[token]
	return id, ok
}

// IDToToken is the token of an id as tokenizer.json writes it; ok is false if the id stands for nothing.
func (t *Tokenizer) IDToToken(id int32) (token string, ok bool) {
	if id < 0 || int(id) >= len(t.vocab.token) || t.vocab.token[id] == "" {
		return "", false
	}
	return t.vocab.token[id], true
}

// IsSpecial tells whether Decode with skipSpecial leaves the id out.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return id >= 0 && int(id) < len(t.vocab.special) && t.vocab.special[id]
}

// EOS is the id of tokenizer_config.json's eos_token, -1 if there is none. A model may end its turns with others too:
// generation_config.json lists them.
func (t *Tokenizer) EOS() int32 { return t.namedID("eos_token") }

// BOS is the id of bos_token, -1 if there is none.
func (t *Tokenizer) BOS() int32 { return t.namedID("bos_token") }

// PAD is the id of pad_token, -1 if there is none.
func (t *Tokenizer) PAD() int32 { return t.namedID("pad_token") }

func (t *Tokenizer) namedID(name string) int32 {
	if id, ok := t.vocab.id[t.named[name]]; ok {
		return id
	}
	return -1
}

// lossy is s with each maximal subpart of an ill-formed sequence replaced by U+FFFD.
func lossy(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			n, _ = subpart(s[i:])
		}
		out.WriteRune(r)
		i += n
	}
	return out.String()
}

// subpart is the length of the maximal subpart at the start of s, which is not a whole character; open tells whether
// it is the start of one that ends with s.
func subpart(s string) (n int, open bool) {
	need, low, high := 0, byte(0x80), byte(0xbf)
	switch c := s[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 2
	case c >= 0xe0 && c <= 0xef:
		need = 3
	case c >= 0xf0 && c <= 0xf4:
		need = 4
	default:
		return 1, false
	}
	switch s[0] { // Table 3-7 of the Unicode standard
	case 0xe0:
		low = 0xa0
	case 0xed:
		high = 0x9f
	case 0xf0:
		low = 0x90
	case 0xf4:
		high = 0x8f
	}
	n = 1
	for n < need && n < len(s) && s[n] >= low && s[n] <= high {
		low, high = 0x80, 0xbf
		n++
	}
	return n, n == len(s) && n < need
}
