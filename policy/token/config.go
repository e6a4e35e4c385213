package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
)

// namedTokens are the special tokens that a chat template sees as variables.
var namedTokens = [...]string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// configJSON is what matters here of tokenizer_config.json.
type configJSON struct {
	BOS          *contentJSON               `json:"bos_token"`
	EOS          *contentJSON               `json:"eos_token"`
	Unk          *contentJSON               `json:"unk_token"`
	Sep          *contentJSON               `json:"sep_token"`
	Pad          *contentJSON               `json:"pad_token"`
	Cls          *contentJSON               `json:"cls_token"`
	Mask         *contentJSON               `json:"mask_token"`
	AddedTokens  map[string]json.RawMessage `json:"added_tokens_decoder"`
	ChatTemplate templatesJSON              `json:"chat_template"`
	CleanUp      bool                       `json:"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"`

	extra []addedToken
}

// contentJSON is a token: "text" or {"content": "text", ...}.
type contentJSON string

// UnmarshalJSON implements json.Unmarshaler.
func (c *contentJSON) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(c))
	}
	var o struct{ Content *string }
	if err := json.Unmarshal(b, &o); err != nil || o.Content == nil {
		return errors.New("a special token is a string or an object with a content")
	}
	*c = contentJSON(*o.Content)
	return nil
}

// readConfig reads tokenizer_config.json, and special_tokens_map.json for what the former does not name. Neither has
// to be there.
func (f Files) readConfig(from string) (*configJSON, error) {
	var config, specials configJSON
	for name, into := range map[string]*configJSON{configFile: &config, specialsFile: &specials} {
		b, ok := f[name]
		if !ok {
			continue
		}
		if err := json.Unmarshal(b, into); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(from, name), err)
		}
	}
	ours, theirs := config.tokens(), specials.tokens()
	for i := range ours {
		if *ours[i] == nil {
			*ours[i] = *theirs[i]
		}
	}
	if config.CleanUp {
		return nil, fmt.Errorf("%s: forcing clean_up_tokenization_spaces on a BPE tokenizer is not supported: it corrupts text", filepath.Join(from, configFile))
	}
	return &config, config.readAdded(filepath.Join(from, configFile))
}

// tokens are the named special tokens in the order of namedTokens.
func (c *configJSON) tokens() [len(namedTokens)]**contentJSON {
	return [...]**contentJSON{&c.BOS, &c.EOS, &c.Unk, &c.Sep, &c.Pad, &c.Cls, &c.Mask}
}

// named maps names to tokens, for those that are set.
func (c *configJSON) named() map[string]string {
	out := map[string]string{}
	for i, t := range c.tokens() {
		if *t != nil {
			out[namedTokens[i]] = string(**t)
		}
	}
	return out
}

// readAdded reads added_tokens_decoder, whose keys are ids.
func (c *configJSON) readAdded(path string) error {
	for key, value := range c.AddedTokens {
		id, err := strconv.ParseInt(key, 10, 32)
		t := addedToken{}
		if err == nil {
			err = json.Unmarshal(value, &t)
		}
		if err == nil && t.Content == "" {
			err = errors.New("it has no content")
		}
		if err != nil {
			return fmt.Errorf("%s: added token %q: %w", path, key, err)
		}
		t.ID = int32(id)
		c.extra = append(c.extra, t)
	}
	return nil
}
