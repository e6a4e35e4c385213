package policy

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// Model is a decoder on one device: weights, frozen or trained, and any number of named adapter sets. Like its device,
// it serves one goroutine at a time.
type Model struct {
	dev   device.Device
	cfg   Config
	dims  dims
	train string

	source      string // the folder that the weights came from
	fingerprint string

	embed, head device.Weight // one weight if they are tied
	fused       [][len(fusions)]device.Weight

	// flat holds the vectors (norms and biases) and, if all weights are trained, the matrices that the packed weights
	// above are copies of.
	table   *catalog
	flat    *Params
	vectors leaves // in flat.W
	grads   leaves // in flat.Grad, absent unless all weights are trained

	adapters map[string]*adapter
	rope     ropeTable
	pool     pool
	kv       *cache
}

// LoadOptions say how a model's weights are kept.
type LoadOptions struct {
	// DType is how matrices are stored: float32, bfloat16; int8 or int4 for those of the layers, with embedding and head in
	// bfloat16; auto (or ""): as in the files, float32 for float16 and for weights that are trained; or auto16: as auto, but
	// bfloat16 in place of float32. Matrices that are computed as one and differ in the files are kept in a type that
	// holds either: bfloat16 unless one is float32.
	DType string
	// Train is "lora" (or ""): the weights are frozen, adapters are trained; or "full": all weights are trained, with
	// float32 originals and gradients.
	Train string
}

// Config describes the model.
func (m *Model) Config() Config { return m.cfg }

// Device is where the model is.
func (m *Model) Device() device.Device { return m.dev }

// Fingerprint identifies the weights that the model began with, whatever was trained since: a checkpoint belongs to
// models of one fingerprint.
func (m *Model) Fingerprint() string { return m.fingerprint }

// full reports whether all weights are trained.
func (m *Model) full() bool { return m.train == "full" }

// newModel takes the memory of a model of configuration c; stored tells a tensor's type in the files.
func newModel(dev device.Device, c Config, o LoadOptions, stored func(name string) device.DType) (*Model, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	m := &Model{
		dev: dev, cfg: c, dims: newDims(c), train: o.Train,
		fused: make([][len(fusions)]device.Weight, c.Layers), adapters: map[string]*adapter{}, pool: pool{dev: dev},
	}
	var kept []Parameter
	for _, p := range c.flatOrder() {
		if m.full() || len(p.Shape) == 1 {
			kept = append(kept, p)
		}
	}
	m.table = newCatalog(kept)
	m.flat = newParams(m.table)
	if err := m.alloc(o, stored); err != nil {
		m.free()
		return nil, fmt.Errorf("policy: no memory for the weights: %w", err)
	}
	m.vectors = c.leaves(m.table, m.flat.W)
	m.grads = c.leaves(m.table, m.flat.Grad)
	return m, nil
}

func (m *Model) alloc(o LoadOptions, stored func(name string) device.DType) error {
	if err := m.flat.alloc(m.dev, m.full()); err != nil {
		return err
	}
	sizes := m.cfg.weightSizes(o, stored)
	next := func(w *device.Weight) (err error) {
		*w, err = m.dev.NewWeight(sizes[0].dtype, sizes[0].n, sizes[0].k)
		sizes = sizes[1:]
		return err
	}
	if err := next(&m.embed); err != nil {
		return err
	}
	m.head = m.embed
	if !m.cfg.Tied {
		if err := next(&m.head); err != nil {
			return err
		}
	}
	for l := range m.fused {
		for f := range fusions {
			if err := next(&m.fused[l][f]); err != nil {
				return err
			}
		}
	}
	return nil
}

// WeightType is how the matrices of the first layer are kept.
func (m *Model) WeightType() device.DType { return m.fused[0][0].DType() }

// Close gives all of the model's memory back to the device, which stays open.
func (m *Model) Close() error {
	err := m.dev.Sync()
	m.free()
	return err
}

func (m *Model) free() {
	for name := range m.adapters {
		m.adapters[name].params.free(m.dev)
	}
	m.adapters = nil
	m.FreeCache()
	m.pool.drop(func(block) bool { return true })
	m.rope.free(m.dev)
	m.flat.free(m.dev)
	weights := []device.Weight{m.embed}
	if m.head != m.embed {
		weights = append(weights, m.head)
	}
	for _, l := range m.fused {
		weights = append(weights, l[:]...)
	}
	for _, w := range weights {
		if w != nil {
			m.dev.FreeWeight(w)
		}
	}
	m.fused, m.embed, m.head = nil, nil, nil
}

// Params returns the trainable parameters of an adapter set, or, where set is "" or "full", all weights of a model that
// was loaded to train them.
func (m *Model) Params(set string) (*Params, error) {
	if set == "" || set == FullSet {
		if !m.full() {
			return nil, fmt.Errorf("policy: the weights are frozen; load the model with Train \"full\", or name an adapter")
		}
		return m.flat, nil
	}
	a, err := m.adapter(set)
	if err != nil {
		return nil, err
	}
	return a.params, a.needGrad(m.dev)
}

// FullSet is the name of all weights of a model as a set of parameters.
const FullSet = "full"

// Refresh repacks the weights after Params("full") has changed. Until then passes compute with the old matrices.
func (m *Model) Refresh() error {
	if !m.full() {
		return nil
	}
	m.dev.Repack(m.embed, 0, m.vectors.embed)
	if m.head != m.embed {
		m.dev.Repack(m.head, 0, m.vectors.head)
	}
	for l := range m.fused {
		for f, w := range m.fused[l] {
			m.dev.Repack(w, 0, m.vectors.layers[l].fused[f].w)
		}
	}
	return m.dev.Err()
}
