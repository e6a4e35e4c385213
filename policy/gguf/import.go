package gguf

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/folder"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// Import writes a GGUF file as a Hugging Face folder: weights in float32, configuration, tokenizer and chat template.
// dir must not exist, or be empty; it appears only when it is whole.
func Import(file, dir string) error {
	f, err := Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.write(dir); err != nil {
		return fmt.Errorf("import %s: %w", file, err)
	}
	return nil
}

func (f *File) write(dir string) error {
	tensors := map[string]Tensor{}
	for _, t := range f.Tensors {
		tensors[t.Name] = t
	}
	c, err := f.config(tensors)
	if err != nil {
		return err
	}
	tok, err := f.tokenizer(c)
	if err != nil {
		return err
	}
	items, err := f.items(c, tensors)
	if err != nil {
		return err
	}
	return folder.Build(dir, func(partial string) error {
		if err := policy.WriteConfig(partial, c); err != nil {
			return err
		}
		if err := tok.write(partial, c); err != nil {
			return err
		}
		return safetensors.WriteDir(partial, items, safetensors.Options{})
	})
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
	for _, key := range []string{"eos", "eot"} { // llama.cpp ends a turn at either
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

// items are the weights in transformers' order, converted when they are written.
func (f *File) items(c policy.Config, tensors map[string]Tensor) ([]safetensors.Item, error) {
	if c.Layers > len(tensors) {
		return nil, fmt.Errorf("%d layers, but only %d tensors", c.Layers, len(tensors))
	}
	used := map[string]bool{"rope_freqs.weight": true}
	var items []safetensors.Item
	for _, p := range c.Parameters() {
		name, err := ggmlName(p.Name)
		if err != nil {
			return nil, err
		}
		t, ok := tensors[name]
		if !ok {
			return nil, fmt.Errorf("tensor %q (%s) is missing", name, p.Name)
		}
		if !slices.Equal(t.Shape, p.Shape) {
			return nil, fmt.Errorf("tensor %q has shape %v; the metadata ask for %v", name, t.Shape, p.Shape)
		}
		used[name] = true
		items = append(items, safetensors.Item{Name: p.Name, DType: safetensors.F32, Shape: p.Shape, Write: func(w io.Writer) error {
			return writeRows(w, t, rowOrder(c, name))
		}})
	}
	for _, t := range f.Tensors {
		if !used[t.Name] {
			return nil, fmt.Errorf("tensor %q is none that %s has", t.Name, c.Arch.Causal())
		}
	}
	return items, nil
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

// writeRows sends a tensor as float32, row by row; of a vector, the rows are its values.
func writeRows(w io.Writer, t Tensor, from func(int) int) error {
	if len(t.Shape) == 1 {
		stored, values := make([]float32, t.Len()), make([]float32, t.Len())
		if err := t.Float32s(stored); err != nil {
			return err
		}
		for i := range values {
			values[i] = stored[from(i)]
		}
		return safetensors.Encode(w, safetensors.F32, values)
	}
	row := make([]float32, t.Shape[1])
	for r := range t.Shape[0] {
		if err := t.Row(from(r)).Float32s(row); err != nil {
			return err
		}
		if err := safetensors.Encode(w, safetensors.F32, row); err != nil {
			return err
		}
	}
	return nil
}
