package gguf

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/folder"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// Import writes a GGUF file as a Hugging Face folder: configuration, tokenizer, chat template and weights, which are of
// type dtype: float32, bfloat16, or auto: bfloat16 for those that are quantised, or bfloat16 already, float32 for the
// others. dir must not exist, or be empty; it appears only when it is whole.
func Import(file, dir, dtype string) error {
	m, err := OpenModel(file)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.write(dir, dtype); err != nil {
		return fmt.Errorf("import %s: %w", file, err)
	}
	return nil
}

func (m *Model) write(dir, dtype string) error {
	c := m.cfg
	if c.DType = dtype; dtype == "auto" {
		c.DType = "bfloat16"
	}
	if c.DType != "float32" && c.DType != "bfloat16" {
		return fmt.Errorf("dtype %q is not supported; supported: float32, bfloat16, auto", dtype)
	}
	files, err := m.TokenizerFiles()
	if err != nil {
		return err
	}
	var items []safetensors.Item
	for _, p := range c.Parameters() {
		t := m.tensor(p.Name)
		to := safetensors.F32
		if c.DType == "bfloat16" && (dtype != "auto" || t.Type != F32 && t.Type != F16) {
			to = safetensors.BF16
		}
		items = append(items, safetensors.Item{Name: p.Name, DType: to, Shape: p.Shape, Write: func(w io.Writer) error {
			return t.write(w, to)
		}})
	}
	return folder.Build(dir, func(partial string) error {
		if err := policy.WriteConfig(partial, c); err != nil {
			return err
		}
		for name, b := range files {
			if err := os.WriteFile(filepath.Join(partial, name), b, 0o644); err != nil {
				return err
			}
		}
		return safetensors.WriteDir(partial, items, safetensors.Options{})
	})
}

// write sends a tensor row by row; of a vector, all values at once.
func (t *stored) write(w io.Writer, to safetensors.DType) error {
	rows, width := t.Shape[0], t.Len()/t.Shape[0]
	if len(t.Shape) == 1 {
		rows, width = 1, rows
	}
	row := make([]float32, width)
	for r := range rows {
		if err := t.Float32s(row, r); err != nil {
			return err
		}
		if err := safetensors.Encode(w, to, row); err != nil {
			return err
		}
	}
	return nil
}

// config translates the metadata of the architectures that llama.cpp and transformers name alike.
func (f *File) config(tensors map[string]Tensor) (policy.Config, error) {
	m := meta{values: f.Metadata}
	arch := m.text("general.architecture")
	if m.err == nil && !slices.Contains(policy.Archs(), policy.Arch(arch)) {
		return policy.Config{}, fmt.Errorf("architecture %q is not supported; supported: %v", arch, policy.Archs())
	}
	if m.numberOr("split.count", 1) > 1 {
		return policy.Config{}, fmt.Errorf("the model is split over several files; merge them first (llama-gguf-split --merge)")
	}
	has := func(name string) bool { _, ok := tensors[name]; return ok }
	c := policy.Config{
		Arch: policy.Arch(arch), DType: "float32", InitStd: 0.02,
		Width: m.number(arch + ".embedding_length"), Hidden: m.number(arch + ".feed_forward_length"),
		Layers: m.number(arch + ".block_count"), Heads: m.number(arch + ".attention.head_count"),
		MaxPositions: m.number(arch + ".context_length"), NormEps: m.float(arch + ".attention.layer_norm_rms_epsilon"),
		QKVBias: has("blk.0.attn_q.bias"), OutBias: has("blk.0.attn_output.bias"), MLPBias: has("blk.0.ffn_up.bias"),
		Tied: !has("output.weight"),
		BOS:  int32(m.numberOr("tokenizer.ggml.bos_token_id", policy.NoToken)),
		Pad:  int32(m.numberOr("tokenizer.ggml.padding_token_id", policy.NoToken)),
	}
	c.KVHeads = m.numberOr(arch+".attention.head_count_kv", c.Heads)
	c.HeadDim = m.numberOr(arch+".attention.key_length", c.Width/max(1, c.Heads))
	for _, key := range []string{"eos", "eot", "eom"} { // llama.cpp ends a turn at any of them
		key = "tokenizer.ggml." + key + "_token_id"
		if id := int32(m.numberOr(key, policy.NoToken)); id != policy.NoToken && !slices.Contains(c.EOS, id) {
			c.EOS = append(c.EOS, id)
		}
	}
	if embed, ok := tensors["token_embd.weight"]; ok {
		c.Vocab = embed.Shape[0]
	}
	if n := m.numberOr(arch+".rope.dimension_count", c.HeadDim); n != c.HeadDim && m.err == nil {
		m.err = fmt.Errorf("%s.rope.dimension_count is %d; rotating only a part of the %d values of a head is not supported", arch, n, c.HeadDim)
	}
	var err error
	if c.Rope, err = f.rope(&m, c, tensors); err != nil {
		return policy.Config{}, err
	}
	return c, m.err
}

// ggmlName is llama.cpp's name of a tensor.
func ggmlName(name string) (string, error) {
	switch name {
	case policy.EmbedName:
		return "token_embd.weight", nil
	case policy.NormName:
		return "output_norm.weight", nil
	case policy.HeadName:
		return "output.weight", nil
	}
	var layer int
	var rest string
	if _, err := fmt.Sscanf(name, "model.layers.%d.%s", &layer, &rest); err != nil {
		return "", fmt.Errorf("tensor %q has no name in GGUF", name)
	}
	stem, kind, _ := cutLast(rest, ".")
	short, ok := map[string]string{
		"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
		"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
		"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
		"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
	}[stem]
	if !ok {
		return "", fmt.Errorf("tensor %q has no name in GGUF", name)
	}
	return fmt.Sprintf("blk.%d.%s.%s", layer, short, kind), nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// rowOrder maps a row of transformers' tensor to the row that llama.cpp keeps it in. For the architecture llama,
// llama.cpp pairs the neighbours 2i and 2i+1 of a head for the rotation where transformers pairs i and i+HeadDim/2, and
// so stores the rows of q and k in another order.
func rowOrder(c policy.Config, name string) func(int) int {
	stem, _, _ := cutLast(name, ".")
	if c.Arch != policy.Llama || !strings.HasSuffix(stem, ".attn_q") && !strings.HasSuffix(stem, ".attn_k") {
		return func(r int) int { return r }
	}
	return func(r int) int {
		head, half := r/c.HeadDim*c.HeadDim, c.HeadDim/2
		return head + r%c.HeadDim%half*2 + r%c.HeadDim/half
	}
}
