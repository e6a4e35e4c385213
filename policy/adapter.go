package policy

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// adapter is a set of low-rank parts.
type adapter struct {
	config LoRAConfig
	frozen bool
	params *Params
	layers [][numProjections]lowRank
}

// lowRank is one projection's part; where there is none, a is absent.
type lowRank struct {
	a, b   device.Mat // [r,K], [n,r]
	da, db device.Mat // absent until gradients are wanted
	scale  float32
}

const numProjections = int(Down) + 1

// ErrNoAdapter is in the error of a call that names an adapter set which the model does not have.
var ErrNoAdapter = errors.New("no such adapter")

func (m *Model) adapter(name string) (*adapter, error) {
	if a, ok := m.adapters[name]; ok {
		return a, nil
	}
	return nil, fmt.Errorf("policy: adapter %q: %w; there are %q", name, ErrNoAdapter, m.Adapters())
}

// Adapters lists the model's adapter sets in ascending order.
func (m *Model) Adapters() []string { return slices.Sorted(maps.Keys(m.adapters)) }

// AdapterConfig returns the shape of an adapter set.
func (m *Model) AdapterConfig(name string) (LoRAConfig, error) {
	a, err := m.adapter(name)
	if err != nil {
		return LoRAConfig{}, err
	}
	return a.config, nil
}

// AddAdapter adds a trainable adapter set that changes nothing yet: A is uniform in ±1/sqrt(in) (PEFT's
// kaiming_uniform with a = sqrt 5) by seed, B is zero.
func (m *Model) AddAdapter(name string, c LoRAConfig, seed uint64) error {
	a, mods, err := m.addAdapter(name, c)
	if err != nil {
		return err
	}
	for _, mod := range mods {
		low := &a.layers[mod.Layer][mod.Projection]
		v := make([]float32, low.a.Rows*low.a.Cols)
		uniform(v, 1/math.Sqrt(float64(low.a.Cols)), device.NewKey(seed, uint64(mod.Layer), uint64(mod.Projection)))
		m.dev.Upload(low.a.Mem, low.a.Off, v)
	}
	return m.dev.Err()
}

// uniform fills v with numbers in (-bound, bound), four to a counter.
func uniform(v []float32, bound float64, key device.PhiloxKey) {
	for i := range v {
		w := device.Philox(key, [4]uint32{uint32(i / 4)})
		v[i] = float32(bound * (2*float64(device.Uniform(w[i%4])) - 1))
	}
}

// addAdapter adds a set whose parts are all zero.
func (m *Model) addAdapter(name string, c LoRAConfig) (*adapter, []LoRAModule, error) {
	if name == "" || name == FullSet || m.adapters[name] != nil {
		return nil, nil, fmt.Errorf("policy: an adapter cannot be named %q, or there is one already: drop it first", name)
	}
	mods, err := c.Modules(m.cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("policy: adapter %q: %w", name, err)
	}
	var parts []Parameter
	for _, mod := range mods {
		in, out := m.cfg.ProjectionSize(mod.Projection)
		nameA, nameB := mod.Names()
		parts = append(parts, Parameter{nameA, []int{mod.R, in}}, Parameter{nameB, []int{out, mod.R}})
	}
	table := newCatalog(parts)
	a := &adapter{config: c, params: newParams(table), layers: make([][numProjections]lowRank, m.cfg.Layers)}
	if err := a.params.alloc(m.dev, false); err != nil {
		return nil, nil, fmt.Errorf("policy: adapter %q: %w", name, err)
	}
	for _, mod := range mods {
		in, out := m.cfg.ProjectionSize(mod.Projection)
		nameA, nameB := mod.Names()
		a.layers[mod.Layer][mod.Projection] = lowRank{
			a: table.at(a.params.W, nameA, mod.R, in), b: table.at(a.params.W, nameB, out, mod.R), scale: float32(mod.Scale),
		}
	}
	m.adapters[name] = a
	return a, mods, nil
}

// needGrad takes memory for gradients unless the set is frozen or has some.
func (a *adapter) needGrad(dev device.Device) error {
	if a.frozen || a.params.Grad != nil {
		return nil
	}
	grad, err := dev.Alloc(device.F32, a.params.Len)
	if err != nil {
		return fmt.Errorf("policy: no memory for an adapter's gradients: %w", err)
	}
	a.params.Grad = grad
	for l := range a.layers {
		for p := range a.layers[l] {
			if low := &a.layers[l][p]; !low.a.Absent() {
				low.da, low.db = low.a, low.b
				low.da.Mem, low.db.Mem = grad, grad
			}
		}
	}
	return nil
}

// CopyAdapter makes dst a frozen copy of src, such as the reference that a run started from; an existing dst of the
// same shape is overwritten.
func (m *Model) CopyAdapter(dst, src string) error {
	from, err := m.adapter(src)
	if err != nil {
		return err
	}
	to := m.adapters[dst]
	if to == nil {
		if to, _, err = m.addAdapter(dst, from.config); err != nil {
			return err
		}
		to.frozen = true
	}
	if !slices.Equal(to.params.Names, from.params.Names) || to.params.Len != from.params.Len || !to.frozen {
		return fmt.Errorf("policy: adapter %q is no frozen copy of %q that could be overwritten", dst, src)
	}
	chunks(0, from.params.Len, func(view func(device.Mem) device.Mat) { m.dev.Copy(view(to.params.W), view(from.params.W)) })
	return m.dev.Err()
}

// DropAdapter removes an adapter set and frees its memory. Passes that used it must have been released.
func (m *Model) DropAdapter(name string) error {
	a, err := m.adapter(name)
	if err != nil {
		return err
	}
	a.params.free(m.dev)
	delete(m.adapters, name)
	return nil
}
