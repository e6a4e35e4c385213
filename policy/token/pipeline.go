package token

import (
	"errors"
	"strings"

	"github.com/sugarme/tokenizer"
	"github.com/sugarme/tokenizer/normalizer"
)

// Piece is a token and the bytes of the text that it stands for. Several tokens may share a character; a token that
// the tokenizer added around the text stands for nothing.
type Piece struct {
	ID         int32
	Token      string // as tokenizer.json writes it
	Start, End int
}

// Pieces encodes a text as Encode does, and says which part of it each token stands for. Where NFC rewrites a group of
// marks, the part is one of the group's characters. It is for looking at a text: Encode is some hundred times faster.
func (t *Tokenizer) Pieces(text string, addSpecial bool) ([]Piece, error) {
	e, err := t.Pipeline().Encode(tokenizer.NewSingleEncodeInput(tokenizer.NewInputSequence(lossy(text))), addSpecial)
	if err != nil {
		return nil, err
	}
	out := make([]Piece, len(e.Ids))
	for i, id := range e.Ids {
		out[i] = Piece{int32(id), e.Tokens[i], e.Offsets[i][0], e.Offsets[i][1]}
	}
	return out, nil
}

// Pipeline is this tokenizer as a pipeline of github.com/sugarme/tokenizer: its steps are those behind Encode, since
// the library's own are not exact, and it gives the same ids. Its Decode keeps special tokens: Tokenizer.Decode can
// leave them out. A pipeline is for one goroutine.
func (t *Tokenizer) Pipeline() *tokenizer.Tokenizer {
	p := tokenizer.NewTokenizer(&pipelineModel{t: t})
	p.WithPreTokenizer(&pipelineSplitter{t})
	p.WithPostProcessor(&pipelineFrame{t})
	p.WithDecoder(pipelineDecoder{})
	return p
}

// The steps of a pipeline.
var (
	_ tokenizer.Model         = (*pipelineModel)(nil)
	_ tokenizer.PreTokenizer  = (*pipelineSplitter)(nil)
	_ tokenizer.PostProcessor = (*pipelineFrame)(nil)
	_ tokenizer.Decoder       = pipelineDecoder{}
	_ normalizer.Normalizer   = pipelineNormalizer{}
)

// pipelineNormalizer is NFC.
type pipelineNormalizer struct{ form *normalForm }

// Normalize implements normalizer.Normalizer.
func (p pipelineNormalizer) Normalize(n *normalizer.NormalizedString) (*normalizer.NormalizedString, error) {
	var changes []normalizer.ChangeMap
	changed := false
	p.form.segments(n.GetNormalized(), func(old, now string) {
		changed = changed || old != now
		was, i := len([]rune(old)), 0
		for _, r := range now {
			c := normalizer.ChangeMap{RuneVal: string(r)}
			if i >= was {
				c.Changes = 1
			}
			changes = append(changes, c)
			i++
		}
		if i < was { // what the last character swallows
			changes[len(changes)-1].Changes = i - was
		}
	})
	if !changed {
		return n, nil
	}
	if strings.IndexByte(n.GetNormalized(), 0) >= 0 { // which the library counts as no byte: places are lost
		return normalizer.NewNormalizedFrom(p.form.String(n.GetNormalized())), nil
	}
	return n.Transform(changes, 0), nil
}

// pipelineSplitter finds the added tokens, normalises what is between them and cuts it into words of bytes. The three
// are one step since the library, having normalised, drops the tokens found before.
type pipelineSplitter struct{ t *Tokenizer }

// PreTokenize implements tokenizer.PreTokenizer.
func (p *pipelineSplitter) PreTokenize(text *tokenizer.PreTokenizedString) (*tokenizer.PreTokenizedString, error) {
	var err error
	text = text.Split(func(_ int, n *normalizer.NormalizedString) []tokenizer.SplitIdx {
		return p.added(n, p.t.raw)
	})
	if p.t.nfc {
		text = text.Split(func(_ int, n *normalizer.NormalizedString) []tokenizer.SplitIdx {
			n, failed := pipelineNormalizer{nfc()}.Normalize(n)
			err = errors.Join(err, failed)
			return []tokenizer.SplitIdx{{Normalized: n}}
		})
	}
	text = text.Split(func(_ int, n *normalizer.NormalizedString) []tokenizer.SplitIdx {
		return p.added(n, p.t.normal)
	})
	return text.Split(func(_ int, n *normalizer.NormalizedString) []tokenizer.SplitIdx { return p.words(n) }), err
}

// added cuts at the added tokens that m finds.
func (p *pipelineSplitter) added(n *normalizer.NormalizedString, m *matcher) []tokenizer.SplitIdx {
	var out []tokenizer.SplitIdx
	m.walk(n.GetNormalized(), nil, func(start, end int) {
		out = append(out, tokenizer.SplitIdx{Normalized: slice(n, start, end)})
	}, func(found match) {
		token := tokenizer.NewToken(int(found.id), p.t.vocab.token[found.id], []int{0, found.end - found.start})
		out = append(out, tokenizer.SplitIdx{Normalized: slice(n, found.start, found.end), Tokens: []tokenizer.Token{token}})
	})
	return out
}

