package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/devicetest"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

// made makes the matrices of a call on a device, of values that a seed decides and bfloat16 holds, so that every device has
// the same. With a gap between their rows, matrices allow no wide runs.
type made struct {
	device.Device
	t    *testing.T
	rng  *rand.Rand
	gap  int
	mats []device.Mat
}

func (m *made) mat(k device.Kind, rows, cols int) device.Mat {
	values := make([]float32, rows*(cols+m.gap))
	for i := range values {
		values[i] = math.Float32frombits(math.Float32bits(float32(m.rng.NormFloat64())) &^ 0xffff)
	}
	mem, err := m.Alloc(k, len(values))
	check(m.t, err)
	m.Upload(mem, 0, values)
	x := device.Mat{Mem: mem, Rows: rows, Cols: cols, Stride: cols + m.gap}
	m.mats = append(m.mats, x)
	return x
}

func (m *made) act(rows, cols int) device.Mat { return m.mat(device.Act, rows, cols) }
func (m *made) row(cols int) device.Mat       { return m.mat(device.F32, 1, cols) }

// sameAsReference runs f on a device and on the reference, and compares all matrices, gaps too.
func sameAsReference(t *testing.T, open devicetest.Opener, gap int, tolerance float64, f func(m *made)) {
	t.Helper()
	var all [2][][]float32
	for i, d := range []device.Device{open(t), reference.New()} {
		m := &made{Device: d, t: t, rng: rand.New(rand.NewPCG(5, 6)), gap: gap}
		f(m)
		for _, x := range m.mats {
			v := make([]float32, x.Mem.Len())
			check(t, d.Download(v, x.Mem, 0))
			all[i] = append(all[i], v)
		}
		check(t, d.Close())
	}
	for i, want := range all[1] {
		compare(t, fmt.Sprintf("matrix %d", i), all[0][i], want, tolerance)
	}
}

// testSizes are cases at which these kernels do what the suite's smaller ones do not make them do: more columns than a block
// takes at a time or just as many, and sums of many parts.
func testSizes(t *testing.T, open devicetest.Opener, tolerance float64) {
	sizesOfNorms(t, open, tolerance)
	sizesOfRotary(t, open, tolerance)
	sizesOfRows(t, open, tolerance)
	t.Run("elementwise", func(t *testing.T) { testElements(t, open, tolerance) })
}

func sizesOfNorms(t *testing.T, open devicetest.Opener, tolerance float64) {
	for _, c := range []struct{ rows, cols, gap int }{
		{3, 16, 0}, {3, 7, 1}, {4, 16, 0}, {4, 7, 1}, {70, 64, 0}, {100, 8, 0}, {161, 64, 0}, {161, 7, 1},
		{2, 2048, 0}, {3, 4104, 0}, {2, 256, 1}, {2, 600, 1},
	} {
		t.Run("rmsnorm", func(t *testing.T) {
			sameAsReference(t, open, c.gap, tolerance, func(m *made) {
				x, w := m.act(c.rows, c.cols), m.row(c.cols)
				m.RMSNorm(m.act(c.rows, c.cols), x, device.Mat{}, w, 1e-6)
				m.RMSNorm(m.act(c.rows, c.cols), x, m.act(c.rows, c.cols), w, 1e-6)
				m.RMSNormGrad(m.act(c.rows, c.cols), m.row(c.cols), m.act(c.rows, c.cols), m.act(c.rows, c.cols), w, 1e-6)
			})
		})
	}
}

func sizesOfRotary(t *testing.T, open devicetest.Opener, tolerance float64) {
	for _, c := range []struct{ rows, heads, dim, gap int }{
		{2, 2, 1024, 0}, {3, 2, 130, 1}, {40, 5, 16, 0}, {2, 1, 64, 1}, {2, 1, 2304, 0}, {2, 1, 512, 1}, {3, 2, 4, 1}, {3, 2, 32, 0}, {5, 1, 102, 1},
		{5, 1, 256, 1}, {5, 1, 170, 1}, {5, 1, 126, 1},
	} {
		t.Run("rotary", func(t *testing.T) {
			sameAsReference(t, open, c.gap, tolerance, func(m *made) {
				r := device.Rotary{HeadDim: c.dim, Eps: 1e-6, Norm: m.row(c.dim), DNorm: m.row(c.dim), Pos: ascending(m.t, m, c.rows)}
				r.Cos, r.Sin = m.mat(device.F32, c.rows, c.dim/2), m.mat(device.F32, c.rows, c.dim/2)
				x, y := m.act(c.rows, c.heads*c.dim), m.act(c.rows, c.heads*c.dim)
				m.Rotary(y, x, r)
				plain := r
				plain.Norm, plain.DNorm = device.Mat{}, device.Mat{}
				m.Rotary(m.act(c.rows, c.heads*c.dim), x, plain)
				m.RotaryGrad(m.act(c.rows, c.heads*c.dim), m.act(c.rows, c.heads*c.dim), x, r)
				m.RotaryGrad(device.Mat{}, m.act(c.rows, c.heads*c.dim), x, r)
			})
		})
	}
}

