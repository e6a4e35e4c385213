package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// NoToken stands where a model has no such token.
const NoToken = -1

// Config is what a model's config.json and generation_config.json say.
type Config struct {
	Arch         Arch
	Width        int // D, hidden_size
	Hidden       int // F, intermediate_size
	Layers       int // L
	Heads        int // H
	KVHeads      int
	HeadDim      int
	Vocab        int // V, rows of the embedding; a tokenizer may know fewer ids
	MaxPositions int
	NormEps      float64
	Rope         Rope
	QKVBias      bool // biases on q, k, v
	OutBias      bool // bias on o
	MLPBias      bool // biases on gate, up, down
	Tied         bool // the head is the embedding
	InitStd      float64
	DType        string // float32, bfloat16 or float16: how the weights were trained; "" if config.json does not say
	BOS, Pad     int32  // NoToken if there is none
	EOS          []int32
}

// QKNorm reports whether q and k are normalised per head.
func (c Config) QKNorm() bool { return families[c.Arch].qkNorm }

// ReadConfig reads config.json, in the style of transformers 4 or 5, and generation_config.json if there is one, whose
// end-of-sequence ids win. What this package does not compute exactly is an error that names it.
func ReadConfig(dir string) (Config, error) {
	path := filepath.Join(dir, "config.json")
	c, err := readConfig(path)
	if err != nil {
		return Config{}, fmt.Errorf("read %s: %w", path, err)
	}
	path = filepath.Join(dir, "generation_config.json")
	err = c.readGeneration(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Config{}, fmt.Errorf("read %s: %w", path, err)
	}
	for _, id := range append([]int32{c.BOS, c.Pad}, c.EOS...) {
		if id != NoToken && int(id) >= c.Vocab {
			return Config{}, fmt.Errorf("read the configuration of %s: token id %d (bos, pad or eos) is not below vocab_size %d", dir, id, c.Vocab)
		}
	}
	return c, nil
}

func readConfig(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	f, err := parseFields(text)
	if err != nil {
		return Config{}, err
	}
	c := Config{}
	if c.Arch, err = f.arch(); err != nil {
		return Config{}, err
	}
	if err := f.refuse(); err != nil {
		return Config{}, err
	}
	c.Width = f.must("hidden_size")
	c.Hidden = f.must("intermediate_size")
	c.Layers = f.must("num_hidden_layers")
	c.Heads = f.must("num_attention_heads")
	c.KVHeads = f.int("num_key_value_heads", c.Heads)
	c.HeadDim = f.int("head_dim", f.headDim(c))
	c.Vocab = f.must("vocab_size")
	c.MaxPositions = f.must("max_position_embeddings")
	c.NormEps = f.float("rms_norm_eps", 1e-6)
	c.Rope = f.rope()
	of := families[c.Arch]
	c.OutBias = of.attentionBias && f.bool("attention_bias", false)
	c.QKVBias = of.qkvBias || c.OutBias
	c.MLPBias = of.mlpBias && f.bool("mlp_bias", false)
	c.Tied = f.bool("tie_word_embeddings", false)
	c.InitStd = f.float("initializer_range", 0.02)
	c.DType = strings.TrimPrefix(f.text("dtype", f.text("torch_dtype", "")), "torch.")
	c.BOS, c.Pad, c.EOS = f.token("bos_token_id"), f.token("pad_token_id"), f.tokens("eos_token_id")
	if f.err != nil {
		return Config{}, f.err
	}
	return c, c.check()
}

// headDim is the head width where config.json does not give it.
func (f *fields) headDim(c Config) int {
	if n := families[c.Arch].headDim; n > 0 {
		return n
	}
	heads := max(1, c.Heads)
	if c.Width%heads != 0 && !f.has("head_dim") && f.err == nil {
		f.err = fmt.Errorf("hidden_size %d is not a multiple of num_attention_heads %d, and head_dim is missing", c.Width, heads)
	}
	return c.Width / heads
}

func (c *Config) readGeneration(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := parseFields(text)
	if err != nil {
		return err
	}
	if eos := f.tokens("eos_token_id"); len(eos) > 0 {
		c.EOS = eos
	}
	return f.err
}

// check refuses what cannot be a model. Sizes are bounded so that products of a few of them do not overflow.
func (c Config) check() error {
	for _, v := range []struct {
		name    string
		n, most int
	}{
		{"hidden_size", c.Width, 1 << 20}, {"intermediate_size", c.Hidden, 1 << 20},
		{"num_hidden_layers", c.Layers, 1 << 12}, {"num_attention_heads", c.Heads, 1 << 12},
		{"num_key_value_heads", c.KVHeads, 1 << 12}, {"head_dim", c.HeadDim, 1 << 12},
		{"vocab_size", c.Vocab, 1 << 24}, {"max_position_embeddings", c.MaxPositions, 1 << 30},
	} {
		if v.n < 1 || v.n > v.most {
			return fmt.Errorf("%s %d is not between 1 and %d", v.name, v.n, v.most)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("num_attention_heads %d is not a multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("head_dim %d is odd; rotary positions need pairs", c.HeadDim)
	case !(c.NormEps > 0 && c.NormEps < 1):
		return fmt.Errorf("rms_norm_eps %v is not between 0 and 1", c.NormEps)
	case !(c.InitStd >= 0 && c.InitStd < 1e3):
		return fmt.Errorf("initializer_range %v is not a standard deviation", c.InitStd)
	case !slices.Contains([]string{"", "float32", "bfloat16", "float16"}, c.DType):
		return fmt.Errorf("dtype %q is not supported; supported: float32, bfloat16, float16", c.DType)
	}
	return c.Rope.check()
}
