package policy

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// onDevices runs a test on the plain float64 device and on the CPU.
func onDevices(t *testing.T, test func(t *testing.T, dev device.Device)) {
	t.Run("reference", func(t *testing.T) { test(t, openReference(t)) })
	t.Run("cpu", func(t *testing.T) { test(t, openCPU(t)) })
}

func openReference(t *testing.T) device.Device {
	t.Helper()
	dev := reference.New()
	t.Cleanup(func() { checkClose(t, dev) })
	return dev
}

func openCPU(t *testing.T) device.Device {
	t.Helper()
	dev, err := cpu.New(cpu.Options{Tier: os.Getenv("RUBICON_CPU_TIER")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { checkClose(t, dev) })
	return dev
}

// isReference reports whether dev is the float64 device.
func isReference(dev device.Device) bool { return dev.Info().Name == reference.New().Info().Name }

// checkClose fails the test if an operation failed or memory was not given back.
func checkClose(t *testing.T, dev device.Device) {
	t.Helper()
	if n := dev.Allocated(); n != 0 {
		t.Errorf("%d bytes were not given back", n)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

// loadTiny loads one of the tiny golden models.
func loadTiny(t *testing.T, dev device.Device, name string, o LoadOptions) *Model {
	t.Helper()
	return load(t, dev, golden.Path("models", name), o)
}

func load(t *testing.T, dev device.Device, dir string, o LoadOptions) *Model {
	t.Helper()
	m, err := Load(t.Context(), dev, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, m.Close()) })
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tensors reads a compressed file below testdata/golden.
func tensors(t *testing.T, elem ...string) map[string]golden.Tensor {
	t.Helper()
	path := filepath.Join(append([]string{"testdata", "golden"}, elem...)...) + ".safetensors.gz"
	packed, err := os.ReadFile(path)
	must(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	plain, err := io.ReadAll(z)
	must(t, err)
	f, err := safetensors.Parse(path, plain)
	must(t, err)
	all := map[string]golden.Tensor{}
	for _, name := range f.Names() {
		stored, _ := f.Tensor(name)
		g := golden.Tensor{Shape: stored.Shape}
		if stored.DType == safetensors.F32 {
			g.Float = make([]float32, stored.Len())
			must(t, stored.Float32s(g.Float))
		} else {
			g.Int = make([]int64, stored.Len())
			must(t, stored.Int64s(g.Int))
		}
		all[name] = g
	}
	return all
}

// unpad returns the tokens of each row of ids where mask is 1, and their columns.
func unpad(ids, mask golden.Tensor) (rows [][]int32, cols [][]int) {
	n := ids.Shape[1]
	for r := range ids.Shape[0] {
		var tokens []int32
		var at []int
		for c := range n {
			if mask.Int[r*n+c] == 1 {
				tokens, at = append(tokens, int32(ids.Int[r*n+c])), append(at, c)
			}
		}
		rows, cols = append(rows, tokens), append(cols, at)
	}
	return rows, cols
}

// roots is a forest of independent sequences in which every token that can be is scored.
func roots(rows [][]int32) *Forest {
	f := &Forest{}
	for _, tokens := range rows {
		f.Segments = append(f.Segments, Segment{Parent: Root, Tokens: tokens, Score: scoreFrom(len(tokens), 1)})
	}
	return f
}

// scoreFrom marks tokens from on of n.
func scoreFrom(n, from int) []bool {
	marks := make([]bool, n)
	for i := from; i < n; i++ {
		marks[i] = true
	}
	return marks
}

// logits computes the untempered logits of every row of the forest, [T,V].
func (m *Model) testLogits(t *testing.T, f *Forest, adapter string) []float32 {
	t.Helper()
	states, err := m.states(f, adapter)
	must(t, err)
	final := states[len(states)-1]
	rows := len(final) / m.cfg.Width
	h, err := m.dev.Alloc(device.Act, len(final))
	must(t, err)
	y, err := m.dev.Alloc(device.F32, rows*m.cfg.Vocab)
	must(t, err)
	m.dev.Upload(h, 0, final)
	m.dev.Logits(device.View(y, rows, m.cfg.Vocab), device.View(h, rows, m.cfg.Width), m.head)
	out := make([]float32, rows*m.cfg.Vocab)
	must(t, m.dev.Download(out, y, 0))
	m.dev.Free(h)
	m.dev.Free(y)
	return out
}
