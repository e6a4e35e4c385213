package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// configFile is config.json in the style of transformers 4, which transformers 5, vLLM and llama.cpp read as well.
type configFile struct {
	Architectures         []string  `json:"architectures"`
	AttentionBias         *bool     `json:"attention_bias,omitempty"`
	AttentionDropout      decimal   `json:"attention_dropout"`
	BOSTokenID            *int32    `json:"bos_token_id"`
	EOSTokenID            any       `json:"eos_token_id"`
	HeadDim               int       `json:"head_dim"`
	HiddenAct             string    `json:"hidden_act"`
	HiddenSize            int       `json:"hidden_size"`
	InitializerRange      decimal   `json:"initializer_range"`
	IntermediateSize      int       `json:"intermediate_size"`
	MaxPositionEmbeddings int       `json:"max_position_embeddings"`
	MLPBias               *bool     `json:"mlp_bias,omitempty"`
	ModelType             Arch      `json:"model_type"`
	NumAttentionHeads     int       `json:"num_attention_heads"`
	NumHiddenLayers       int       `json:"num_hidden_layers"`
	NumKeyValueHeads      int       `json:"num_key_value_heads"`
	PadTokenID            *int32    `json:"pad_token_id"`
	RMSNormEps            decimal   `json:"rms_norm_eps"`
	RopeScaling           *ropeFile `json:"rope_scaling"`
	RopeTheta             decimal   `json:"rope_theta"`
	TieWordEmbeddings     bool      `json:"tie_word_embeddings"`
	TorchDType            string    `json:"torch_dtype,omitempty"`
	UseCache              bool      `json:"use_cache"`
	VocabSize             int       `json:"vocab_size"`
}

type ropeFile struct {
	Factor                        decimal `json:"factor"`
	HighFreqFactor                decimal `json:"high_freq_factor,omitempty"`
	LowFreqFactor                 decimal `json:"low_freq_factor,omitempty"`
	OriginalMaxPositionEmbeddings int     `json:"original_max_position_embeddings,omitempty"`
	RopeType                      string  `json:"rope_type"`
}

// generationFile is generation_config.json without sampling settings.
type generationFile struct {
	BOSTokenID *int32 `json:"bos_token_id,omitempty"`
	EOSTokenID any    `json:"eos_token_id,omitempty"`
	PadTokenID *int32 `json:"pad_token_id,omitempty"`
}

// WriteConfig writes config.json and generation_config.json into dir, such that ReadConfig gives c again.
func WriteConfig(dir string, c Config) error {
	of, known := families[c.Arch]
	if !known {
		return fmt.Errorf("write the configuration of %s: model_type %q is not supported", dir, c.Arch)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("write the configuration of %s: %w", dir, err)
	}
	f := configFile{
		Architectures: []string{c.Arch.Causal()}, ModelType: c.Arch,
		HiddenAct: "silu", HiddenSize: c.Width, IntermediateSize: c.Hidden,
		NumHiddenLayers: c.Layers, NumAttentionHeads: c.Heads, NumKeyValueHeads: c.KVHeads,
		HeadDim: c.HeadDim, VocabSize: c.Vocab, MaxPositionEmbeddings: c.MaxPositions,
		RMSNormEps: decimal(c.NormEps), RopeTheta: decimal(c.Rope.Theta), TieWordEmbeddings: c.Tied,
		InitializerRange: decimal(c.InitStd), TorchDType: c.DType, UseCache: true,
		BOSTokenID: tokenOrNull(c.BOS), PadTokenID: tokenOrNull(c.Pad), EOSTokenID: oneOrList(c.EOS),
	}
	if r := c.Rope; r.Type != "default" {
		f.RopeScaling = &ropeFile{decimal(r.Factor), decimal(r.HighFreqFactor), decimal(r.LowFreqFactor), r.OriginalMaxPositionEmbeddings, r.Type}
	}
	if of.attentionBias {
		f.AttentionBias = &c.OutBias
	}
	if of.mlpBias {
		f.MLPBias = &c.MLPBias
	}
	if err := writeJSON(filepath.Join(dir, "config.json"), f); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "generation_config.json"), generationFile{f.BOSTokenID, f.EOSTokenID, f.PadTokenID})
}

// decimal is a number that is written with a decimal point or an exponent, so that Python reads a float.
type decimal float64

// MarshalJSON writes 10000.0 for 10000.
func (d decimal) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(float64(d))
	if err == nil && !bytes.ContainsAny(text, ".e") {
		text = append(text, ".0"...)
	}
	return text, err
}

func tokenOrNull(id int32) *int32 {
	if id == NoToken {
		return nil
	}
	return &id
}

func oneOrList(ids []int32) any {
	switch len(ids) {
	case 0:
		return nil
	case 1:
		return ids[0]
	}
	return ids
}

// writeJSON writes v as Hugging Face's libraries do: two spaces, no HTML escapes, a newline at the end.
func writeJSON(path string, v any) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(v)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
