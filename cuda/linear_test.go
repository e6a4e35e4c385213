package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/ptxsim"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

// lowRankPart is a part on some columns of an output.
type lowRankPart struct {
	col, n, rank int
	drop         float32
}

// linearOf are the arguments of a Linear on a device, of values that a seed decides.
type linearOf struct {
	dev       device.Device
	x, y      device.Mat
	dx, dy    device.Mat
	l         device.Linear
	seg       device.Mem
	rng       *rand.Rand
	t, k, n   int
	gradients []device.Mat
}

func newLinear(t *testing.T, dev device.Device, rows, k, n int, parts []lowRankPart) *linearOf {
	t.Helper()
	s := &linearOf{dev: dev, rng: rand.New(rand.NewPCG(3, 4)), t: rows, k: k, n: n}
	s.x, s.dy = s.mat(t, device.Act, rows, k, 1), s.mat(t, device.Act, rows, n, 1)
	s.y, s.dx = s.mat(t, device.Act, rows, n, 1), s.mat(t, device.Act, rows, k, 1)
	w, err := dev.NewWeight(device.BFloat16, n, k)
	check(t, err)
	check(t, dev.LoadWeight(w, 0, s.values(n*k, 1/math.Sqrt(float64(k)))))
	s.l = device.Linear{W: w, Bias: s.mat(t, device.F32, 1, n, 1)}
	s.seg, err = dev.Alloc(device.I32, rows)
	check(t, err)
	order := make([]int32, rows)
	for i := range order {
		order[i] = int32(i)
	}
	dev.UploadInts(s.seg, 0, order)
	for i, p := range parts {
		s.part(t, i, p)
	}
	return s
}

func (s *linearOf) part(t *testing.T, i int, p lowRankPart) {
	l := device.LoRA{
		Col: p.col, Scale: 0.5 + float32(i),
		A: s.mat(t, device.F32, p.rank, s.k, 1/math.Sqrt(float64(s.k))), B: s.mat(t, device.F32, p.n, p.rank, 1/math.Sqrt(float64(p.rank))),
		DA: s.mat(t, device.F32, p.rank, s.k, 1), DB: s.mat(t, device.F32, p.n, p.rank, 1),
	}
	if p.drop > 0 {
		l.Drop = &device.Dropout{P: p.drop, Key: device.NewKey(uint64(i)), Seg: s.seg, Pos: s.seg}
	}
	s.l.LoRA = append(s.l.LoRA, l)
	s.gradients = append(s.gradients, l.DA, l.DB)
}

// values are normal numbers that bfloat16 holds, so that every device has the same.
func (s *linearOf) values(n int, std float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(math.Float32bits(float32(std*s.rng.NormFloat64())) &^ 0xffff)
	}
	return v
}

func (s *linearOf) mat(t *testing.T, k device.Kind, rows, cols int, std float64) device.Mat {
	t.Helper()
	m, err := s.dev.Alloc(k, rows*cols)
	check(t, err)
	s.dev.Upload(m, 0, s.values(rows*cols, std))
	return device.View(m, rows, cols)
}

// run are y, dx and the gradients of the parts.
func (s *linearOf) run(t *testing.T) [][]float32 {
	t.Helper()
	s.dev.Linear(s.y, s.x, s.l)
	s.dev.LinearGrad(s.dx, s.dy, s.x, s.l)
	var all [][]float32
	for _, m := range append([]device.Mat{s.y, s.dx}, s.gradients...) {
		v := make([]float32, m.Rows*m.Cols)
		check(t, s.dev.Download(v, m.Mem, 0))
		all = append(all, v)
	}
	return all
}

// More parts than a launch takes, more ranks than it has room for, parts that overlap, and dropout in some: the suite's cases
// fit into one launch. It would find a part that is forgotten, and one that overwrites what another has written.
func TestLinearOfManyParts(t *testing.T) {
	var parts []lowRankPart
	for i, rank := range []int{5, 300, 16, 1, 120, 17} {
		parts = append(parts, lowRankPart{col: 9 * i, n: 40, rank: rank})
	}
	some := slices.Clone(parts)
	some[0].drop, some[3].drop = 0.4, 0.2
	for _, act := range []driver.Type{driver.F32, driver.BF16} {
		tolerance := map[driver.Type]float64{driver.F32: 1e-5, driver.BF16: 2e-2}[act]
		for name, parts := range map[string][]lowRankPart{"": parts, " with dropout": some} {
			for _, rows := range []int{11, 70} {
				dev := simulated(act)(t)
				got := newLinear(t, dev, rows, 72, 96, parts).run(t)
				want := newLinear(t, reference.New(), rows, 72, 96, parts).run(t)
				for i := range want {
					compare(t, fmt.Sprintf("type %d, %d rows%s, result %d", act, rows, name, i), got[i], want[i], tolerance)
				}
				check(t, dev.Close())
			}
		}
	}
}

