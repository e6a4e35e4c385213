package gguf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
)

// Model is a GGUF file as the policy.Source that it is: its tensors under transformers' names, in transformers' order of
// rows. Quantised tensors are loaded as they are into weights of their type.
type Model struct {
	file    *File
	cfg     policy.Config
	tok     *tokenizer
	tensors map[string]Tensor // by GGUF's names
}

// OpenModel opens a file and checks that it is a whole model: configuration, tokenizer, and every tensor.
func OpenModel(path string) (*Model, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	m, err := f.model()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	return m, nil
}

func (f *File) model() (*Model, error) {
	m := &Model{file: f, tensors: map[string]Tensor{}}
	for _, t := range f.Tensors {
		m.tensors[t.Name] = t
	}
	var err error
	if m.cfg, err = f.config(m.tensors); err != nil {
		return nil, err
	}
	if m.tok, err = f.tokenizer(m.cfg); err != nil {
		return nil, err
	}
	return m, m.check()
}

// check compares the tensors with those that the configuration asks for.
func (m *Model) check() error {
	if m.cfg.Layers > len(m.tensors) {
		return fmt.Errorf("%d layers, but only %d tensors", m.cfg.Layers, len(m.tensors))
	}
	used := map[string]bool{"rope_freqs.weight": true}
	for _, p := range m.cfg.Parameters() {
		name, err := ggmlName(p.Name)
		if err != nil {
			return err
		}
		t, ok := m.tensors[name]
		if !ok {
			return fmt.Errorf("tensor %q (%s) is missing", name, p.Name)
		}
		if !slices.Equal(t.Shape, p.Shape) {
			return fmt.Errorf("tensor %q has shape %v; the metadata ask for %v", name, t.Shape, p.Shape)
		}
		used[name] = true
	}
	for _, t := range m.file.Tensors {
		if !used[t.Name] {
			return fmt.Errorf("tensor %q is none that %s has", t.Name, m.cfg.Arch.Causal())
		}
	}
	return nil
}

// Path is the file.
func (m *Model) Path() string { return m.file.name }

// Config is what the metadata say.
func (m *Model) Config() policy.Config { return m.cfg }

// Close releases the file.
func (m *Model) Close() error { return m.file.Close() }

// Stored returns a tensor.
func (m *Model) Stored(name string) policy.Stored { return m.tensor(name) }

func (m *Model) tensor(name string) *stored {
	name, _ = ggmlName(name) // check has seen them all
	return &stored{m.tensors[name], rowOrder(m.cfg, name)}
}

// TokenizerFiles are the files that transformers would have of the tokenizer, by name.
func (m *Model) TokenizerFiles() (map[string][]byte, error) { return m.tok.files(m.cfg) }

// stored is a tensor whose row r lies in row from(r).
type stored struct {
	Tensor
	from func(r int) int
}

func (t *stored) Content() (string, []byte) { return t.Type.String(), t.Data }
func (t *stored) DType() device.DType       { return t.Type.DType() }

// Float32s dequantises the rows from row on; those of a vector are its values.
func (t *stored) Float32s(dst []float32, row int) error {
	if len(t.Shape) == 1 {
		all := make([]float32, t.Len())
		if err := t.Tensor.Float32s(all); err != nil {
			return err
		}
		for i := range dst {
			dst[i] = all[t.from(row+i)]
		}
		return nil
	}
	for width := t.Shape[1]; len(dst) > 0; dst, row = dst[width:], row+1 {
		if err := t.Row(t.from(row)).Float32s(dst[:width]); err != nil {
			return err
		}
	}
	return nil
}

func (t *stored) Pack(dev device.Memory, w device.Weight, at, r0, r1 int) error {
	width := t.Shape[1]
	if _, ok := t.DType().Form(); ok && w.DType() == t.DType() {
		q := device.NewQuant(t.DType(), r1-r0, width)
		for r := r0; r < r1; r++ {
			t.Row(t.from(r)).quantised(q.RowsOf(r-r0, r-r0+1))
		}
		return dev.LoadWeightQuant(w, at, q)
	}
	v := make([]float32, (r1-r0)*width)
	if err := t.Float32s(v, r0); err != nil {
		return err
	}
	return dev.LoadWeight(w, at, v)
}
