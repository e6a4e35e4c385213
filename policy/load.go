package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// Load reads a model folder in Hugging Face's format onto dev, tensor by tensor from the mapped files. A missing,
// surplus or mis-shaped tensor is an error that names it.
func Load(ctx context.Context, dev device.Device, dir string, o LoadOptions) (*Model, error) {
	cfg, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	files, err := openWeights(dir, cfg)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	m, err := newModel(dev, cfg, o, func(name string) device.DType {
		if t, _ := files.Tensor(name); t.DType == safetensors.BF16 {
			return device.BFloat16
		}
		return device.Float32
	})
	if err != nil {
		return nil, err
	}
	m.source, m.fingerprint = dir, fingerprint(cfg, files)
	if err := m.read(ctx, files); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

// Fingerprint is the Fingerprint of the model in a folder, without loading it.
func Fingerprint(dir string) (string, error) {
	cfg, err := ReadConfig(dir)
	if err != nil {
		return "", err
	}
	files, err := openWeights(dir, cfg)
	if err != nil {
		return "", err
	}
	return fingerprint(cfg, files), files.Close()
}

// fingerprint hashes a configuration and a sample of the bytes of every tensor.
func fingerprint(c Config, files *safetensors.Set) string {
	c.BOS, c.Pad, c.EOS = NoToken, NoToken, nil // people correct these
	h := sha256.New()
	fmt.Fprintf(h, "%+v", c)
	for _, p := range c.Parameters() {
		t, _ := files.Tensor(p.Name)
		fmt.Fprint(h, p.Name, p.Shape, t.DType)
		const step = 4099
		sample := make([]byte, 0, len(t.Data)/step+1)
		for i := 0; i < len(t.Data); i += step {
			sample = append(sample, t.Data[i])
		}
		h.Write(sample)
	}
	return hex.EncodeToString(h.Sum(nil))
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
	files, err := openWeights(dir, m.cfg)
	if err != nil {
		return err
	}
	defer files.Close()
	return m.read(ctx, files)
}

func openWeights(dir string, c Config) (*safetensors.Set, error) {
	files, err := safetensors.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	if err := c.CheckWeights(files); err != nil {
		files.Close()
		return nil, err
	}
	return files, nil
}

// transferLen is how many elements of a tensor are converted at a time.
const transferLen = 1 << 20

// read fills the model from files.
func (m *Model) read(ctx context.Context, files *safetensors.Set) error {
	place := m.places()
	values, bits := make([]float32, transferLen), make([]uint16, transferLen)
	for _, p := range m.cfg.Parameters() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("policy: load %s: %w", files.Dir, err)
		}
		t, _ := files.Tensor(p.Name)
		err := inRows(t, func(part safetensors.Tensor, row int) error {
			to := place[p.Name]
			if to.weight != nil && t.DType == safetensors.BF16 {
				b := grow(&bits, part.Len())
				if err := part.Bits(b); err != nil {
					return err
				}
				return m.dev.LoadWeightBF16(to.weight, to.row+row, b)
			}
			v := grow(&values, part.Len())
			if err := part.Float32s(v); err != nil {
				return err
			}
			return m.set(p, to, row, v)
		})
		if err != nil {
			return fmt.Errorf("policy: load %s: %w", p.Name, err)
		}
	}
	return m.Refresh()
}

// inRows cuts t into runs of rows and calls do with each and its first row.
func inRows(t safetensors.Tensor, do func(part safetensors.Tensor, row int) error) error {
	n := t.Shape[0]
	step := max(1, transferLen/max(1, t.Len()/n))
	for row := 0; row < n; row += step {
		if err := do(t.Rows(row, min(row+step, n)), row); err != nil {
			return err
		}
	}
	return nil
}

func grow[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	return (*buf)[:n]
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
