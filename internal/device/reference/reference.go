// Package reference is the plain specification of a device.Device: one readable loop per operation, in float64
// throughout (memories of kind F32 and Act hold float64), so that central differences are meaningful on a whole
// model. Upload and Download convert from and to float32. It is invariant because no row's arithmetic looks at another.
//
// Weights hold float64 too: a Float32 weight what it was given, a BFloat16 weight what is left after rounding to
// nearest even, a quantised weight the elements that its codes stand for.
package reference

import (
	"errors"
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// reference is the device.
type reference struct {
	err       error
	allocated int64
}

// New returns a reference device with nothing on it.
func New() device.Device { return &reference{} }

// memory is the device.Mem: f for F32 and Act, i for I32. A freed one belongs to no device.
type memory struct {
	owner *reference
	kind  device.Kind
	f     []float64
	i     []int32
}

func (m *memory) Kind() device.Kind { return m.kind }
func (m *memory) Len() int          { return len(m.f) + len(m.i) }

// bytes is what the memory takes on a device that keeps 32-bit elements.
func (m *memory) bytes() int64 { return 4 * int64(m.Len()) }

// weight is the device.Weight, row-major. A freed one belongs to no device.
type weight struct {
	owner *reference
	dtype device.DType
	n, k  int
	w     []float64
}

func (w *weight) Shape() (n, k int)   { return w.n, w.k }
func (w *weight) DType() device.DType { return w.dtype }

// Bytes is the weight's size in its own type.
func (w *weight) Bytes() int64 { return w.dtype.Bytes(w.n, w.k) }

func (w *weight) row(n int) []float64 { return w.w[n*w.k : (n+1)*w.k] }

// Float64s returns the elements of an F32 or Act memory of a reference device, for tests to read and to change; nil
// for any other memory.
func Float64s(m device.Mem) []float64 {
	if m, ok := m.(*memory); ok {
		return m.f
	}
	return nil
}

// WeightFloat64s returns the elements [N,K] of a weight of a reference device, for tests to read and to change
// (nothing rounds such a change); nil for any other weight.
func WeightFloat64s(w device.Weight) []float64 {
	if w, ok := w.(*weight); ok {
		return w.w
	}
	return nil
}

func (d *reference) Info() device.Info {
	return device.Info{Name: "reference (float64)", Threads: 1, Invariant: true}
}

func (d *reference) Allocated() int64 { return d.allocated }
func (d *reference) Sync() error      { return d.err }
func (d *reference) Err() error       { return d.err }

// Close makes every later operation an error, but does not itself fail.
func (d *reference) Close() error {
	err := d.err
	d.fail(errors.New("the device is closed"))
	return err
}

// fail makes err sticky unless there is one already.
func (d *reference) fail(err error) {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("reference device: %w", err)
	}
}

// begin reports whether an operation may run: no error so far, err (what its check said) is nil and every Mat, Mem
// and Weight among used is this device's own or absent.
func (d *reference) begin(op string, err error, used ...any) bool {
	d.fail(err)
	for _, u := range used {
		if d.err == nil && !d.owns(u) {
			d.fail(fmt.Errorf("%s: an argument was freed, or belongs to another device", op))
		}
	}
	return d.err == nil
}

func (d *reference) owns(u any) bool {
	switch u := u.(type) {
	case device.Mat:
		return u.Absent() || d.owns(u.Mem)
	case *memory:
		return u.owner == d
	case *weight:
		return u.owner == d
	}
	return false
}

// indices returns the first count entries of m, which have to be in [0, n); begin has seen m.
func (d *reference) indices(op, what string, m device.Mem, count, n int) ([]int32, bool) {
	idx := m.(*memory).i[:count]
	d.fail(device.CheckIndices(op, what, idx, n))
	return idx, d.err == nil
}

// row is row r of m.
func row(m device.Mat, r int) []float64 {
	at := m.Off + r*m.Stride
	return m.Mem.(*memory).f[at : at+m.Cols]
}

// cell is row r of a [N,1] matrix.
func cell(m device.Mat, r int) *float64 { return &row(m, r)[0] }

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// axpy is y += a·x.
func axpy(y []float64, a float64, x []float64) {
	for i, x := range x {
		y[i] += a * x
	}
}
