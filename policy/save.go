package policy

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// SaveAdapter writes an adapter set into dir, which is made if need be, as PEFT does.
func (m *Model) SaveAdapter(name, dir string) error {
	a, err := m.adapter(name)
	if err != nil {
		return err
	}
	mods, err := a.config.Modules(m.cfg)
	if err != nil {
		return err
	}
	flat, err := a.params.Download(m.dev)
	if err != nil {
		return err
	}
	file := AdapterFile{Config: a.config, Base: m.source}
	for _, mod := range mods {
		low := &a.layers[mod.Layer][mod.Projection]
		part := func(off, rows, cols int) []float32 { return flat[off : off+rows*cols] }
		file.Weights = append(file.Weights, LoRAWeights{
			LoRAModule: mod, A: part(low.a.Off, low.a.Rows, low.a.Cols), B: part(low.b.Off, low.b.Rows, low.b.Cols),
		})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return WriteAdapter(dir, file, m.cfg, true)
}

// LoadAdapter adds the trainable adapter set of a PEFT folder under a name.
func (m *Model) LoadAdapter(name, dir string) error {
	file, err := ReadAdapter(dir, m.cfg)
	if err != nil {
		return err
	}
	a, _, err := m.addAdapter(name, file.Config)
	if err != nil {
		return err
	}
	return a.set(m.dev, file.Weights)
}

// RestoreAdapter replaces the values of an adapter set by those of a PEFT folder with the same ranks on the same modules.
func (m *Model) RestoreAdapter(name, dir string) error {
	a, err := m.adapter(name)
	if err != nil {
		return err
	}
	file, err := ReadAdapter(dir, m.cfg)
	if err != nil {
		return err
	}
	mods, err := a.config.Modules(m.cfg)
	if err != nil {
		return err
	}
	same := len(mods) == len(file.Weights)
	for i := 0; same && i < len(mods); i++ {
		same = mods[i] == file.Weights[i].LoRAModule
	}
	if !same {
		return fmt.Errorf("policy: the adapter in %s has other modules, ranks or scales than adapter %q: set lora.* as in the run that made it", dir, name)
	}
	return a.set(m.dev, file.Weights)
}

// set uploads the values of the set's modules.
func (a *adapter) set(dev device.Device, weights []LoRAWeights) error {
	for _, w := range weights {
		low := &a.layers[w.Layer][w.Projection]
		dev.Upload(low.a.Mem, low.a.Off, w.A)
		dev.Upload(low.b.Mem, low.b.Off, w.B)
	}
	return dev.Err()
}

// SaveFull writes the weights of a model that is trained in full, as float32, and its configuration into dir, which is
// made if need be: a folder that Load and transformers read. The tokenizer is the caller's to add.
func (m *Model) SaveFull(dir string) error {
	if !m.full() {
		return errors.New("policy: the weights are frozen and were not changed: copy the folder that they came from, or save an adapter")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var items []safetensors.Item
	for i, p := range m.table.tensors {
		items = append(items, safetensors.Item{Name: p.Name, DType: safetensors.F32, Shape: p.Shape, Write: func(w io.Writer) error {
			return m.writeFlat(w, m.table.offsets[i], elements(p.Shape))
		}})
	}
	const shard = 5 << 30
	if err := safetensors.WriteDir(dir, items, safetensors.Options{MaxShard: shard, Sync: true}); err != nil {
		return fmt.Errorf("policy: save %s: %w", dir, err)
	}
	c := m.cfg
	c.DType = "float32"
	return WriteConfig(dir, c)
}

// writeFlat writes n elements of the flat vector from off on.
func (m *Model) writeFlat(w io.Writer, off, n int) error {
	buf := make([]float32, min(n, transferLen))
	for n > 0 {
		part := buf[:min(n, len(buf))]
		if err := m.dev.Download(part, m.flat.W, off); err != nil {
			return err
		}
		if err := safetensors.Encode(w, safetensors.F32, part); err != nil {
			return err
		}
		off, n = off+len(part), n-len(part)
	}
	return nil
}
