package grammar

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Tokens is what a Vocab is made of; a token.Tokenizer is one.
type Tokens interface {
	VocabSize() int
	Bytes(id int32) []byte // what an id stands for
	IsSpecial(id int32) bool
}

// Vocab is the tokens of a model, ready to be matched. It does not change and is safe for concurrent use.
type Vocab struct {
	size    int // ids of the model
	longest int // bytes of a token
	eos     []int32
	bytes   byteSet // that are a token each
	text    [][]byte
	ids     []int32 // by their bytes, in order
	nodes   []node
}

// node is a place in the trie of all tokens. They stand in preorder: what begins with the same bytes follows.
type node struct {
	end   int32 // first node that does not begin with these bytes
	first int32 // in Vocab.ids, of those with exactly these bytes
	count uint16
	depth uint16 // bytes
	last  byte
}

// NewVocab makes the vocabulary of a model with size ids. Special tokens and the ends of sequences, eos, never stand inside
// a sample; neither does what stands for nothing. Samples have to be generated with the same ids as EOS, or they end too
// early or not at all.
func NewVocab(tokens Tokens, size int, eos []int32) (*Vocab, error) {
	v := &Vocab{size: size, text: make([][]byte, size)}
	for _, id := range eos {
		if id >= 0 && int(id) < size {
			v.eos = append(v.eos, id)
		}
	}
	if len(v.eos) == 0 {
		return nil, errors.New("grammar: the model has no end-of-sequence token, so that a constrained sample cannot end: set eos_token in tokenizer_config.json or eos_token_id in generation_config.json")
	}
	for id := range int32(min(size, tokens.VocabSize())) {
		b := tokens.Bytes(id)
		if len(b) == 0 || len(b) > math.MaxUint16 || tokens.IsSpecial(id) || slices.Contains(v.eos, id) {
			continue
		}
		v.text[id], v.ids = bytes.Clone(b), append(v.ids, id)
		v.longest = max(v.longest, len(b))
		if len(b) == 1 {
			v.bytes.add(b[0], b[0])
		}
	}
	slices.SortStableFunc(v.ids, func(a, b int32) int { return bytes.Compare(v.text[a], v.text[b]) })
	return v, v.grow()
}

// grow makes the trie.
func (v *Vocab) grow() error {
	var path []int32 // nodes from the root to the last one
	for i, id := range v.ids {
		text, shared := v.text[id], 0
		if i > 0 {
			before := v.text[v.ids[i-1]]
			for shared < min(len(before), len(text)) && before[shared] == text[shared] {
				shared++
			}
		}
		for _, n := range path[shared:] {
			v.nodes[n].end = int32(len(v.nodes))
		}
		path = path[:shared]
		for d := shared; d < len(text); d++ {
			path = append(path, int32(len(v.nodes)))
			v.nodes = append(v.nodes, node{first: int32(i), depth: uint16(d + 1), last: text[d]})
		}
		n := &v.nodes[path[len(path)-1]]
		if n.count == 0 {
			n.first = int32(i)
		}
		if n.count++; n.count == 0 {
			return fmt.Errorf("grammar: more than %d tokens stand for %q", math.MaxUint16, text)
		}
	}
	for _, n := range path {
		v.nodes[n].end = int32(len(v.nodes))
	}
	return nil
}

// words is the length of a bit set over the model's ids.
func (v *Vocab) words() int { return (v.size + 63) / 64 }
