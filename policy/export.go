package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/folder"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// ExportOptions say how weights are stored.
type ExportOptions struct {
	DType    string // float32, bfloat16, float16; "": each tensor as it was
	MaxShard int64  // bytes of weights in one file; 0: 5 GB
}

const defaultShard = 5 << 30

// ExportMerged writes a model folder that needs no adapter: the weights of base with scale·B·A added (computed in float32
// and rounded once), and everything else of base that belongs to the model: configuration, tokenizer, licence. out must
// not exist, or be empty; it appears only when it is whole.
func ExportMerged(base, adapter, out string, o ExportOptions) error {
	if err := exportMerged(base, adapter, out, o); err != nil {
		return fmt.Errorf("export %s merged with %s: %w", base, adapter, err)
	}
	return nil
}

func exportMerged(base, adapter, out string, o ExportOptions) error {
	as, err := storedAs(o.DType)
	if err != nil {
		return err
	}
	c, err := ReadConfig(base)
	if err != nil {
		return err
	}
	low, err := ReadAdapter(adapter, c)
	if err != nil {
		return err
	}
	set, err := safetensors.OpenDir(base)
	if err != nil {
		return err
	}
	defer set.Close()
	if err := c.CheckWeights(set); err != nil {
		return err
	}
	if o.MaxShard == 0 {
		o.MaxShard = defaultShard
	}
	return folder.Build(out, func(partial string) error {
		if err := copyModelFiles(base, partial, o.DType); err != nil {
			return err
		}
		return safetensors.WriteDir(partial, mergedItems(c, set, low.Weights, as), safetensors.Options{MaxShard: o.MaxShard, Sync: true})
	})
}

// storedAs is the element type of that name, "" for "".
func storedAs(dtype string) (safetensors.DType, error) {
	as, ok := map[string]safetensors.DType{"": "", "float32": safetensors.F32, "bfloat16": safetensors.BF16, "float16": safetensors.F16}[dtype]
	if !ok {
		return "", fmt.Errorf("dtype %q is not supported; supported: float32, bfloat16, float16", dtype)
	}
	return as, nil
}

// byTensor finds an adapter's part of a tensor by the tensor's name.
func byTensor(adapter []LoRAWeights) map[string]LoRAWeights {
	low := map[string]LoRAWeights{}
	for _, w := range adapter {
		low[w.Path()+".weight"] = w
	}
	return low
}

// mergedItems are the weights of c with the adapter added, converted when they are written.
func mergedItems(c Config, set *safetensors.Set, adapter []LoRAWeights, as safetensors.DType) []safetensors.Item {
	low := byTensor(adapter)
	var items []safetensors.Item
	for _, p := range c.Parameters() {
		t, _ := set.Tensor(p.Name)
		add, changed := low[p.Name]
		if !changed && (as == "" || as == t.DType) {
			items = append(items, safetensors.Copy(t))
			continue
		}
		to := as
		if to == "" {
			to = t.DType
		}
		items = append(items, safetensors.Item{Name: p.Name, DType: to, Shape: p.Shape, Write: func(w io.Writer) error {
			return writeMerged(w, t, to, add)
		}})
	}
	return items
}

// writeMerged sends t plus the adapter's part, if it has one, row by row.
func writeMerged(w io.Writer, t safetensors.Tensor, to safetensors.DType, add LoRAWeights) error {
	width := t.Len() / t.Shape[0]
	row := make([]float32, width)
	for r := range t.Shape[0] {
		if err := t.Rows(r, r+1).Float32s(row); err != nil {
			return err
		}
		if add.R > 0 {
			add.mergeRow(row, r)
		}
		if err := safetensors.Encode(w, to, row); err != nil {
			return err
		}
	}
	return nil
}

// mergeRow adds Scale·B·A to row r of the module's matrix: W' = W + scale·(B·A), in float32 with each product rounded, as
// PEFT merges.
func (l LoRAWeights) mergeRow(row []float32, r int) {
	delta := make([]float32, len(row))
	for k, b := range l.B[r*l.R : (r+1)*l.R] {
		for i, a := range l.A[k*len(row) : (k+1)*len(row)] {
			delta[i] += float32(b * a)
		}
	}
	scale := float32(l.Scale)
	for i, d := range delta {
		row[i] += float32(scale * d)
	}
}

// Merged reads a model's weights with an adapter merged into them, as ExportMerged writes them in float32.
type Merged struct {
	src Source
	low map[string]LoRAWeights
}

// Merge merges the adapter of a PEFT folder into src, which has to stay open; "": the weights are src's own.
func Merge(src Source, adapter string) (*Merged, error) {
	m := &Merged{src: src}
	if adapter == "" {
		return m, nil
	}
	file, err := ReadAdapter(adapter, src.Config())
	if err != nil {
		return nil, err
	}
	m.low = byTensor(file.Weights)
	return m, nil
}

// Path is where the model without the adapter is.
func (m *Merged) Path() string { return m.src.Path() }

// Config is the model's.
func (m *Merged) Config() Config { return m.src.Config() }

// Row reads row r of a tensor of Config().Parameters(), or all of a vector if r is 0. dst has the length of what is read.
func (m *Merged) Row(dst []float32, name string, r int) error {
	if err := m.src.Stored(name).Float32s(dst, r); err != nil {
		return err
	}
	if add, changed := m.low[name]; changed {
		add.mergeRow(dst, r)
	}
	return nil
}

// copyModelFiles copies what describes a model beside its weights, with the configuration's dtype changed if one is given.
func copyModelFiles(from, to, dtype string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if !describesModel(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if name == "config.json" && dtype != "" {
			if text, err = withDType(text, dtype); err != nil {
				return fmt.Errorf("read %s: %w", filepath.Join(from, name), err)
			}
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// describesModel reports whether a file of a model folder holds for the model with other weights too.
func describesModel(name string) bool {
	upper := strings.ToUpper(name)
	if strings.HasPrefix(upper, "LICENSE") || strings.HasPrefix(upper, "NOTICE") {
		return true
	}
	return slices.Contains([]string{
		"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
		"added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json",
	}, name)
}

// withDType is a config.json with another dtype under the key that it uses.
func withDType(text []byte, dtype string) ([]byte, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	if values == nil {
		return nil, errors.New("not a JSON object")
	}
	key := "torch_dtype"
	if _, newer := values["dtype"]; newer {
		key = "dtype"
	}
	values[key] = json.RawMessage(`"` + dtype + `"`)
	changed, err := json.MarshalIndent(values, "", "  ")
	return append(changed, '\n'), err
}
