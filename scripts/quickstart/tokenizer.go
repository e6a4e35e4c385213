package main

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// qwenSplit is the pattern that Qwen2 splits text by, before the merges.
const qwenSplit = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// splitter is the same without the look-ahead, which Go does not have: it differs only where two blanks meet, and the
// world's texts have none.
var splitter = regexp.MustCompile(strings.Replace(qwenSplit, `|\s+(?!\S)`, "", 1))

// specials are the first ids of the vocabulary.
var specials = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

// minFrequency is how often a pair must occur to be merged.
const minFrequency = 5

// bpe is a byte-level vocabulary: specials, the 256 bytes, and one token per merge.
type bpe struct {
	vocab  []string
	merges [][2]string
}

// learn makes merges from texts until every word that is frequent enough is one token.
func learn(texts []string) bpe {
	counts := map[string]int{}
	for _, t := range texts {
		for _, w := range splitter.FindAllString(t, -1) {
			counts[w]++
		}
	}
	words := make([][]string, 0, len(counts)) // each as its tokens so far
	weight := make([]int, 0, len(counts))
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, strings.Split(visible(w), ""))
		weight = append(weight, counts[w])
	}
	b := bpe{vocab: slices.Concat(specials, alphabet())}
	for {
		best, n := frequentPair(words, weight)
		if n < minFrequency {
			return b
		}
		b.merges = append(b.merges, best)
		b.vocab = append(b.vocab, best[0]+best[1])
		for i := range words {
			words[i] = merge(words[i], best)
		}
	}
}

// frequentPair finds the pair of neighbours that occurs most often; of equals the first in alphabetical order.
func frequentPair(words [][]string, weight []int) (best [2]string, n int) {
	pairs := map[[2]string]int{}
	for i, w := range words {
		for j := range len(w) - 1 {
			pairs[[2]string{w[j], w[j+1]}] += weight[i]
		}
	}
	for p, k := range pairs {
		if k > n || k == n && slices.Compare(p[:], best[:]) < 0 {
			best, n = p, k
		}
	}
	return best, n
}

// merge joins every occurrence of pair in word, from the left.
func merge(word []string, pair [2]string) []string {
	out := word[:0]
	for i := 0; i < len(word); i++ {
		if i+1 < len(word) && word[i] == pair[0] && word[i+1] == pair[1] {
			out = append(out, pair[0]+pair[1])
			i++
		} else {
			out = append(out, word[i])
		}
	}
	return out
}

// visible writes bytes as GPT-2 does: printable ones as they are, the others as characters from U+0100 on.
func visible(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteRune(byteRune(c))
	}
	return b.String()
}

func byteRune(c byte) rune {
	next := rune(0x100)
	for x := range 256 {
		printable := x >= '!' && x <= '~' || x >= 0xa1 && x <= 0xac || x >= 0xae
		switch {
		case byte(x) == c && printable:
			return rune(x)
		case byte(x) == c:
			return next
		case !printable:
			next++
		}
	}
	return next // not reached: c is one of the 256
}

// alphabet lists the 256 bytes as tokens, in the order of their characters.
func alphabet() []string {
	var all []string
	for x := range 256 {
		all = append(all, string(byteRune(byte(x))))
	}
	slices.SortFunc(all, cmp.Compare)
	return all
}

// object is a JSON object; its keys are written in alphabetical order.
type object = map[string]any

// file is tokenizer.json, as Qwen2's apart from the vocabulary.
func (b bpe) file() object {
	vocab := object{}
	for id, t := range b.vocab {
		vocab[t] = id
	}
	var added []object
	for id, t := range specials {
		added = append(added, object{"id": id, "content": t, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
	}
	bytes := func(trim bool) object {
		return object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": trim, "use_regex": false}
	}
	return object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added,
		"normalizer": object{"type": "NFC"},
		"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []object{
			{"type": "Split", "pattern": object{"Regex": qwenSplit}, "behavior": "Isolated", "invert": false},
			bytes(false),
		}},
		"post_processor": bytes(false),
		"decoder":        bytes(false),
		"model": object{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": "", "end_of_word_suffix": "",
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": b.merges,
		},
	}
}
