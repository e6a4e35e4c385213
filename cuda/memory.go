package cuda

import (
	"errors"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// memory is the device.Mem. Of kind I32 it has a copy on the host, which only the host writes. A freed one belongs to no
// device.
type memory struct {
	owner *gpu
	kind  device.Kind
	n     int
	typ   driver.Type // of floats
	at    driver.Ptr
	ints  []int32 // kind I32
}

func (m *memory) Kind() device.Kind { return m.kind }
func (m *memory) Len() int          { return m.n }

func (m *memory) bytes() int64 { return int64(m.n) * int64(m.typ.Size()) }

// Alloc implements device.Memory.
func (d *gpu) Alloc(k device.Kind, n int) (device.Mem, error) {
	if d.err != nil {
		return nil, d.err
	}
	if err := device.CheckAlloc(k, n); err != nil {
		return nil, errors.Join(errors.New("cuda: "), err)
	}
	m := &memory{owner: d, kind: k, n: n}
	switch k {
	case device.Act:
		m.typ = d.act
	case device.I32:
		m.ints = make([]int32, n)
	}
	var err error
	if m.at, err = d.take(m, m.bytes()); err != nil {
		return nil, err
	}
	d.ok(d.Fill(m.at, 0, m.bytes(), d.stream))
	return m, d.err
}

// take allocates memory that is accounted to what.
func (d *gpu) take(what any, bytes int64) (driver.Ptr, error) {
	at, err := d.pool.take(bytes)
	if err != nil {
		return 0, err
	}
	d.live[what] = bytes
	d.held += bytes
	return at, nil
}

func (d *gpu) drop(what any, at driver.Ptr) {
	d.held -= d.live[what]
	delete(d.live, what)
	d.pool.give(at)
}

// Free implements device.Memory.
func (d *gpu) Free(m device.Mem) {
	own, ok := m.(*memory)
	if !ok || own.owner != d {
		d.ok(errors.New("free: the memory was freed before, or belongs to another device"))
		return
	}
	d.drop(own, own.at)
	*own = memory{kind: own.kind}
}

// Allocated implements device.Memory.
func (d *gpu) Allocated() int64 { return d.held }

var errForeign = errors.New("an argument was freed, or belongs to another device")

// memory resolves m. A foreign one becomes the device's error.
func (d *gpu) memory(m device.Mem) *memory {
	own, ok := m.(*memory)
	if !ok || own.owner != d {
		d.ok(errForeign)
		return &memory{}
	}
	return own
}

// mat resolves a view whose shape has been checked; an absent one is the zero Matrix. A foreign one becomes the device's
// error.
func (d *gpu) mat(m device.Mat) driver.Matrix {
	if m.Absent() {
		return driver.Matrix{}
	}
	own := d.memory(m.Mem)
	return driver.Matrix{At: own.at + driver.Ptr(m.Off*own.typ.Size()), Stride: m.Stride, Type: own.typ}
}

// indices are the first count entries of m on the host, which have to be in [0, n), and their address.
func (d *gpu) indices(op, what string, m device.Mem, count, n int) ([]int32, driver.Ptr) {
	own := d.memory(m)
	if d.err != nil {
		return nil, 0
	}
	d.ok(device.CheckIndices(op, what, own.ints[:count], n))
	return own.ints[:count], own.at
}
