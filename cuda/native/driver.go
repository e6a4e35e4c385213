package native

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// Driver is one device.
type Driver struct {
	cuda    *CUDA
	device  Device
	context uintptr
	modules []driver.Module
}

var _ driver.Driver = (*Driver)(nil)

// oldest is the version of CUDA that the kernels' PTX needs.
const oldest = 11080

// Open opens a device and makes it current on the calling thread.
func (c *CUDA) Open(device Device) (*Driver, error) {
	if err := device.Refusal(); err != nil {
		return nil, err
	}
	if c.version < oldest {
		return nil, fmt.Errorf("the driver (%s) is for CUDA %s: %s", c.path, c.Version(), driverErrors()[codeUnsupportedPTX].hint)
	}
	d := &Driver{cuda: c, device: device}
	context := new(uintptr)
	if err := c.call(fPrimaryCtxRetain, uintptr(unsafe.Pointer(context)), uintptr(device.handle)); err != nil {
		return nil, fmt.Errorf("device %d (%s): %w", device.Ordinal, device.Name, err)
	}
	d.context = *context
	return d, d.Bind()
}

// Info implements driver.Driver.
func (d *Driver) Info() driver.Info {
	return driver.Info{
		Name: d.device.Name, Driver: "CUDA " + d.cuda.Version(), Major: d.device.Major, Minor: d.device.Minor,
		Processors: d.device.Processors, SharedLimit: d.device.SharedLimit, Memory: d.device.Memory,
	}
}

// Bind implements driver.Driver.
func (d *Driver) Bind() error { return d.cuda.call(fCtxSetCurrent, d.context) }

// Close implements driver.Driver.
func (d *Driver) Close() error {
	var err error
	for _, m := range d.modules {
		err = errors.Join(err, d.cuda.call(fModuleUnload, uintptr(m)))
	}
	d.modules = nil
	return errors.Join(err, d.cuda.call(fPrimaryCtxRelease, uintptr(d.device.handle)))
}

// MemInfo implements driver.Memory.
func (d *Driver) MemInfo() (free, total int64, err error) {
	n := new([2]uint64)
	err = d.cuda.call(fMemGetInfo, uintptr(unsafe.Pointer(&n[0])), uintptr(unsafe.Pointer(&n[1])))
	return int64(n[0]), int64(n[1]), err
}

// Alloc implements driver.Memory.
func (d *Driver) Alloc(n int64) (driver.Ptr, error) {
	p := new(driver.Ptr)
	err := d.cuda.call(fMemAlloc, uintptr(unsafe.Pointer(p)), uintptr(n))
	return *p, err
}

// Free implements driver.Memory.
func (d *Driver) Free(p driver.Ptr) error { return d.cuda.call(fMemFree, uintptr(p)) }

// HostAlloc implements driver.Memory.
func (d *Driver) HostAlloc(n int) ([]byte, error) {
	p := new(*byte)
	if err := d.cuda.call(fMemHostAlloc, uintptr(unsafe.Pointer(p)), uintptr(n), 0); err != nil {
		return nil, err
	}
	return unsafe.Slice(*p, n), nil
}

// HostFree implements driver.Memory.
func (d *Driver) HostFree(b []byte) error {
	return d.cuda.call(fMemFreeHost, uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// CopyIn implements driver.Memory.
func (d *Driver) CopyIn(dst driver.Ptr, src []byte, s driver.Stream) error {
	if len(src) == 0 {
		return nil
	}
	return d.cuda.call(fMemcpyHtoDAsync, uintptr(dst), uintptr(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src)), uintptr(s))
}

// CopyOut implements driver.Memory.
func (d *Driver) CopyOut(dst []byte, src driver.Ptr, s driver.Stream) error {
	if len(dst) == 0 {
		return nil
	}
	return d.cuda.call(fMemcpyDtoHAsync, uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(src), uintptr(len(dst)), uintptr(s))
}

// Copy implements driver.Memory.
func (d *Driver) Copy(dst, src driver.Ptr, n int64, s driver.Stream) error {
	if n == 0 {
		return nil
	}
	return d.cuda.call(fMemcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(n), uintptr(s))
}

// Fill implements driver.Memory.
func (d *Driver) Fill(dst driver.Ptr, v byte, n int64, s driver.Stream) error {
	if n == 0 {
		return nil
	}
	return d.cuda.call(fMemsetD8Async, uintptr(dst), uintptr(v), uintptr(n), uintptr(s))
}
