package devicetest

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

// scene is one device with the arguments of one call on it. A case is a function of a scene; it runs first on the
// device under test, which records the values of its inputs as that device holds them, then on the reference, which
// replays them.
type scene struct {
	device.Device
	t       *testing.T
	rng     *rand.Rand
	strided bool    // matrices are views into wider memories
	loose   float64 // factor on the tolerances, for arguments that magnify rounding; 0 is 1
	floor   float64 // least "largest element" that differences are relative to
	tape    [][]float32
	replay  bool
	tensors []*tensor
	mems    []device.Mem
	weights []device.Weight
}

// role says what a call may do with a matrix.
type role int

const (
	input   role = iota // must not change
	output              // overwritten
	grad                // added to, or overwritten
	state               // updated, float32 throughout
	scratch             // anything
)

type tensor struct {
	name   string
	role   role
	mat    device.Mat
	before []float32 // the whole memory
}

// fill generates the element at (r, c) of a matrix.
type fill func(rng *rand.Rand, r, c int) float32

// normal fills with the normal distribution of standard deviation std.
func normal(std float64) fill {
	return func(rng *rand.Rand, _, _ int) float32 { return float32(std * rng.NormFloat64()) }
}

// data fills with given values, row-major.
func data(values []float32, cols int) fill {
	return func(_ *rand.Rand, r, c int) float32 { return values[r*cols+c] }
}

// newScene returns a scene whose random numbers follow from the name of t.
func newScene(t *testing.T, d device.Device) *scene {
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	return &scene{Device: d, t: t, rng: rand.New(rand.NewPCG(h.Sum64(), 0))}
}

// compare runs f on the device under test and on the reference, as a subtest, and compares what f declared.
func (s *suite) compare(name string, strided bool, f func(*scene)) {
	s.Run(name, func(t *testing.T) {
		dev := newScene(t, s.dev)
		dev.strided = strided
		held := dev.Allocated()
		f(dev)
		if err := dev.Sync(); err != nil {
			t.Fatalf("device: %v", err)
		}
		ref := newScene(t, reference.New())
		ref.strided, ref.tape, ref.replay = strided, dev.tape, true
		f(ref)
		if err := ref.Sync(); err != nil {
			t.Fatalf("reference: %v", err)
		}
		for i, x := range dev.tensors {
			x.check(t, dev.contents(x.mat.Mem), ref.contents(ref.tensors[i].mat.Mem), s.tolerance(x.role)*max(1, dev.loose), dev.floor)
		}
		dev.free()
		if now := dev.Allocated(); now != held {
			t.Errorf("after everything was freed %d bytes are allocated, %d before", now, held)
		}
	})
}

func (s *suite) tolerance(r role) float64 {
	switch r {
	case output:
		return s.tol.Forward
	case grad:
		return s.tol.Backward
	}
	return s.tol.State
}

// check compares x's memory got with the reference's want inside x's view, and with x.before outside of it.
func (x *tensor) check(t *testing.T, got, want []float32, tol, floor float64) {
	t.Helper()
	inside := make([]bool, len(got))
	for r := range x.mat.Rows {
		for c := range x.mat.Cols {
			inside[x.mat.Off+r*x.mat.Stride+c] = true
		}
	}
	largest, worst, at := floor, 0.0, -1
	for i := range got {
		switch {
		case !inside[i] || x.role == input:
			if math.Float32bits(got[i]) != math.Float32bits(x.before[i]) {
				t.Fatalf("%s: element %d, which the call must not touch, was %g and is %g", x.name, i, x.before[i], got[i])
			}
		case x.role != scratch:
			largest = max(largest, math.Abs(float64(want[i])))
			if x.before[i] == x.before[i] { // what a call adds to, which may cancel
				largest = max(largest, math.Abs(float64(x.before[i])))
			}
			if diff := math.Abs(float64(got[i]) - float64(want[i])); diff > worst || math.IsNaN(diff) {
				worst, at = diff, i
			}
		}
		if math.IsNaN(worst) {
			break
		}
	}
	if at >= 0 && !(worst <= tol*largest) {
		r, c := (at-x.mat.Off)/x.mat.Stride, (at-x.mat.Off)%x.mat.Stride
		t.Errorf("%s (%d,%d) of [%d,%d] is %g, want %g: differs by %.2g of the largest element, more than %.2g",
			x.name, r, c, x.mat.Rows, x.mat.Cols, got[at], want[at], worst/largest, tol)
	}
}

// contents is all of a float memory.
func (s *scene) contents(m device.Mem) []float32 {
	values := make([]float32, m.Len())
	if err := s.Download(values, m, 0); err != nil {
		s.t.Fatalf("download: %v", err)
	}
	return values
}

