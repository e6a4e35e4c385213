package cuda

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/ptxsim"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// headCall are random arguments of Head and HeadGrad, 70 rows of 301 logits.
type headCall struct {
	dev   device.Device
	rng   *rand.Rand
	h, dh device.Mat
	l     device.Head
	g     device.HeadGrad
	o     device.HeadOut
}

func newHeadCall(t *testing.T, dev device.Device) *headCall {
	t.Helper()
	const n, d, v = 70, 24, 301
	c := &headCall{dev: dev, rng: rand.New(rand.NewPCG(1, 2))}
	mat := func(k device.Kind, rows, cols int) device.Mat {
		m, err := dev.Alloc(k, rows*cols)
		check(t, err)
		dev.Upload(m, 0, c.normal(rows*cols))
		return device.View(m, rows, cols)
	}
	column := func() device.Mat { return mat(device.F32, n, 1) }
	w, err := dev.NewWeight(device.BFloat16, v, d)
	check(t, err)
	check(t, dev.LoadWeight(w, 0, c.normal(v*d)))
	targets, err := dev.Alloc(device.I32, n)
	check(t, err)
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(c.rng.IntN(v))
	}
	dev.UploadInts(targets, 0, ids)
	c.h, c.dh = mat(device.Act, n, d), mat(device.Act, n, d)
	c.l = device.Head{W: w, Temp: 2, Targets: targets, Ref: mat(device.Act, n, d), DW: mat(device.F32, v, d)}
	c.g = device.HeadGrad{LogP: column(), Entropy: column(), KL: column()}
	c.o = device.HeadOut{LogP: column(), LSE: column(), Entropy: column(), KL: column(), RefLSE: column()}
	return c
}

func (c *headCall) normal(n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(c.rng.NormFloat64()) / 2
	}
	return values
}

func (c *headCall) run() {
	c.dev.Head(c.o, c.h, c.l)
	c.dev.HeadGrad(c.dh, c.g, c.o, c.h, c.l)
}

// results are all outputs of a run, dW last.
func (c *headCall) results(t *testing.T) (out [][]float32) {
	t.Helper()
	for _, m := range []device.Mat{c.o.LogP, c.o.LSE, c.o.Entropy, c.o.KL, c.o.RefLSE, c.dh, c.l.DW} {
		values := make([]float32, m.Rows*m.Cols)
		check(t, c.dev.Download(values, m.Mem, 0))
		out = append(out, values)
	}
	return out
}

// A device with little memory cuts the rows into chunks: every output has the bits that it has in one chunk, but for dW,
// whose sum is cut. It would find an offset of a chunk's rows that is forgotten, and a last chunk that is too long.
func TestHeadInChunks(t *testing.T) {
	for _, act := range []driver.Type{driver.F32, driver.BF16} {
		var all [2][][]float32
		for i, memory := range []int{8 << 20, 256 << 20} { // a 64th is what chunks may take
			sim, err := ptxsim.NewDriver(memory)
			check(t, err)
			dev, err := New(Options{Driver: sim, Blas: ptxsim.Blas{D: sim}, Act: act})
			check(t, err)
			defer dev.Close()
			c := newHeadCall(t, dev)
			c.run()
			all[i] = c.results(t)
		}
		for i, want := range all[1] {
			got, dW := all[0][i], i == len(all[1])-1
			if same := slices.Equal(got, want); !same && !dW || dW && !(largest(got, want) < 1e-5) {
				t.Errorf("type %d, output %d: differs by %g when the rows are cut", act, i, largest(got, want))
			}
		}
	}
}

// The kernels and products of a chunk, each of which reads or writes all of its logits; and no memory of the host.
func TestHeadLaunches(t *testing.T) {
	r, dev := recorded(t)
	defer dev.Close()
	c := newHeadCall(t, dev)
	check(t, dev.Sync())
	r.calls = nil
	c.run()
	check(t, dev.Sync())
	if want := []string{"product", "product", "head", "product", "product", "grad", "product", "product"}; !slices.Equal(r.calls, want) {
		t.Errorf("%v, want %v", r.calls, want)
	}
	r.silent = true
	if n := testing.AllocsPerRun(5, c.run); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// largest is the largest difference; NaN if there is one.
func largest(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.NaN()
	}
	worst := 0.0
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if d > worst || math.IsNaN(d) {
			worst = d
		}
	}
	return worst
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
