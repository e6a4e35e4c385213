package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// Source is where a model is read from: a Folder, or a GGUF file.
type Source interface {
	Path() string
	Config() Config
	// Stored returns a tensor of Config().Parameters(), which is there and has the shape that it has there.
	Stored(name string) Stored
	Close() error
}

// Stored is a tensor of a Source, usable until that is closed. Rows go along the first axis.
type Stored interface {
	Content() (kind string, data []byte) // its type there, by name, and its bytes
	DType() device.DType                 // of the weight that keeps it as it is; Float32 for float16
	Float32s(dst []float32, row int) error
	// Pack loads the rows [r0, r1) as the rows of w from at on.
	Pack(dev device.Memory, w device.Weight, at, r0, r1 int) error
}

// Folder is the Source of a model folder in Hugging Face's format, whose files it maps.
type Folder struct {
	dir    string
	cfg    Config
	set    *safetensors.Set
	values []float32
	bits   []uint16
}

// OpenFolder opens a model folder. A missing, surplus or mis-shaped tensor is an error that names it.
func OpenFolder(dir string) (*Folder, error) {
	cfg, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	return openFolder(dir, cfg)
}

func openFolder(dir string, c Config) (*Folder, error) {
	set, err := safetensors.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	if err := c.CheckWeights(set); err != nil {
		set.Close()
		return nil, err
	}
	return &Folder{dir: dir, cfg: c, set: set}, nil
}

// Path is the folder.
func (f *Folder) Path() string { return f.dir }

// Config is what config.json says.
func (f *Folder) Config() Config { return f.cfg }

// Close releases the files.
func (f *Folder) Close() error { return f.set.Close() }

// Stored returns a tensor.
func (f *Folder) Stored(name string) Stored {
	t, _ := f.set.Tensor(name)
	return &stored{f, t}
}

// stored is a tensor of a folder.
type stored struct {
	folder *Folder
	t      safetensors.Tensor
}

func (s *stored) Content() (string, []byte) { return string(s.t.DType), s.t.Data }

func (s *stored) DType() device.DType {
	if s.t.DType == safetensors.BF16 {
		return device.BFloat16
	}
	return device.Float32
}

func (s *stored) Float32s(dst []float32, row int) error {
	n := len(dst) / max(1, s.t.Len()/s.t.Shape[0])
	return s.t.Rows(row, row+n).Float32s(dst)
}

func (s *stored) Pack(dev device.Memory, w device.Weight, at, r0, r1 int) error {
	rows := s.t.Rows(r0, r1)
	if s.DType() == device.BFloat16 {
		b := grow(&s.folder.bits, rows.Len())
		if err := rows.Bits(b); err != nil {
			return err
		}
		return dev.LoadWeightBF16(w, at, b)
	}
	v := grow(&s.folder.values, rows.Len())
	if err := rows.Float32s(v); err != nil {
		return err
	}
	return dev.LoadWeight(w, at, v)
}

func grow[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	return (*buf)[:n]
}

// Fingerprint identifies a model's weights: a hash of its configuration and of a sample of the bytes of every tensor.
func Fingerprint(src Source) string {
	c := src.Config()
	c.BOS, c.Pad, c.EOS = NoToken, NoToken, nil // people correct these
	h := sha256.New()
	fmt.Fprintf(h, "%+v", c)
	for _, p := range c.Parameters() {
		kind, data := src.Stored(p.Name).Content()
		fmt.Fprint(h, p.Name, p.Shape, kind)
		const step = 4099
		sample := make([]byte, 0, len(data)/step+1)
		for i := 0; i < len(data); i += step {
			sample = append(sample, data[i])
		}
		h.Write(sample)
	}
	return hex.EncodeToString(h.Sum(nil))
}
