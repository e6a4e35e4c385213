package token

import "strings"

// Decode returns the text of ids, as transformers does: special tokens left out if skipSpecial, ids that stand for
// nothing left out, U+FFFD for each maximal subpart of bytes that are not UTF-8. Spaces are never cleaned up:
// clean_up_tokenization_spaces does not apply to BPE.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	var out strings.Builder
	out.Grow(4 * len(ids))
	for _, id := range ids {
		out.Write(t.bytesOf(id, skipSpecial))
	}
	return lossy(out.String())
}

// Bytes is what an id stands for, which need not be whole characters: what Decode, special tokens included, is made of.
// It is empty for ids that stand for nothing. The caller may not change it.
func (t *Tokenizer) Bytes(id int32) []byte { return t.bytesOf(id, false) }

// bytesOf is what an id adds to a text.
func (t *Tokenizer) bytesOf(id int32, skipSpecial bool) []byte {
	if id < 0 || int(id) >= len(t.vocab.token) || skipSpecial && t.vocab.special[id] {
		return nil
	}
	return t.vocab.bytes(id)
}

// Stream decodes token by token. What Push returned so far is always a prefix of the text of all ids: bytes that may
// be the start of a character wait for the next token.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	wait        []byte
}

// Stream starts a decoding. All that its Push and Flush return, joined, is what Decode returns for the same ids.
func (t *Tokenizer) Stream(skipSpecial bool) *Stream { return &Stream{t: t, skipSpecial: skipSpecial} }

// Push takes the next id and returns the text that is certain by now.
func (s *Stream) Push(id int32) string {
	s.wait = append(s.wait, s.t.bytesOf(id, s.skipSpecial)...)
	keep := open(s.wait)
	text := lossy(string(s.wait[:len(s.wait)-keep]))
	s.wait = append(s.wait[:0], s.wait[len(s.wait)-keep:]...)
	return text
}

// Flush returns the rest, which no token completed.
func (s *Stream) Flush() string {
	text := lossy(string(s.wait))
	s.wait = s.wait[:0]
	return text
}

// open is the number of bytes at the end of b that start a character and do not complete it.
func open(b []byte) int {
	for n := 1; n <= 3 && n <= len(b); n++ {
		tail := string(b[len(b)-n:])
		if tail[0] >= 0xc0 {
			if k, unfinished := subpart(tail); unfinished && k == n {
				return n
			}
			return 0
		}
		if tail[0] < 0x80 {
			return 0
		}
	}
	return 0
}
