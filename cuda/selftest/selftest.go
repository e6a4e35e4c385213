// Package selftest compares the operations of a device with those of another, on small shapes and in a second or two: a quick
// look at whether an installation works, for programs that have no test suite at hand (internal/device/devicetest is that).
package selftest

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// Result is how one operation did.
type Result struct {
	Op    string
	Worst float64 // the largest difference, relative to the largest element of what it is in
	Err   error   // what went wrong, a difference above the tolerance with it
}

// Tolerance is what a device may differ by, Loose what one whose activations are bfloat16 may.
const (
	Tolerance = 1e-4
	Loose     = 3e-2
)

// Run yields a result for each operation of dev, compared with trusted. After a device's error the rest is not run.
func Run(dev, trusted device.Device, tolerance float64) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		for _, c := range cases() {
			r := Result{Op: c.op}
			var got, want [][]float32
			if got, r.Err = c.on(dev); r.Err == nil {
				want, r.Err = c.on(trusted)
			}
			if r.Err == nil {
				r.compare(got, want, tolerance)
			}
			if !yield(r) || dev.Err() != nil {
				return
			}
		}
	}
}

// compare notes the worst difference.
func (r *Result) compare(got, want [][]float32, tolerance float64) {
	for i := range want {
		largest, worst := 0.0, 0.0
		for j, w := range want[i] {
			largest = max(largest, math.Abs(float64(w)))
			worst = max(worst, math.Abs(float64(got[i][j])-float64(w))) // NaN if one is
		}
		r.Worst = max(r.Worst, worst/max(largest, 1))
	}
	if !(r.Worst <= tolerance) {
		r.Err = fmt.Errorf("differs by %.2g of the largest element, more than %.2g: the device, its driver or its memory is faulty, or this is a fault of rubicon's: report it with the output of rubicon doctor",
			r.Worst, tolerance)
	}
}

// trial is one case on one device. Its inputs are the same on every device, and exact in bfloat16.
type trial struct {
	device.Device
	rng     *rand.Rand
	err     error
	results []device.Mat
	direct  [][]float32 // results that are on the host already
	mems    []device.Mem
	weights []device.Weight
}

// on runs a case and returns its results.
func (c testCase) on(d device.Device) (results [][]float32, err error) {
	t := &trial{Device: d, rng: rand.New(rand.NewPCG(1, 2))}
	c.run(t)
	for _, m := range t.results {
		all := make([]float32, m.Mem.Len())
		if t.err == nil {
			t.err = d.Download(all, m.Mem, 0)
		}
		results = append(results, all)
	}
	results = append(results, t.direct...)
	for _, m := range t.mems {
		d.Free(m)
	}
	for _, w := range t.weights {
		d.FreeWeight(w)
	}
	return results, errors.Join(t.err, d.Err())
}

// normal are random numbers.
func (t *trial) normal(n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = half.FromBF16(half.ToBF16(float32(t.rng.NormFloat64())))
	}
	return values
}

func (t *trial) matrix(k device.Kind, rows, cols int, values []float32) device.Mat {
	m, err := t.Alloc(k, rows*cols)
	if err != nil {
		t.err = errors.Join(t.err, err)
		return device.Mat{}
	}
	t.mems = append(t.mems, m)
	if values != nil {
		t.Upload(m, 0, values)
	}
	return device.View(m, rows, cols)
}

// act and param are inputs.
func (t *trial) act(rows, cols int) device.Mat {
	return t.matrix(device.Act, rows, cols, t.normal(rows*cols))
}

func (t *trial) param(rows, cols int) device.Mat {
	return t.matrix(device.F32, rows, cols, t.normal(rows*cols))
}

// out and sum are results: an activation, and a gradient or another float32 number.
func (t *trial) out(rows, cols int) device.Mat { return t.keep(t.matrix(device.Act, rows, cols, nil)) }
func (t *trial) sum(rows, cols int) device.Mat { return t.keep(t.matrix(device.F32, rows, cols, nil)) }

func (t *trial) keep(m device.Mat) device.Mat {
	if !m.Absent() {
		t.results = append(t.results, m)
	}
	return m
}

func (t *trial) ints(values ...int32) device.Mem {
	m, err := t.Alloc(device.I32, len(values))
	if err != nil {
		t.err = errors.Join(t.err, err)
		return nil
	}
	t.mems = append(t.mems, m)
	t.UploadInts(m, 0, values)
	return m
}

// weight is a [n,k] weight with outputs of size 1.
func (t *trial) weight(d device.DType, n, k int) device.Weight {
	values := t.normal(n * k)
	for i := range values {
		values[i] = half.FromBF16(half.ToBF16(values[i] / float32(math.Sqrt(float64(k)))))
	}
	w, err := t.NewWeight(d, n, k)
	if err == nil {
		t.weights = append(t.weights, w)
		err = t.LoadWeight(w, 0, values)
	}
	t.err = errors.Join(t.err, err)
	return w
}
