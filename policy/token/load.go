package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"unicode/utf8"
)

// File names of a tokenizer in a model's folder.
const (
	tokenizerFile = "tokenizer.json"
	configFile    = "tokenizer_config.json"
	specialsFile  = "special_tokens_map.json"
	templateFile  = "chat_template.jinja"
	templatesDir  = "additional_chat_templates"
)

// Load reads the tokenizer of a Hugging Face model folder; New says what of it.
func Load(dir string) (*Tokenizer, error) {
	files, err := readFiles(dir)
	if err != nil {
		return nil, err
	}
	return New(dir, files)
}

// New makes a tokenizer of tokenizer.json, and where they are there tokenizer_config.json, special_tokens_map.json,
// chat_template.jinja and additional_chat_templates. It takes every byte-level BPE tokenizer; what it cannot do exactly
// is an error that names it. A chat template that does not compile is reported by Chat, since not everything needs it.
// from is where the files are from, for messages.
func New(from string, files Files) (*Tokenizer, error) {
	file, err := readTokenizer(filepath.Join(from, tokenizerFile), files[tokenizerFile])
	if err != nil {
		return nil, err
	}
	config, err := files.readConfig(from)
	if err != nil {
		return nil, err
	}
	t, err := build(file, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(from, tokenizerFile), err)
	}
	t.from, t.files = from, files
	t.templates, err = files.readTemplates(from, config.ChatTemplate)
	return t, err
}

// tokenizerJSON is tokenizer.json. Truncation and padding are not part of what a text's tokens are.
type tokenizerJSON struct {
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         *modelJSON      `json:"model"`
}

type modelJSON struct {
	Type         string     `json:"type"`
	Dropout      *float64   `json:"dropout"`
	UnkToken     *string    `json:"unk_token"`
	Prefix       *string    `json:"continuing_subword_prefix"`
	Suffix       *string    `json:"end_of_word_suffix"`
	FuseUnk      bool       `json:"fuse_unk"`
	ByteFallback bool       `json:"byte_fallback"`
	IgnoreMerges bool       `json:"ignore_merges"`
	Vocab        vocabJSON  `json:"vocab"`
	Merges       mergesJSON `json:"merges"`
}

func readTokenizer(path string, b []byte) (*tokenizerJSON, error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("%s is not UTF-8", path)
	}
	var file tokenizerJSON
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, fmt.Errorf("%s is not a tokenizer: %w", path, err)
	}
	return &file, nil
}

// build makes a tokenizer of what the files say.
func build(file *tokenizerJSON, config *configJSON) (*Tokenizer, error) {
	m := file.Model
	if err := m.check(); err != nil {
		return nil, err
	}
	added, err := allAdded(file, config)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{cache: newWordCache(), named: config.named()}
	if t.vocab, err = newVocabulary(m.Vocab, added); err != nil {
		return nil, err
	}
	if t.bpe, err = m.bpe(); err != nil {
		return nil, err
	}
	if t.nfc, err = readNormalizer(file.Normalizer); err != nil {
		return nil, err
	}
	if t.splitters, err = readSplitters(file.PreTokenizer); err != nil {
		return nil, err
	}
	if err = checkDecoder(file.Decoder); err != nil {
		return nil, err
	}
	if t.prefix, t.suffix, err = readPostProcessor(file.PostProcessor, t.vocab); err != nil {
		return nil, err
	}
	t.raw, t.normal = t.matchers(added)
	t.guard = newGuard(added)
	t.encoders.New = func() any { return t.newEncoder() }
	return t, nil
}

// check refuses models that are not byte-level BPE.
func (m *modelJSON) check() error {
	switch {
	case m == nil || m.Vocab == nil:
		return errors.New("it has no model with a vocabulary")
	case m.Type != "BPE" && m.Type != "":
		return fmt.Errorf("model type %q is not supported: byte-level BPE is", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return errors.New("model.dropout is not supported: set it to null")
	case m.Prefix != nil && *m.Prefix != "" || m.Suffix != nil && *m.Suffix != "":
		return errors.New("continuing_subword_prefix and end_of_word_suffix are not supported: byte-level BPE has none")
	case m.ByteFallback:
		return errors.New("byte_fallback is not supported: byte-level BPE has a token for every byte")
	}
	return nil
}

// bpe builds the model.
func (m *modelJSON) bpe() (*bpe, error) {
	b, err := newBPE(m.Vocab, m.Merges)
	if err != nil {
		return nil, err
	}
	if m.IgnoreMerges {
		b.whole = make(map[string]int32, len(m.Vocab))
		for token, id := range m.Vocab {
			if raw, ok := byteLevel().bytes(nil, token); ok {
				b.whole[string(raw)] = id
			}
		}
	}
	if m.UnkToken != nil {
		id, ok := m.Vocab[*m.UnkToken]
		if !ok {
			return nil, fmt.Errorf("unk_token %q is not in the vocabulary", *m.UnkToken)
		}
		b.unk, b.fuse = id, m.FuseUnk
	}
	return b, nil
}

// allAdded are the added tokens of tokenizer.json and those that only the config names, as transformers adds them.
func allAdded(file *tokenizerJSON, config *configJSON) ([]addedToken, error) {
	added := slices.Clone(file.AddedTokens)
	known := map[string]bool{}
	for _, t := range added {
		if t.Content == "" {
			return nil, fmt.Errorf("added token %d has no content", t.ID)
		}
		if known[t.Content] {
			return nil, fmt.Errorf("added token %q stands there twice", t.Content)
		}
		known[t.Content] = true
	}
	for _, t := range config.extra {
		if !known[t.Content] {
			known[t.Content] = true
			added = append(added, t)
		}
	}
	named := config.named()
	for _, name := range namedTokens {
		content, ok := named[name]
		if !ok || known[content] {
			continue
		}
		id, ok := file.Model.Vocab[content]
		if !ok {
			return nil, fmt.Errorf("%s of %s is %q, which is neither in the vocabulary nor an added token", name, configFile, content)
		}
		known[content] = true
		added = append(added, addedToken{ID: id, Content: content, Special: true})
	}
	return added, nil
}

// matchers sorts added tokens by where they are looked for.
func (t *Tokenizer) matchers(added []addedToken) (raw, normal *matcher) {
	var plain, normalized []addedToken
	seen := map[string]bool{}
	for _, a := range added {
		if !a.Normalized {
			plain = append(plain, a)
			continue
		}
		if a.Content = t.normalize(a.Content); !seen[a.Content] {
			seen[a.Content] = true
			normalized = append(normalized, a)
		}
	}
	return newMatcher(plain), newMatcher(normalized)
}
