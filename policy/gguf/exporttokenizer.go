package gguf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// ReadTokenizer reads the files of a model folder that describe its tokenizer. Only tokenizer.json has to be there.
func ReadTokenizer(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && name != "tokenizer.json" {
			continue
		}
		if err != nil {
			return nil, err
		}
		files[name] = b
	}
	return files, nil
}

// tokenizerJSON is what GGUF keeps of tokenizer.json; the package token has checked the rest.
type tokenizerJSON struct {
	Added        []addedJSON     `json:"added_tokens"`
	Normalizer   json.RawMessage `json:"normalizer"`
	PreTokenizer step            `json:"pre_tokenizer"`
	Model        struct {
		IgnoreMerges bool        `json:"ignore_merges"`
		Merges       []mergeJSON `json:"merges"`
	} `json:"model"`
}

// tokenizerConfigJSON is what GGUF keeps of tokenizer_config.json.
type tokenizerConfigJSON struct {
	Added    map[int32]addedJSON `json:"added_tokens_decoder"`
	Unk      json.RawMessage     `json:"unk_token"`
	Template json.RawMessage     `json:"chat_template"`
}

type addedJSON struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	Special    bool   `json:"special"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	SingleWord bool   `json:"single_word"`
}

// mergeJSON is "left right", or [left, right].
type mergeJSON string

// UnmarshalJSON implements json.Unmarshaler.
func (m *mergeJSON) UnmarshalJSON(b []byte) error {
	var pair []string
	if json.Unmarshal(b, &pair) == nil {
		*m = mergeJSON(strings.Join(pair, " "))
		return nil
	}
	return json.Unmarshal(b, (*string)(m))
}

// step is a pre-tokenizer of tokenizer.json; trim_offsets has no influence on ids.
type step struct {
	Type          string `json:"type"`
	PreTokenizers []step `json:"pretokenizers"`
	Pattern       struct {
		Regex, String string
	} `json:"pattern"`
	Behavior         string `json:"behavior"`
	Invert           bool   `json:"invert"`
	IndividualDigits bool   `json:"individual_digits"`
	AddPrefixSpace   bool   `json:"add_prefix_space"`
	UseRegex         *bool  `json:"use_regex"`
}

// flat are the steps in a step; use_regex, which is true where it is missing, is spelt out.
func (s step) flat() (steps []step) {
	if s.Type == "Sequence" {
		for _, one := range s.PreTokenizers {
			steps = append(steps, one.flat()...)
		}
		return steps
	}
	if yes := true; s.Type == "ByteLevel" && s.UseRegex == nil {
		s.UseRegex = &yes
	}
	return []step{s}
}

// preName is llama.cpp's name of a tokenizer's way to cut words.
func (f *tokenizerJSON) preName() (string, error) {
	var normalizer any
	if err := json.Unmarshal(f.Normalizer, &normalizer); len(f.Normalizer) > 0 && err != nil {
		return "", err
	}
	var known []string
	for _, pre := range preTokenizers() {
		known = append(known, pre.name)
		text, err := encodeJSON(object{"type": "Sequence", "pretokenizers": pre.steps})
		if err != nil {
			return "", err
		}
		var want step
		if err := json.Unmarshal(text, &want); err != nil {
			return "", err
		}
		sameNormalizer := normalizer == nil && pre.normalizer == nil || reflect.DeepEqual(normalizer, pre.normalizer)
		if sameNormalizer && pre.ignoreMerges == f.Model.IgnoreMerges && reflect.DeepEqual(f.PreTokenizer.flat(), want.flat()) {
			return pre.name, nil
		}
	}
	return "", fmt.Errorf("tokenizer.json cuts words in none of the ways that have a name in GGUF here: %s", strings.Join(known, ", "))
}

// describeTokenizer is a tokenizer as metadata, for the reader tokenizer and for llama.cpp. from is where it is from.
func describeTokenizer(from string, files map[string][]byte, c policy.Config) ([]pair, error) {
	tok, err := token.New(from, files)
	if err != nil {
		return nil, err
	}
	meta, err := tokenizerPairs(tok, files, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return meta, nil
}

func tokenizerPairs(tok *token.Tokenizer, files map[string][]byte, c policy.Config) ([]pair, error) {
	var main tokenizerJSON
	var config tokenizerConfigJSON
	if err := json.Unmarshal(files["tokenizer.json"], &main); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if b, ok := files["tokenizer_config.json"]; ok {
		if err := json.Unmarshal(b, &config); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: %w", err)
		}
	}
	pre, err := main.preName()
	if err != nil {
		return nil, err
	}
	tokens, kinds, err := listTokens(tok, &main, &config, c.Vocab)
	if err != nil {
		return nil, err
	}
	merges := make([]string, len(main.Model.Merges))
	for i, m := range main.Model.Merges {
		merges[i] = string(m)
	}
	meta := []pair{
		{"tokenizer.ggml.model", "gpt2"}, {"tokenizer.ggml.pre", pre}, {"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", kinds}, {"tokenizer.ggml.merges", merges},
	}
	special, err := specialTokens(tok, &config, c)
	if err != nil {
		return nil, err
	}
	meta = append(meta, special...)
	template, err := chatTemplate(files, &config)
	if template != "" {
		meta = append(meta, pair{"tokenizer.chat_template", template})
	}
	return meta, err
}

// listTokens are the tokens and their kinds by id, one for each row of the embedding.
func listTokens(tok *token.Tokenizer, main *tokenizerJSON, config *tokenizerConfigJSON, vocab int) ([]string, []int32, error) {
	if n := tok.VocabSize(); n > vocab {
		return nil, nil, fmt.Errorf("the tokenizer has %d tokens, the model only %d: it belongs to another model", n, vocab)
	}
	tokens, kinds := make([]string, vocab), make([]int32, vocab)
	for id := range tokens {
		if text, ok := tok.IDToToken(int32(id)); ok {
			tokens[id], kinds[id] = text, normal
		} else {
			tokens[id], kinds[id] = fmt.Sprintf("[PAD%d]", id), unused // the name that llama.cpp's converter gives them
		}
	}
	added := slices.Clone(main.Added)
	for id, a := range config.Added {
		a.ID = id
		added = append(added, a)
	}
	for _, a := range added {
		if a.LStrip || a.RStrip || a.SingleWord {
			return nil, nil, fmt.Errorf("the added token %q has lstrip, rstrip or single_word, for which GGUF has no place", a.Content)
		}
		if kinds[a.ID] = userDefined; tok.IsSpecial(a.ID) {
			kinds[a.ID] = control
		}
	}
	return tokens, kinds, nil
}

// normal is the kind of a token that is neither added nor missing.
const normal = 1

// specialTokens are the ids of tokens with a meaning. The end of a turn is the tokenizer's; GGUF has room for two more.
func specialTokens(tok *token.Tokenizer, config *tokenizerConfigJSON, c policy.Config) ([]pair, error) {
	var meta []pair
	add := func(name string, id int32) {
		if id != policy.NoToken {
			meta = append(meta, pair{"tokenizer.ggml." + name + "_token_id", uint32(id)})
		}
	}
	bos := c.BOS
	if bos == policy.NoToken {
		bos = tok.BOS()
	}
	add("bos", bos)
	eos := c.EOS
	if id := tok.EOS(); id >= 0 {
		eos = append([]int32{id}, slices.DeleteFunc(slices.Clone(eos), func(e int32) bool { return e == id })...)
	}
	places := []string{"eos", "eot", "eom"}
	if len(eos) > len(places) {
		return nil, fmt.Errorf("a text ends at any of the tokens %v; GGUF has a place for %d: shorten eos_token_id in generation_config.json", eos, len(places))
	}
	for i, id := range eos {
		add(places[i], id)
	}
	if add("padding", c.Pad); c.Pad == policy.NoToken {
		add("padding", tok.PAD())
	}
	if id, ok := tok.TokenToID(content(config.Unk)); ok {
		add("unknown", id)
	}
	switch around := tok.Encode("", token.EncodeOptions{AddSpecial: true}); {
	case len(around) == 0:
		return append(meta, pair{"tokenizer.ggml.add_bos_token", false}), nil
	case len(around) == 1 && around[0] == bos:
		return append(meta, pair{"tokenizer.ggml.add_bos_token", true}), nil
	default:
		return nil, fmt.Errorf("the tokenizer puts the tokens %v around a text; GGUF has a place for the beginning-of-text token only", around)
	}
}

// content is a token that is written as text, or as an object with its content.
func content(raw json.RawMessage) string {
	var text string
	var full addedJSON
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &full) == nil {
		text = full.Content
	}
	return text
}

// chatTemplate is the default template, "" if there is none.
func chatTemplate(files map[string][]byte, config *tokenizerConfigJSON) (string, error) {
	if b, ok := files["chat_template.jinja"]; ok {
		return string(b), nil
	}
	var text string
	var named []struct{ Name, Template string }
	if len(config.Template) == 0 || json.Unmarshal(config.Template, &text) == nil { // null leaves it empty
		return text, nil
	}
	if err := json.Unmarshal(config.Template, &named); err != nil {
		return "", fmt.Errorf("tokenizer_config.json: chat_template: %w", err)
	}
	for _, t := range named {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", nil
}
