package policy

import (
	"maps"
	"slices"
)

// Arch is a model family by its model_type in config.json.
type Arch string

// families are the architectures that this package computes, by model_type.
var families = map[Arch]family{
	Llama: llama,
	Qwen2: qwen2,
	Qwen3: qwen3,
}

// family says what distinguishes an architecture from its relatives: all are decoders of pre-norm layers with rotary
// grouped-query attention and SwiGLU, whose tensors are named as Llama's.
type family struct {
	class         string // transformers' class, the one of config.json's architectures
	qkvBias       bool   // q, k and v have biases
	attentionBias bool   // q, k, v and o have biases if config.json's attention_bias says so
	mlpBias       bool   // gate, up and down have biases if config.json's mlp_bias says so
	qkNorm        bool   // every head of q and k is normed before the rotation
	headDim       int    // head_dim where config.json does not give it; 0: hidden_size / num_attention_heads
}

// Archs lists the supported families in ascending order.
func Archs() []Arch { return slices.Sorted(maps.Keys(families)) }

// Causal is the family's class in transformers, "" if the family is not supported.
func (a Arch) Causal() string { return families[a].class }
