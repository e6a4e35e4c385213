package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// memory is the device.Mem: f for F32 and Act, i for I32. A freed one belongs to no device.
type memory struct {
	owner *cpu
	kind  device.Kind
	f     []float32
	i     []int32
}

func (m *memory) Kind() device.Kind { return m.kind }
func (m *memory) Len() int          { return len(m.f) + len(m.i) }

// mapped is the size in bytes from which memory comes from the system and goes back to it at once.
const mapped = 1 << 20

// reserve returns n zeroed elements with slack after them, and what frees them.
func reserve[T float32 | int32 | uint32](n int) ([]T, func(), error) {
	if 4*n < mapped {
		return aligned[T](n), func() {}, nil
	}
	b, free, err := mapRegion(4 * (n + slack))
	if err != nil {
		return nil, nil, fmt.Errorf("cpu: %w", err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n+slack)[:n], free, nil
}

func (d *cpu) Alloc(k device.Kind, n int) (device.Mem, error) {
	if d.err != nil {
		return nil, d.err
	}
	if err := device.CheckAlloc(k, n); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	if err := d.room(4 * float64(n)); err != nil {
		return nil, err
	}
	m := &memory{owner: d, kind: k}
	var free func()
	var err error
	if k == device.I32 {
		m.i, free, err = reserve[int32](n)
	} else {
		m.f, free, err = reserve[float32](n)
	}
	if err != nil {
		return nil, err
	}
	d.hold(m, int64(n)*4, free)
	return m, nil
}

// unlimited stands in for the memory of a machine that does not say how much it has.
const unlimited = 1 << 46

// room reports an error if so many bytes more would exceed the machine's memory: the system would grant them, and end
// the process when they are used.
func (d *cpu) room(bytes float64) error {
	limit := d.limit
	if limit == 0 {
		limit = unlimited
	}
	if float64(d.allocated)+bytes > float64(limit) {
		return fmt.Errorf("cpu: %.0f MiB more would exceed the memory of %d MiB; take a smaller model or batch",
			bytes/(1<<20), limit>>20)
	}
	return nil
}

// hold accounts for what is freed by drop.
func (d *cpu) hold(what any, bytes int64, free func()) {
	d.release[what] = free
	d.allocated += bytes
}

func (d *cpu) drop(what any, bytes int64) {
	d.release[what]()
	delete(d.release, what)
	d.allocated -= bytes
}

func (d *cpu) Free(m device.Mem) {
	own, ok := m.(*memory)
	if !ok || own.owner != d {
		d.ok(errors.New("free: the memory was freed before, or belongs to another device"))
		return
	}
	d.drop(own, 4*int64(own.Len()))
	*own = memory{kind: own.kind}
}

func (d *cpu) Allocated() int64 { return d.allocated }

func (d *cpu) Upload(dst device.Mem, off int, src []float32) {
	if d.ok(device.CheckTransfer("upload", dst, off, len(src), false)) {
		copy(d.floats(dst)[off:], src)
	}
}

func (d *cpu) UploadInts(dst device.Mem, off int, src []int32) {
	if d.ok(device.CheckTransfer("upload ints", dst, off, len(src), true)) {
		copy(d.ints(dst)[off:], src)
	}
}

func (d *cpu) Download(dst []float32, src device.Mem, off int) error {
	if d.ok(device.CheckTransfer("download", src, off, len(dst), false)) {
		copy(dst, d.floats(src)[off:])
	}
	return d.err
}

func (d *cpu) DownloadInts(dst []int32, src device.Mem, off int) error {
	if d.ok(device.CheckTransfer("download ints", src, off, len(dst), true)) {
		copy(dst, d.ints(src)[off:])
	}
	return d.err
}
