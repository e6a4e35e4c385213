package token

import (
	"fmt"
	"maps"
	"sync"
)

// alphabet is GPT-2's: tokenizer.json writes bytes as printable characters.
type alphabet struct {
	char [256]rune
	byte map[rune]byte
}

var byteLevel = sync.OnceValue(func() *alphabet {
	a := &alphabet{byte: map[rune]byte{}}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(r >= '!' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®') {
			r = next
			next++
		}
		a.char[b], a.byte[r] = r, byte(b)
	}
	return a
})

// bytes appends what a token stands for to dst. A token with a character outside the alphabet stands for itself; ok
// is false then.
func (a *alphabet) bytes(dst []byte, token string) (out []byte, ok bool) {
	n := len(dst)
	for _, r := range token {
		b, ok := a.byte[r]
		if !ok {
			return append(dst[:n], token...), false
		}
		dst = append(dst, b)
	}
	return dst, true
}

// vocabulary numbers the tokens of the model and the added ones.
type vocabulary struct {
	token   []string // as in tokenizer.json; "" for ids that nothing has
	id      map[string]int32
	raw     []byte // what id stands for is raw[offset[id]:offset[id+1]]
	offset  []uint32
	special []bool
}

// maxGaps bounds the ids that stand for nothing, so that a hostile file cannot ask for a table of any size.
const maxGaps = 1 << 16

// newVocabulary joins the model's tokens and the added ones.
func newVocabulary(model map[string]int32, added []addedToken) (*vocabulary, error) {
	v := &vocabulary{id: maps.Clone(model)}
	top := -1
	for _, id := range model {
		top = max(top, int(id))
	}
	for _, t := range added {
		top = max(top, int(t.ID))
	}
	if limit := len(model) + len(added) + maxGaps; top >= limit {
		return nil, fmt.Errorf("id %d is too large for a vocabulary of %d tokens", top, len(model)+len(added))
	}
	v.token, v.special = make([]string, top+1), make([]bool, top+1)
	for t, id := range model {
		if v.token[id] != "" {
			return nil, fmt.Errorf("tokens %q and %q have the same id %d", v.token[id], t, id)
		}
		v.token[id] = t
	}
	for _, t := range added {
		if id, ok := v.id[t.Content]; ok && id != t.ID || t.ID < 0 {
			return nil, fmt.Errorf("added token %q has id %d, which is not its id in the vocabulary (%d)", t.Content, t.ID, id)
		}
		if old := v.token[t.ID]; old != "" && old != t.Content {
			return nil, fmt.Errorf("added token %q has id %d, which is that of %q", t.Content, t.ID, old)
		}
		v.id[t.Content], v.token[t.ID] = t.ID, t.Content
		v.special[t.ID] = t.Special
	}
	v.offset = make([]uint32, 1, top+2)
	for _, t := range v.token {
		v.raw, _ = byteLevel().bytes(v.raw, t)
		v.offset = append(v.offset, uint32(len(v.raw)))
	}
	return v, nil
}

// bytes is what an id stands for.
func (v *vocabulary) bytes(id int32) []byte { return v.raw[v.offset[id]:v.offset[id+1]] }
