package gguftest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// Kinds of tokens, by ggml's numbers.
const (
	control     = 3
	userDefined = 4
	unused      = 5
)

// Tokenizer is the part of tokenizer.json that GGUF files hold.
type Tokenizer struct {
	Added []struct {
		ID      int32
		Content string
		Special bool
	} `json:"added_tokens"`
	Normalizer   any `json:"normalizer"`
	PreTokenizer any `json:"pre_tokenizer"`
	Model        struct {
		Vocab        map[string]int32
		Merges       []json.RawMessage
		IgnoreMerges bool `json:"ignore_merges"`
	}
}

// Merge is merge i as one text.
func (h *Tokenizer) Merge(t testing.TB, i int) string {
	t.Helper()
	var pair []string
	if err := json.Unmarshal(h.Model.Merges[i], &pair); err == nil {
		return strings.Join(pair, " ")
	}
	var text string
	if err := json.Unmarshal(h.Model.Merges[i], &text); err != nil {
		t.Fatal(err)
	}
	return text
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}

// Model turns a Hugging Face folder with float32 tensors into a GGUF file as llama.cpp's converter does.
func Model(t testing.TB, dir string) *File {
	t.Helper()
	c, err := policy.ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := New()
	arch := string(c.Arch)
	b.Meta = map[string]any{
		"general.architecture": arch, arch + ".embedding_length": uint32(c.Width), arch + ".feed_forward_length": uint32(c.Hidden),
		arch + ".block_count": uint32(c.Layers), arch + ".attention.head_count": uint32(c.Heads),
		arch + ".attention.head_count_kv": uint32(c.KVHeads), arch + ".attention.key_length": uint32(c.HeadDim),
		arch + ".context_length": uint32(c.MaxPositions), arch + ".attention.layer_norm_rms_epsilon": float32(c.NormEps),
		arch + ".rope.freq_base": float32(c.Rope.Theta), arch + ".rope.dimension_count": uint32(c.HeadDim),
		"tokenizer.ggml.eos_token_id": uint32(c.EOS[0]), "tokenizer.ggml.padding_token_id": uint32(c.Pad),
	}
	if c.BOS != policy.NoToken {
		b.Meta["tokenizer.ggml.bos_token_id"] = uint32(c.BOS)
	}
	addWeights(t, b, c, dir)
	addTokenizer(t, b, c, dir)
	return b
}

func addWeights(t testing.TB, b *File, c policy.Config, dir string) {
	t.Helper()
	set, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	for _, p := range c.Parameters() {
		x, _ := set.Tensor(p.Name)
		name := p.Name
		for _, pair := range [][2]string{
			{"model.layers.", "blk."}, {"self_attn.o_proj", "attn_output"}, {"self_attn.", "attn_"}, {"_proj", ""}, {"mlp.", "ffn_"},
			{"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"},
			{"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"}, {"lm_head", "output"},
		} {
			name = strings.Replace(name, pair[0], pair[1], 1)
		}
		data := x.Data
		if c.Arch == policy.Llama && (strings.Contains(name, "attn_q") || strings.Contains(name, "attn_k")) {
			data = permute(x, c.HeadDim)
		}
		b.Tensors = append(b.Tensors, Tensor{name, 0, p.Shape, data})
	}
}

// permute is llama.cpp's: the rows of a head, seen as [2, HeadDim/2], are transposed to [HeadDim/2, 2].
func permute(x safetensors.Tensor, headDim int) (data []byte) {
	for head := 0; head < x.Shape[0]; head += headDim {
		for pair := range headDim / 2 {
			for which := range 2 {
				r := head + which*headDim/2 + pair
				data = append(data, x.Rows(r, r+1).Data...)
			}
		}
	}
	return data
}

func addTokenizer(t testing.TB, b *File, c policy.Config, dir string) {
	t.Helper()
	var h Tokenizer
	readJSON(t, filepath.Join(dir, "tokenizer.json"), &h)
	tokens, kinds := make([]string, c.Vocab), make([]int32, c.Vocab)
	for id := range tokens { // what the converter makes of ids that only fill up the embedding
		tokens[id], kinds[id] = fmt.Sprintf("[PAD%d]", id), unused
	}
	for token, id := range h.Model.Vocab {
		tokens[id], kinds[id] = token, 1
	}
	for _, a := range h.Added {
		tokens[a.ID], kinds[a.ID] = a.Content, userDefined
		if a.Special {
			kinds[a.ID] = control
		}
	}
	var merges []string
	for i := range h.Model.Merges {
		merges = append(merges, h.Merge(t, i))
	}
	b.Meta["tokenizer.ggml.model"] = "gpt2"
	b.Meta["tokenizer.ggml.pre"] = map[bool]string{true: "llama-bpe", false: "qwen2"}[h.Model.IgnoreMerges]
	if h.Normalizer == nil && !h.Model.IgnoreMerges {
		b.Meta["tokenizer.ggml.pre"] = "smollm"
	}
	b.Meta["tokenizer.ggml.tokens"], b.Meta["tokenizer.ggml.token_type"] = texts(tokens), numbers(kinds)
	b.Meta["tokenizer.ggml.merges"] = texts(merges)
	var settings struct {
		Template string `json:"chat_template"`
	}
	readJSON(t, filepath.Join(dir, "tokenizer_config.json"), &settings)
	if settings.Template != "" {
		b.Meta["tokenizer.chat_template"] = settings.Template
	}
}

// texts and numbers are arrays of metadata.
func texts(list []string) (values []any) {
	for _, s := range list {
		values = append(values, s)
	}
	return values
}

func numbers(list []int32) (values []any) {
	for _, n := range list {
		values = append(values, n)
	}
	return values
}