// compare bounds the largest difference by a part of the largest element.
func compare(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	largest, worst := 0.0, 0.0
	for i, x := range want {
		largest = max(largest, math.Abs(float64(x)))
		worst = max(worst, math.Abs(float64(got[i]-x)))
	}
	if !(worst <= tolerance*largest) {
		t.Errorf("%s: differs by %g of the largest element", what, worst/largest)
	}
}

// recorder is a driver, and a library for products, that note what they are asked for; a silent one does nothing.
type recorder struct {
	driver.Driver
	blas   ptxsim.Blas
	names  map[driver.Func]string
	calls  []string
	silent bool
}

func (r *recorder) Func(m driver.Module, name string) (driver.Func, error) {
	f, err := r.Driver.Func(m, name)
	r.names[f] = name
	return f, err
}

func (r *recorder) Launch(f driver.Func, l driver.Launch, a *driver.Args) error {
	if r.silent {
		return nil
	}
	r.calls = append(r.calls, r.names[f])
	return r.Driver.Launch(f, l, a)
}

// products is the recorder as a library.
type products struct{ *recorder }

func (p products) Name() string { return "recorder" }
func (p products) Close() error { return nil }

func (p products) Gemm(g driver.Gemm, s driver.Stream) error {
	if p.silent {
		return nil
	}
	p.calls = append(p.calls, "product")
	return p.blas.Gemm(g, s)
}

func recorded(t *testing.T) (*recorder, device.Device) {
	t.Helper()
	sim, err := ptxsim.NewDriver(1 << 28)
	check(t, err)
	r := &recorder{Driver: sim, blas: ptxsim.Blas{D: sim}, names: map[driver.Func]string{}}
	dev, err := New(Options{Driver: r, Blas: products{r}, Act: driver.BF16})
	check(t, err)
	return r, dev
}

var queryKeyValue = []lowRankPart{{col: 0, n: 64, rank: 16}, {col: 64, n: 16, rank: 16}, {col: 80, n: 16, rank: 16}}

// What a projection with three low-rank parts and a bias costs in launches, each of which takes the GPU microseconds: a
// conversion that becomes necessary, or a loop over parts, would show here.
func TestLinearLaunches(t *testing.T) {
	r, dev := recorded(t)
	defer dev.Close()
	many, few := newLinear(t, dev, 80, 32, 96, queryKeyValue), newLinear(t, dev, 8, 32, 96, queryKeyValue)
	plain := many.l
	plain.Bias, plain.LoRA = device.Mat{}, nil
	for _, c := range []struct {
		name string
		call func()
		want []string
	}{
		{"plain", func() { dev.Linear(many.y, many.x, plain) }, []string{"product"}},
		{"many rows", func() { dev.Linear(many.y, many.x, many.l) }, []string{"stack", "product", "spread", "product"}},
		{"few rows", func() { dev.Linear(few.y, few.x, few.l) }, []string{"narrow", "spread", "product"}},
		{"plain gradient", func() { dev.LinearGrad(many.dx, many.dy, many.x, plain) }, []string{"product"}},
		{"gradient", func() { dev.LinearGrad(many.dx, many.dy, many.x, many.l) }, []string{
			"stack", "diagonal", "product", // dy·B
			"product", "product", "product", "product", // x·Aᵀ, and dB of three parts
			"product", "unstack", // dA
			"spread", "product", // dx
		}},
	} {
		r.calls = nil
		c.call()
		check(t, dev.Sync())
		if !slices.Equal(r.calls, c.want) {
			t.Errorf("%s: %v, want %v", c.name, r.calls, c.want)
		}
	}
}

// A step makes thousands of these calls, which must leave the collector nothing to do.
func TestLinearAllocatesNothing(t *testing.T) {
	r, dev := recorded(t)
	defer dev.Close()
	s := newLinear(t, dev, 80, 32, 96, queryKeyValue)
	s.l.LoRA[2].Drop = &device.Dropout{P: 0.5, Seg: s.seg, Pos: s.seg}
	s.l.DW, s.l.DBias = s.mat(t, device.F32, 96, 32, 1), s.mat(t, device.F32, 1, 96, 1)
	call := func() {
		dev.Linear(s.y, s.x, s.l)
		dev.LinearGrad(s.dx, s.dy, s.x, s.l)
	}
	call()
	check(t, dev.Sync())
	r.silent = true
	if n := testing.AllocsPerRun(10, call); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