func sizesOfRows(t *testing.T, open devicetest.Opener, tolerance float64) {
	for _, c := range []struct{ cols, gap int }{{16, 0}, {5, 1}} {
		t.Run("rows", func(t *testing.T) {
			sameAsReference(t, open, c.gap, tolerance, func(m *made) { sumsOfRows(m, c.cols) })
		})
	}
	for _, cols := range []int{2048, 2056} {
		t.Run("rows", func(t *testing.T) {
			sameAsReference(t, open, 0, tolerance, func(m *made) {
				at := ascending(t, m, 3)
				m.GatherRows(m.act(3, cols), m.act(4, cols), at)
				m.ScatterRows(m.act(4, cols), m.act(3, cols), at)
				m.ScatterAddRows(m.act(4, cols), m.act(3, cols), at)
				spans := []device.Span{{Row: 1, N: 3}, {Row: 0, N: 2}}
				m.MeanRows(m.mat(device.F32, 2, cols), m.act(4, cols), spans)
				m.MeanRowsGrad(m.act(4, cols), m.mat(device.F32, 2, cols), spans)
			})
		})
	}
}

// sumsOfRows adds up 1 to 9 rows that meet in one, and means of 1 to 9 spans, which overlap.
func sumsOfRows(m *made, cols int) {
	to := []int32{0, 0, 3, 0, 0, 0, 2, 3, 0, 0, 3, 0, 0, 4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 4, 5, 5}
	m.ScatterAddRows(m.act(6, cols), m.act(len(to), cols), indices(m.t, m, to...))
	for _, count := range []int{1, 2, 3, 4, 5, 9} {
		var spans []device.Span
		for i := range count {
			spans = append(spans, device.Span{Row: i % 4, N: 1 + i})
		}
		m.MeanRows(m.mat(device.F32, count, cols), m.act(12, cols), spans)
		m.MeanRowsGrad(m.act(12, cols), m.mat(device.F32, count, cols), spans)
	}
}

// testElements mixes kinds, and sums squares of more elements than there are threads.
func testElements(t *testing.T, open devicetest.Opener, tolerance float64) {
	sameAsReference(t, open, 1, tolerance, func(m *made) {
		f32 := func() device.Mat { return m.mat(device.F32, 3, 5) }
		m.Add(f32(), m.act(3, 5), 0.5)
		m.Add(m.act(3, 5), f32(), 0.5)
		m.Copy(f32(), m.act(3, 5))
		m.Copy(m.act(3, 5), f32())
	})
	d := open(t)
	defer d.Close()
	for _, k := range []device.Kind{device.F32, device.Act} {
		for _, rows := range []int{3, 4, 7} { // so many rounds of all threads, and one of a few
			testSquares(t, d, k, rows)
		}
	}
}

func testSquares(t *testing.T, d device.Device, k device.Kind, rows int) {
	const cols = squaresBlocks*threads + 1
	m := &made{Device: d, t: t, rng: rand.New(rand.NewPCG(7, 8)), gap: 1}
	x, want := m.mat(k, rows, cols), 0.0
	v := make([]float32, x.Mem.Len())
	check(t, d.Download(v, x.Mem, 0))
	for r := range rows {
		for _, e := range v[r*x.Stride:][:cols] {
			want += float64(e) * float64(e)
		}
	}
	if got := d.SumSquares(x); !(math.Abs(got-want) <= 1e-12*want) {
		t.Errorf("kind %d: the squares of %d rows sum up to %g, want %g", k, rows, got, want)
	}
}

func ascending(t *testing.T, d device.Device, n int) device.Mem {
	values := make([]int32, n)
	for i := range values {
		values[i] = int32(i)
	}
	return indices(t, d, values...)
}

func TestSizes(t *testing.T) {
	t.Run("Float32", func(t *testing.T) { testSizes(t, simulated(driver.F32), 2e-5) })
	t.Run("BFloat16", func(t *testing.T) { testSizes(t, simulated(driver.BF16), 2e-2) })
}
