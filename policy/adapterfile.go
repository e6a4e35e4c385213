package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// The files of a PEFT adapter folder.
const (
	AdapterConfigName  = "adapter_config.json"
	AdapterWeightsName = "adapter_model.safetensors"
)

// LoRAWeights are the two factors of one module, A [R,in] and B [out,R].
type LoRAWeights struct {
	LoRAModule
	A, B []float32
}

// AdapterFile is an adapter as PEFT stores it. Weights has one entry for each of Config.Modules, in their order.
type AdapterFile struct {
	Config  LoRAConfig
	Base    string // base_model_name_or_path: where the base model was
	Weights []LoRAWeights
}

// ReadAdapter reads a PEFT adapter folder for a model of configuration c. What this package does not compute, and any
// tensor that is missing, surplus or mis-shaped, is an error that names it.
func ReadAdapter(dir string, c Config) (AdapterFile, error) {
	var a AdapterFile
	var err error
	if a.Config, a.Base, err = ReadLoRAConfig(dir); err != nil {
		return AdapterFile{}, err
	}
	modules, err := a.Config.Modules(c)
	if err != nil {
		return AdapterFile{}, fmt.Errorf("read %s: %w", filepath.Join(dir, AdapterConfigName), err)
	}
	path := filepath.Join(dir, AdapterWeightsName)
	if _, err := os.Stat(filepath.Join(dir, "adapter_model.bin")); err == nil {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return AdapterFile{}, fmt.Errorf("read %s: only adapter_model.bin is there; save the adapter as safetensors", dir)
		}
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return AdapterFile{}, err
	}
	defer f.Close()
	known := map[string]bool{}
	for _, m := range modules {
		w := LoRAWeights{LoRAModule: m}
		in, out := c.ProjectionSize(m.Projection)
		nameA, nameB := m.Names()
		known[nameA], known[nameB] = true, true
		if w.A, err = readMatrix(f, path, nameA, m.R, in); err != nil {
			return AdapterFile{}, err
		}
		if w.B, err = readMatrix(f, path, nameB, out, m.R); err != nil {
			return AdapterFile{}, err
		}
		a.Weights = append(a.Weights, w)
	}
	for _, name := range f.Names() {
		if !known[name] {
			return AdapterFile{}, fmt.Errorf("read %s: tensor %q belongs to no module that %s gives an adapter", path, name, AdapterConfigName)
		}
	}
	return a, nil
}

func readMatrix(f *safetensors.File, path, name string, rows, cols int) ([]float32, error) {
	t, ok := f.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("read %s: tensor %q is missing", path, name)
	}
	if !slices.Equal(t.Shape, []int{rows, cols}) {
		return nil, fmt.Errorf("read %s: tensor %q has shape %v; the model and %s ask for [%d %d]", path, name, t.Shape, AdapterConfigName, rows, cols)
	}
	values := make([]float32, rows*cols)
	return values, t.Float32s(values)
}

// WriteAdapter writes adapter_config.json and adapter_model.safetensors (F32) into dir, as PEFT reads them. With sync,
// the weights are flushed to the disk.
func WriteAdapter(dir string, a AdapterFile, c Config, sync bool) error {
	modules, err := a.Config.Modules(c)
	if err != nil {
		return fmt.Errorf("write the adapter %s: %w", dir, err)
	}
	if len(modules) != len(a.Weights) {
		return fmt.Errorf("write the adapter %s: %d modules have weights, the configuration gives %d an adapter", dir, len(a.Weights), len(modules))
	}
	var items []safetensors.Item
	for i, w := range a.Weights {
		in, out := c.ProjectionSize(w.Projection)
		if w.LoRAModule != modules[i] || len(w.A) != w.R*in || len(w.B) != out*w.R {
			return fmt.Errorf("write the adapter %s: the weights of %s do not fit the configuration", dir, w.Path())
		}
		nameA, nameB := w.Names()
		items = append(items,
			safetensors.Float32s(nameA, safetensors.F32, []int{w.R, in}, w.A),
			safetensors.Float32s(nameB, safetensors.F32, []int{out, w.R}, w.B))
	}
	if err := writeJSON(filepath.Join(dir, AdapterConfigName), a.peft()); err != nil {
		return err
	}
	return safetensors.Write(filepath.Join(dir, AdapterWeightsName), items, safetensors.Options{Sync: sync})
}
