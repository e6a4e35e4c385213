package gguf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/policy"
)

// tokenizer is what the tokenizer.* metadata say.
type tokenizer struct {
	pre      preTokenizer
	tokens   []string // by id; "" for ids that only fill up the embedding
	kinds    []int
	merges   []string
	addBOS   bool
	template string
	unk      int
}

// Kinds of tokens, by ggml's numbers.
const (
	control     = 3
	userDefined = 4
	unused      = 5
)

// preTokenizer is how text is prepared and cut before byte-pair encoding.
type preTokenizer struct {
	name         string
	normalizer   any
	steps        []any
	ignoreMerges bool // a word that is in the vocabulary is one token, whatever the merges say
	addBOS       bool // where the file does not say
}

// object is a JSON object whose keys are in no particular order.
type object = map[string]any

// preTokenizers are the known values of tokenizer.ggml.pre. The expressions are those of the models' own
// tokenizer.json.
func preTokenizers() []preTokenizer {
	const words = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	split := func(digits string) []any {
		pattern := object{"Regex": fmt.Sprintf(words, digits)}
		return []any{object{"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": false}, byteLevel(false)}
	}
	return []preTokenizer{
		{name: "smollm", steps: []any{object{"type": "Digits", "individual_digits": true}, byteLevel(true)}},
		{name: "qwen2", normalizer: object{"type": "NFC"}, steps: split("")},
		{name: "llama-bpe", steps: split("{1,3}"), ignoreMerges: true, addBOS: true},
	}
}

// byteLevel spells bytes as letters; withRegex it first cuts words as GPT-2 does.
func byteLevel(withRegex bool) object {
	return object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": withRegex}
}

func (f *File) tokenizer(c policy.Config) (*tokenizer, error) {
	m := meta{values: f.Metadata}
	if model := m.text("tokenizer.ggml.model"); m.err == nil && model != "gpt2" {
		return nil, fmt.Errorf("tokenizer.ggml.model %q is not supported; supported: gpt2 (byte-level BPE)", model)
	}
	t := &tokenizer{
		tokens: m.texts("tokenizer.ggml.tokens"), kinds: m.numbers("tokenizer.ggml.token_type"), merges: m.texts("tokenizer.ggml.merges"),
		template: m.textOr("tokenizer.chat_template", ""), unk: m.numberOr("tokenizer.ggml.unknown_token_id", policy.NoToken),
	}
	name := m.text("tokenizer.ggml.pre")
	var known []string
	for _, pre := range preTokenizers() {
		known = append(known, pre.name)
		if pre.name == name {
			t.pre = pre
		}
	}
	t.addBOS = m.boolOr("tokenizer.ggml.add_bos_token", t.pre.addBOS)
	switch {
	case m.err != nil:
		return nil, m.err
	case t.pre.name == "":
		return nil, fmt.Errorf("tokenizer.ggml.pre %q is not supported; supported: %s", name, strings.Join(known, ", "))
	case m.boolOr("tokenizer.ggml.add_eos_token", false):
		return nil, fmt.Errorf("tokenizer.ggml.add_eos_token is not supported")
	case t.addBOS && c.BOS == policy.NoToken:
		return nil, fmt.Errorf("tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is missing")
	case len(t.kinds) != len(t.tokens) || len(t.tokens) != c.Vocab:
		return nil, fmt.Errorf("%d tokens and %d token types; the embedding has %d rows", len(t.tokens), len(t.kinds), c.Vocab)
	}
	return t, t.check(c)
}

func (t *tokenizer) check(c policy.Config) error {
	ids := map[string]int{}
	for id, token := range t.tokens {
		if t.kinds[id] == unused && token == fmt.Sprintf("[PAD%d]", id) { // the converter's name for a row without a token
			t.tokens[id] = ""
			continue
		}
		if other, twice := ids[token]; twice || token == "" {
			return fmt.Errorf("token %d, %q, is empty or the same as token %d", id, token, other)
		}
		ids[token] = id
	}
	for i, merge := range t.merges {
		left, right, ok := strings.Cut(merge, " ")
		_, hasLeft := ids[left]
		_, hasRight := ids[right]
		if _, has := ids[left+right]; !ok || !hasLeft || !hasRight || !has {
			return fmt.Errorf("merge %d, %q, does not join two tokens to a third", i, merge)
		}
	}
	for _, id := range append([]int32{c.BOS, c.Pad, int32(t.unk)}, c.EOS...) {
		if id != policy.NoToken && (int(id) >= len(t.tokens) || t.tokens[id] == "") {
			return fmt.Errorf("the special token %d is not in the vocabulary", id)
		}
	}
	return nil
}

// files are tokenizer.json and tokenizer_config.json.
func (t *tokenizer) files(c policy.Config) (map[string][]byte, error) {
	model := object{
		"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil, "fuse_unk": false,
		"byte_fallback": false, "ignore_merges": t.pre.ignoreMerges, "vocab": vocabulary(t.tokens), "merges": t.merges,
	}
	added, decoder := []object{}, object{}
	for id, token := range t.tokens {
		if kind := t.kinds[id]; token != "" && (kind == control || kind == userDefined) {
			flags := object{"content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": kind == control}
			decoder[fmt.Sprint(id)] = flags
			entry := object{"id": id}
			for key, value := range flags {
				entry[key] = value
			}
			added = append(added, entry)
		}
	}
	main, err := encodeJSON(object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": t.pre.normalizer,
		"pre_tokenizer":  object{"type": "Sequence", "pretokenizers": t.pre.steps},
		"post_processor": t.postProcessor(c),
		"decoder":        object{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
		"model":          model,
	})
	if err != nil {
		return nil, err
	}
	settings := object{
		"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": c.MaxPositions, "added_tokens_decoder": decoder,
		"add_prefix_space": false, "add_bos_token": t.addBOS, "clean_up_tokenization_spaces": false,
		"bos_token": t.named(c.BOS), "pad_token": t.named(c.Pad), "unk_token": t.named(int32(t.unk)), "eos_token": nil,
	}
	if len(c.EOS) > 0 {
		settings["eos_token"] = t.named(c.EOS[0])
	}
	if t.template != "" {
		settings["chat_template"] = t.template
	}
	config, err := encodeJSON(settings)
	return map[string][]byte{"tokenizer.json": main, "tokenizer_config.json": config}, err
}

// named is the text of a token, nil if there is none.
func (t *tokenizer) named(id int32) any {
	if id == policy.NoToken {
		return nil
	}
	return t.tokens[id]
}

// postProcessor puts the first token in front, if there is one.
func (t *tokenizer) postProcessor(c policy.Config) any {
	if !t.addBOS {
		return nil
	}
	bos := t.tokens[c.BOS]
	special := func(kind int) object { return object{"SpecialToken": object{"id": bos, "type_id": kind}} }
	sequence := func(id string, kind int) object { return object{"Sequence": object{"id": id, "type_id": kind}} }
	return object{
		"type": "TemplateProcessing", "single": []any{special(0), sequence("A", 0)},
		"pair":           []any{special(0), sequence("A", 0), special(1), sequence("B", 1)},
		"special_tokens": object{bos: object{"id": bos, "ids": []int32{c.BOS}, "tokens": []string{bos}}},
	}
}

// vocabulary is written as an object from token to id, by id.
type vocabulary []string

// MarshalJSON leaves out ids without a token.
func (v vocabulary) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for id, token := range v {
		if token == "" {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		if err := e.Encode(token); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ":%d", id)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(v)
	return b.Bytes(), err
}