// rows are the rows of m on the host.
func (s *scene) rows(m device.Mat) [][]float32 {
	all := s.contents(m.Mem)
	rows := make([][]float32, m.Rows)
	for r := range rows {
		at := m.Off + r*m.Stride
		rows[r] = all[at : at+m.Cols]
	}
	return rows
}

func (s *scene) alloc(k device.Kind, n int) device.Mem {
	m, err := s.Alloc(k, n)
	if err != nil {
		s.t.Fatalf("alloc: %v", err)
	}
	s.mems = append(s.mems, m)
	return m
}

// record returns made's values in the first run and the recorded ones in the second.
func (s *scene) record(made func() []float32) []float32 {
	if s.replay {
		values := s.tape[0]
		s.tape = s.tape[1:]
		return values
	}
	values := made()
	s.tape = append(s.tape, values)
	return values
}

// mat returns a matrix with the values of f in it, and random ones around it if the scene is strided.
func (s *scene) mat(name string, k device.Kind, as role, rows, cols int, f fill) device.Mat {
	m := device.Mat{Rows: rows, Cols: cols, Stride: cols}
	n := rows * cols
	if s.strided {
		m.Off, m.Stride = 5, cols+3
		n = m.Off + rows*m.Stride + 7
	}
	m.Mem = s.alloc(k, n)
	values := s.record(func() []float32 {
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(s.rng.NormFloat64())
		}
		for r := range rows {
			for c := range cols {
				values[m.Off+r*m.Stride+c] = f(s.rng, r, c)
			}
		}
		s.Upload(m.Mem, 0, values)
		return s.contents(m.Mem) // as the device keeps them
	})
	if s.replay {
		s.Upload(m.Mem, 0, values)
	}
	s.tensors = append(s.tensors, &tensor{name: name, role: as, mat: m, before: values})
	return m
}

// in is an input activation of standard normal values, param an input parameter.
func (s *scene) in(name string, rows, cols int) device.Mat {
	return s.mat(name, device.Act, input, rows, cols, normal(1))
}

func (s *scene) param(name string, rows, cols int, std float64) device.Mat {
	return s.mat(name, device.F32, input, rows, cols, normal(std))
}

// out is an activation to be overwritten: it starts as NaN. outF32 is the same of kind F32.
func (s *scene) out(name string, rows, cols int) device.Mat {
	return s.mat(name, device.Act, output, rows, cols, nan)
}

func (s *scene) outF32(name string, rows, cols int) device.Mat {
	return s.mat(name, device.F32, output, rows, cols, nan)
}

func nan(*rand.Rand, int, int) float32 { return float32(math.NaN()) }

// grad is a gradient of an activation to be added to, paramGrad one of a parameter.
func (s *scene) grad(name string, rows, cols int) device.Mat {
	return s.mat(name, device.Act, grad, rows, cols, normal(1))
}

func (s *scene) paramGrad(name string, rows, cols int) device.Mat {
	return s.mat(name, device.F32, grad, rows, cols, normal(1))
}

func (s *scene) newWeight(t device.DType, n, k int) device.Weight {
	w, err := s.NewWeight(t, n, k)
	if err != nil {
		s.t.Fatalf("new weight: %v", err)
	}
	s.weights = append(s.weights, w)
	return w
}

// weight is a [n,k] weight of standard deviation std.
func (s *scene) weight(t device.DType, n, k int, std float64) device.Weight {
	w := s.newWeight(t, n, k)
	if _, ok := t.Form(); ok {
		if err := s.LoadWeightQuant(w, 0, s.quant(t, n, k, std)); err != nil {
			s.t.Fatalf("load weight: %v", err)
		}
		return w
	}
	values := s.record(func() []float32 {
		values := make([]float32, n*k)
		for i := range values {
			values[i] = float32(std * s.rng.NormFloat64())
		}
		return values
	})
	if err := s.LoadWeight(w, 0, values); err != nil {
		s.t.Fatalf("load weight: %v", err)
	}
	return w
}

func (s *scene) ints(values []int32) device.Mem {
	m := s.alloc(device.I32, len(values))
	s.UploadInts(m, 0, values)
	return m
}

// randomInts are count numbers in [0, n), the same in both runs.
func (s *scene) randomInts(count, n int) device.Mem {
	values := make([]int32, count)
	for i, x := range s.record(func() []float32 {
		drawn := make([]float32, count)
		for i := range drawn {
			drawn[i] = float32(s.rng.IntN(n))
		}
		return drawn
	}) {
		values[i] = int32(x)
	}
	return s.ints(values)
}

func (s *scene) free() {
	for _, m := range s.mems {
		s.Free(m)
	}
	for _, w := range s.weights {
		s.FreeWeight(w)
	}
	s.mems, s.weights, s.tensors = nil, nil, nil
}
