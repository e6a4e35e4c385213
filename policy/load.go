package policy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// Load reads a model folder in Hugging Face's format onto dev, tensor by tensor from the mapped files. A missing,
// surplus or mis-shaped tensor is an error that names it.
func Load(ctx context.Context, dev device.Device, dir string, o LoadOptions) (*Model, error) {
	src, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return LoadFrom(ctx, dev, src, o)
}

// LoadFrom reads a model from an open source, which may be closed afterwards.
func LoadFrom(ctx context.Context, dev device.Device, src Source, o LoadOptions) (*Model, error) {
	m, err := newModel(dev, src.Config(), o, func(name string) device.DType { return src.Stored(name).DType() })
	if err != nil {
		return nil, err
	}
	m.source, m.fingerprint = src.Path(), Fingerprint(src)
	if err := m.read(ctx, src); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

// New makes a model with random weights: matrices normal with c.InitStd, biases 0, norms 1, as transformers initialises
// them. The same seed gives the same model on every device.
func New(ctx context.Context, dev device.Device, c Config, seed uint64, o LoadOptions) (*Model, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("policy: make a new model: %w", err)
	}
	m, err := newModel(dev, c, o, func(string) device.DType { return device.Float32 })
	if err != nil {
		return nil, err
	}
	m.fingerprint = fmt.Sprintf("random %d %x", seed, sha256.Sum256(fmt.Appendf(nil, "%+v", c)))
	if err := m.randomise(ctx, seed); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

// LoadFull replaces all weights by those of a folder that SaveFull wrote.
func (m *Model) LoadFull(ctx context.Context, dir string) error {
	src, err := openFolder(dir, m.cfg)
	if err != nil {
		return err
	}
	defer src.Close()
	return m.read(ctx, src)
}

// transferLen is how many elements of a tensor are converted at a time.
const transferLen = 1 << 20

// read fills the model from a source.
func (m *Model) read(ctx context.Context, src Source) error {
	place, values := m.places(), make([]float32, transferLen)
	for _, p := range m.cfg.Parameters() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("policy: load %s: %w", src.Path(), err)
		}
		t, to := src.Stored(p.Name), place[p.Name]
		n, width := p.Shape[0], elements(p.Shape)/p.Shape[0]
		step := max(1, transferLen/width)
		for row := 0; row < n; row += step {
			end := min(row+step, n)
			var err error
			if to.weight != nil {
				err = t.Pack(m.dev, to.weight, to.row+row, row, end)
			} else {
				v := grow(&values, (end-row)*width)
				if err = t.Float32s(v, row); err == nil {
					err = m.set(p, to, row, v)
				}
			}
			if err != nil {
				return fmt.Errorf("policy: load %s: %w", p.Name, err)
			}
		}
	}
	return m.Refresh()
}

// place is where a frozen matrix begins.
type place struct {
	weight device.Weight
	row    int
}

// places maps the names of the matrices that the flat vector does not hold to their weights.
func (m *Model) places() map[string]place {
	at := map[string]place{}
	if m.full() {
		return at
	}
	at[EmbedName] = place{weight: m.embed}
	if m.head != m.embed {
		at[HeadName] = place{weight: m.head}
	}
	for l := range m.fused {
		for f, ps := range fusions {
			row := 0
			for i, name := range fusedNames(l, ps) {
				at[name] = place{m.fused[l][f], row}
				_, out := m.cfg.ProjectionSize(ps[i])
				row += out
			}
		}
	}
	return at
}

// set writes the rows of p from row on, either to their weight or to the flat vector.
func (m *Model) set(p Parameter, to place, row int, v []float32) error {
	if to.weight != nil {
		return m.dev.LoadWeight(to.weight, to.row+row, v)
	}
	width := elements(p.Shape) / p.Shape[0]
	m.dev.Upload(m.flat.W, m.table.offsets[m.table.index[p.Name]]+row*width, v)
	return m.dev.Err()
}

func (m *Model) randomise(ctx context.Context, seed uint64) error {
	place := m.places()
	for i, p := range m.cfg.Parameters() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.set(p, place[p.Name], 0, m.cfg.initial(i, p, seed)); err != nil {
			return fmt.Errorf("policy: initialise %s: %w", p.Name, err)
		}
	}
	return m.Refresh()
}

// normal fills v with normal numbers of mean 0 and the given standard deviation (Box and Muller), two to a counter.
func normal(v []float32, std float64, key device.PhiloxKey) {
	for i := 0; i < len(v); i += 2 {
		w := device.Philox(key, [4]uint32{uint32(i / 2)})
		r := std * math.Sqrt(-2*math.Log(float64(device.Uniform(w[0]))))
		sin, cos := math.Sincos(2 * math.Pi * float64(device.Uniform(w[1])))
		v[i] = float32(r * cos)
		if i+1 < len(v) {
			v[i+1] = float32(r * sin)
		}
	}
}
