package minilm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// config is config.json, as far as it matters.
type config struct {
	ModelType  string  `json:"model_type"`
	Act        string  `json:"hidden_act"`
	Positions  string  `json:"position_embedding_type"`
	VocabSize  int     `json:"vocab_size"`
	Width      int     `json:"hidden_size"`
	Layers     int     `json:"num_hidden_layers"`
	Heads      int     `json:"num_attention_heads"`
	Inner      int     `json:"intermediate_size"`
	MaxTokens  int     `json:"max_position_embeddings"`
	TokenTypes int     `json:"type_vocab_size"`
	Eps        float64 `json:"layer_norm_eps"`

	maxTokens int // of a text, [CLS] and [SEP] included
}

// loadConfig reads how the model is made, and checks that it is one which this package computes.
func loadConfig(dir string) (c config, err error) {
	c = config{Act: "gelu", Positions: "absolute", Eps: 1e-12, TokenTypes: 2}
	if err = readJSON(filepath.Join(dir, "config.json"), &c); err != nil {
		return c, err
	}
	switch {
	case c.ModelType != "bert":
		err = fmt.Errorf("model_type is %q: only bert encoders can be used, such as all-MiniLM-L6-v2", c.ModelType)
	case c.Act != "gelu" || c.Positions != "absolute":
		err = fmt.Errorf("hidden_act %q and position_embedding_type %q: only gelu and absolute are known", c.Act, c.Positions)
	case c.VocabSize < 1 || c.Width < 1 || c.Layers < 1 || c.Heads < 1 || c.Inner < 1 || c.MaxTokens < 3 || c.TokenTypes < 1 || !(c.Eps > 0):
		err = errors.New("a size is missing or not positive")
	case c.Width%c.Heads != 0:
		err = fmt.Errorf("hidden_size %d is no multiple of num_attention_heads %d", c.Width, c.Heads)
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", filepath.Join(dir, "config.json"), err)
	}
	var limit struct {
		MaxSeqLength int `json:"max_seq_length"`
	}
	if err := readJSON(filepath.Join(dir, "sentence_bert_config.json"), &limit); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	c.maxTokens = c.MaxTokens
	if limit.MaxSeqLength >= 3 {
		c.maxTokens = min(c.MaxTokens, limit.MaxSeqLength)
	}
	return c, checkPooling(dir)
}

// checkPooling refuses a folder that says that its vectors are something other than means of hidden states.
func checkPooling(dir string) error {
	path := filepath.Join(dir, "1_Pooling", "config.json")
	pooling := map[string]any{}
	if err := readJSON(path, &pooling); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for name, on := range pooling {
		if yes, isBool := on.(bool); isBool && yes != (name == "pooling_mode_mean_tokens") && name != "include_prompt" {
			return fmt.Errorf("%s: %s is %v: only the mean of the tokens is known", path, name, yes)
		}
	}
	return nil
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
