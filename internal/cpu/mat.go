package cpu

import (
	"errors"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// mat is a device.Mat on this device: row r is f[r*stride:][:cols]. The zero mat is absent.
type mat struct {
	f                  []float32
	rows, cols, stride int
}

func (m mat) absent() bool { return m.f == nil }

func (m mat) row(r int) []float32 { return m.f[r*m.stride : r*m.stride+m.cols] }

// at is row r from column c on, to be read past the row's end within the memory.
func (m mat) at(r, c int) *float32 { return &m.f[r*m.stride+c] }

// columns returns the columns [c0, c1).
func (m mat) columns(c0, c1 int) mat {
	m.f, m.cols = m.f[min(c0, len(m.f)):], c1-c0
	return m
}

// rowsOf returns the rows [r0, r1).
func (m mat) rowsOf(r0, r1 int) mat {
	m.f, m.rows = m.f[min(r0*m.stride, len(m.f)):], r1-r0
	return m
}

// dense makes a [rows, cols] matrix of n = rows*cols elements.
func dense(f []float32, rows, cols int) mat { return mat{f, rows, cols, cols} }

var errForeign = errors.New("an argument was freed, or belongs to another device")

// mat resolves a view whose shape has been checked. A foreign one becomes the device's error.
func (d *cpu) mat(m device.Mat) mat {
	if m.Absent() {
		return mat{}
	}
	own, ok := m.Mem.(*memory)
	if !ok || own.owner != d {
		d.ok(errForeign)
		return mat{}
	}
	return mat{own.f[min(m.Off, len(own.f)):], m.Rows, m.Cols, m.Stride}
}

// vector resolves a [1,n] view.
func (d *cpu) vector(m device.Mat) []float32 {
	if v := d.mat(m); !v.absent() {
		return v.row(0)
	}
	return nil
}

func (d *cpu) floats(m device.Mem) []float32 {
	own, ok := m.(*memory)
	if !ok || own.owner != d {
		d.ok(errForeign)
		return nil
	}
	return own.f
}

func (d *cpu) ints(m device.Mem) []int32 {
	own, ok := m.(*memory)
	if !ok || own.owner != d {
		d.ok(errForeign)
		return nil
	}
	return own.i
}

// indices are the first count entries of m, which have to be in [0, n).
func (d *cpu) indices(op, what string, m device.Mem, count, n int) []int32 {
	idx := d.ints(m)
	if d.err != nil {
		return nil
	}
	idx = idx[:count]
	d.ok(device.CheckIndices(op, what, idx, n))
	return idx
}
