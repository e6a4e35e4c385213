package gguf

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/policy"
)

// Weights are what a file is written of; *policy.Merged is one.
type Weights interface {
	Path() string // where they are from
	Config() policy.Config
	// Row reads row r of a tensor of Config().Parameters(), or all of a vector if r is 0.
	Row(dst []float32, name string, r int) error
}

// ExportTypes are the types that Export writes, by the names that llama.cpp's converter gives them.
func ExportTypes() []string { return []string{"f32", "f16", "bf16", "q8_0"} }

// Export writes a model as a GGUF file, which llama.cpp loads and Import reads back. tokenizer are the model's tokenizer
// files, as ReadTokenizer and Model.TokenizerFiles give them. Matrices are of type dtype, one of ExportTypes; norms and
// biases are F32, and so are, in F16, matrices under q8_0 whose rows are not whole blocks of 32. out has to end in .gguf
// and must not exist; it appears only when it is whole.
func Export(out string, w Weights, tokenizer map[string][]byte, dtype string) error {
	if err := export(out, w, tokenizer, dtype); err != nil {
		return fmt.Errorf("export %s as %s: %w", w.Path(), out, err)
	}
	return nil
}

func export(out string, w Weights, tokenizer map[string][]byte, dtype string) error {
	t, ok := map[string]Type{"f32": F32, "f16": F16, "bf16": BF16, "q8_0": Q8_0}[dtype]
	if !ok {
		return fmt.Errorf("type %q is not supported; supported: %s", dtype, strings.Join(ExportTypes(), ", "))
	}
	if filepath.Ext(out) != ".gguf" {
		return fmt.Errorf("the name of the file has to end in .gguf")
	}
	c := w.Config()
	vocab, err := describeTokenizer(w.Path(), tokenizer, c)
	if err != nil {
		return err
	}
	meta := append(describe(c, t), vocab...)
	meta = append(meta, pair{"general.name", strings.TrimSuffix(filepath.Base(w.Path()), ".gguf")})
	var items []item
	if c.Rope.Type == "llama3" {
		if c.Arch != policy.Llama {
			return fmt.Errorf("rope scaling llama3 of a %s model has no place in a GGUF file", c.Arch)
		}
		items = append(items, ropeFreqs(c))
	}
	for _, p := range c.Parameters() {
		i, err := newItem(w, p, t)
		if err != nil {
			return err
		}
		items = append(items, i)
	}
	return writeFile(out, meta, items)
}

// describe is a configuration as metadata, for the reader config and for llama.cpp.
func describe(c policy.Config, t Type) []pair {
	arch := string(c.Arch)
	number := func(key string, n int) pair { return pair{arch + "." + key, uint32(n)} }
	meta := []pair{
		{"general.architecture", arch},
		{"general.file_type", map[Type]uint32{F32: 0, F16: 1, Q8_0: 7, BF16: 32}[t]}, // llama.cpp's numbers of kinds of files
		{"general.quantization_version", uint32(2)},
		number("context_length", c.MaxPositions), number("embedding_length", c.Width), number("feed_forward_length", c.Hidden),
		number("block_count", c.Layers), number("attention.head_count", c.Heads), number("attention.head_count_kv", c.KVHeads),
		number("attention.key_length", c.HeadDim), number("attention.value_length", c.HeadDim),
		number("rope.dimension_count", c.HeadDim), number("vocab_size", c.Vocab),
		{arch + ".attention.layer_norm_rms_epsilon", float32(c.NormEps)}, {arch + ".rope.freq_base", float32(c.Rope.Theta)},
	}
	if c.Rope.Type == "linear" {
		meta = append(meta, pair{arch + ".rope.scaling.type", "linear"}, pair{arch + ".rope.scaling.factor", float32(c.Rope.Factor)})
	}
	return meta
}

// ropeFreqs is what Llama 3's scaling divides each frequency by, the form in which llama.cpp has it.
func ropeFreqs(c policy.Config) item {
	plain := c
	plain.Rope.Type = "default"
	divisors, scaled := plain.InvFreq(), c.InvFreq()
	for i := range divisors {
		divisors[i] /= scaled[i]
	}
	return item{Tensor{Name: ropeFreqsName, Type: F32, Shape: []int{len(divisors)}}, func(w io.Writer) error {
		return send(w, F32, divisors)
	}}
}

const ropeFreqsName = "rope_freqs.weight"

// newItem is a tensor under llama.cpp's name, in its order of rows and its type.
func newItem(w Weights, p policy.Parameter, t Type) (item, error) {
	name, err := ggmlName(p.Name)
	if err != nil {
		return item{}, err
	}
	from := make([]int, p.Shape[0]) // row r of the file is row from[r] of the model
	order := rowOrder(w.Config(), name)
	for r := range from {
		from[order(r)] = r
	}
	if len(p.Shape) == 1 {
		return item{Tensor{Name: name, Type: F32, Shape: p.Shape}, func(to io.Writer) error { return sendVector(to, w, p.Name, from) }}, nil
	}
	if t == Q8_0 && p.Shape[1]%blockQ8 != 0 {
		t = F16
	}
	return item{Tensor{Name: name, Type: t, Shape: p.Shape}, func(to io.Writer) error {
		row := make([]float32, p.Shape[1])
		for _, r := range from {
			if err := w.Row(row, p.Name, r); err != nil {
				return err
			}
			if err := send(to, t, row); err != nil {
				return fmt.Errorf("row %d of %s: %w", r, p.Name, err)
			}
		}
		return nil
	}}, nil
}

// sendVector sends the values of a vector in the order of from.
func sendVector(to io.Writer, w Weights, name string, from []int) error {
	all, ordered := make([]float32, len(from)), make([]float32, len(from))
	if err := w.Row(all, name, 0); err != nil {
		return err
	}
	for i, r := range from {
		ordered[i] = all[r]
	}
	return send(to, F32, ordered)
}

func send(w io.Writer, t Type, values []float32) error {
	b, err := t.appendValues(nil, values)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}