func slice(n *normalizer.NormalizedString, start, end int) *normalizer.NormalizedString {
	return n.Slice(normalizer.NewRange(start, end, normalizer.NormalizedTarget))
}

// words cuts text into words, written in the byte alphabet.
func (p *pipelineSplitter) words(n *normalizer.NormalizedString) []tokenizer.SplitIdx {
	var out []tokenizer.SplitIdx
	from := 0
	chain(p.t.splitters, func(word string) {
		from += max(0, strings.Index(n.GetNormalized()[from:], word)) // a pattern may leave text out
		piece := slice(n, from, from+len(word))
		from += len(word)
		var changes []normalizer.ChangeMap
		for _, r := range word {
			for i, b := range []byte(string(r)) {
				changes = append(changes, normalizer.ChangeMap{RuneVal: string(byteLevel().char[b]), Changes: min(i, 1)})
			}
		}
		out = append(out, tokenizer.SplitIdx{Normalized: piece.Transform(changes, 0)})
	})(n.GetNormalized())
	return out
}

// pipelineModel is the BPE model.
type pipelineModel struct {
	t       *Tokenizer
	scratch scratch
}

// Tokenize implements tokenizer.Model, for a word in the byte alphabet.
func (p *pipelineModel) Tokenize(word string) ([]tokenizer.Token, error) {
	raw, _ := byteLevel().bytes(nil, word)
	var out []tokenizer.Token
	at := 0
	for _, id := range p.t.bpe.word(nil, string(raw), &p.scratch) {
		value := p.t.vocab.token[id]
		out = append(out, tokenizer.NewToken(int(id), value, []int{at, at + len(value)}))
		at += len(value)
	}
	return out, nil
}

// TokenToId implements tokenizer.Model.
func (p *pipelineModel) TokenToId(token string) (int, bool) {
	id, ok := p.t.TokenToID(token)
	return int(id), ok
}

// IdToToken implements tokenizer.Model.
func (p *pipelineModel) IdToToken(id int) (string, bool) { return p.t.IDToToken(int32(id)) }

// GetVocab implements tokenizer.Model.
func (p *pipelineModel) GetVocab() map[string]int {
	out := make(map[string]int, len(p.t.vocab.id))
	for token, id := range p.t.vocab.id {
		out[token] = int(id)
	}
	return out
}

// GetVocabSize implements tokenizer.Model.
func (p *pipelineModel) GetVocabSize() int { return p.t.VocabSize() }

// Save implements tokenizer.Model.
func (p *pipelineModel) Save(dir string, _ ...string) error { return p.t.WriteFiles(dir) }

// pipelineFrame puts what AddSpecial adds around the tokens.
type pipelineFrame struct{ t *Tokenizer }

// AddedTokens implements tokenizer.PostProcessor.
func (p *pipelineFrame) AddedTokens(bool) int { return len(p.t.prefix) + len(p.t.suffix) }

// Process implements tokenizer.PostProcessor, for one text.
func (p *pipelineFrame) Process(text, _ *tokenizer.Encoding, addSpecial bool) *tokenizer.Encoding {
	if !addSpecial {
		return text
	}
	out := tokenizer.DefaultEncoding()
	add := func(ids []int32) {
		for _, id := range ids {
			out.Ids, out.TypeIds = append(out.Ids, int(id)), append(out.TypeIds, 0)
			out.Tokens, out.Offsets = append(out.Tokens, p.t.vocab.token[id]), append(out.Offsets, []int{0, 0})
			out.SpecialTokenMask, out.AttentionMask = append(out.SpecialTokenMask, 1), append(out.AttentionMask, 1)
			out.Words = append(out.Words, -1)
		}
	}
	add(p.t.prefix)
	out.Ids, out.TypeIds = append(out.Ids, text.Ids...), append(out.TypeIds, text.TypeIds...)
	out.Tokens, out.Offsets = append(out.Tokens, text.Tokens...), append(out.Offsets, text.Offsets...)
	out.SpecialTokenMask = append(out.SpecialTokenMask, text.SpecialTokenMask...)
	out.AttentionMask, out.Words = append(out.AttentionMask, text.AttentionMask...), append(out.Words, text.Words...)
	add(p.t.suffix)
	return out
}

// pipelineDecoder turns tokens into text.
type pipelineDecoder struct{}

// Decode implements tokenizer.Decoder.
func (pipelineDecoder) Decode(tokens []string) string {
	var raw []byte
	for _, t := range tokens {
		raw, _ = byteLevel().bytes(raw, t)
	}
	return lossy(string(raw))
}

// DecodeChain implements tokenizer.Decoder.
func (d pipelineDecoder) DecodeChain(tokens []string) []string { return []string{d.Decode(tokens)} }
