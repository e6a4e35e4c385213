//go:build gorgonia_cu && cgo

package gorgonia

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/native"
)

// Driver is one device.
type Driver struct {
	device  cu.Device
	context cu.CUContext
	info    driver.Info
}

var _ driver.Driver = (*Driver)(nil)

// Open opens the device of a number and makes it current on the calling thread.
func Open(ordinal int) (*Driver, error) {
	own, err := cu.GetDevice(ordinal)
	if err != nil {
		return nil, failed("cuDeviceGet", err)
	}
	d := &Driver{device: own}
	if err := d.describe(); err != nil {
		return nil, err
	}
	if d.context, err = own.RetainPrimaryCtx(); err != nil {
		return nil, fmt.Errorf("device %d (%s): %w", ordinal, d.info.Name, failed("cuDevicePrimaryCtxRetain", err))
	}
	return d, d.Bind()
}

func (d *Driver) describe() error {
	var errs [6]error
	v := cu.Version()
	d.info.Driver = fmt.Sprintf("gorgonia.org/cu, CUDA %d.%d", v/1000, v%1000/10)
	d.info.Name, errs[0] = d.device.Name()
	d.info.Memory, errs[1] = d.device.TotalMem()
	d.info.Major, errs[2] = d.device.Attribute(cu.ComputeCapabilityMajor)
	d.info.Minor, errs[3] = d.device.Attribute(cu.ComputeCapabilityMinor)
	d.info.Processors, errs[4] = d.device.Attribute(cu.MultiprocessorCount)
	d.info.SharedLimit, errs[5] = d.device.Attribute(sharedLimit)
	return failed("cuDeviceGetAttribute", errors.Join(errs[:]...))
}

// failed is the error of a call, with what to do.
func failed(call string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int { // gorgonia.org/cu does not export its type of errors
		return native.DriverError(call, int(v.Int()))
	}
	return fmt.Errorf("%s: %w", call, err)
}

// Handles of gorgonia.org/cu are structures of one pointer.

func number[T any](handle T) uintptr { return *(*uintptr)(unsafe.Pointer(&handle)) }

func handle[T any](n uintptr) T { return *(*T)(unsafe.Pointer(&n)) }

func stream(s driver.Stream) cu.Stream { return handle[cu.Stream](uintptr(s)) }
func event(e driver.Event) cu.Event    { return handle[cu.Event](uintptr(e)) }

// Info implements driver.Driver.
func (d *Driver) Info() driver.Info { return d.info }

// Bind implements driver.Driver.
func (d *Driver) Bind() error { return failed("cuCtxSetCurrent", cu.SetCurrentContext(d.context)) }

// Close implements driver.Driver.
func (d *Driver) Close() error {
	return failed("cuDevicePrimaryCtxRelease", d.device.ReleasePrimaryCtx())
}

// MemInfo implements driver.Memory.
func (d *Driver) MemInfo() (free, total int64, err error) {
	free, total, err = cu.MemInfo()
	return free, total, failed("cuMemGetInfo", err)
}

// Alloc implements driver.Memory.
func (d *Driver) Alloc(n int64) (driver.Ptr, error) {
	p, err := cu.MemAlloc(n)
	return driver.Ptr(p), failed("cuMemAlloc", err)
}

// Free implements driver.Memory.
func (d *Driver) Free(p driver.Ptr) error { return failed("cuMemFree", cu.MemFree(cu.DevicePtr(p))) }

// HostFree implements driver.Memory.
func (d *Driver) HostFree(b []byte) error {
	return failed("cuMemFreeHost", cu.MemFreeHost(unsafe.Pointer(unsafe.SliceData(b))))
}

// CopyIn implements driver.Memory.
func (d *Driver) CopyIn(dst driver.Ptr, src []byte, s driver.Stream) error {
	if len(src) == 0 {
		return nil
	}
	return failed("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(&src[0]), int64(len(src)), stream(s)))
}

// CopyOut implements driver.Memory.
func (d *Driver) CopyOut(dst []byte, src driver.Ptr, s driver.Stream) error {
	if len(dst) == 0 {
		return nil
	}
	return failed("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(unsafe.Pointer(&dst[0]), cu.DevicePtr(src), int64(len(dst)), stream(s)))
}

// Copy implements driver.Memory.
func (d *Driver) Copy(dst, src driver.Ptr, n int64, s driver.Stream) error {
	if n == 0 {
		return nil
	}
	return failed("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), n, stream(s)))
}

// Fill implements driver.Memory.
func (d *Driver) Fill(dst driver.Ptr, v byte, n int64, s driver.Stream) error {
	if n == 0 {
		return nil
	}
	return failed("cuMemsetD8Async", cu.MemsetD8Async(cu.DevicePtr(dst), v, n, stream(s)))
}

// NewStream implements driver.Streams.
func (d *Driver) NewStream() (driver.Stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	return driver.Stream(number(s)), failed("cuStreamCreate", err)
}

// CloseStream implements driver.Streams.
func (d *Driver) CloseStream(s driver.Stream) error {
	own := stream(s)
	return failed("cuStreamDestroy", own.Destroy())
}

// SyncStream implements driver.Streams.
func (d *Driver) SyncStream(s driver.Stream) error {
	return failed("cuStreamSynchronize", stream(s).Synchronize())
}

// NewEvent implements driver.Streams.
func (d *Driver) NewEvent() (driver.Event, error) {
	e, err := cu.MakeEvent(cu.BlockingSyncEvent)
	return driver.Event(number(e)), failed("cuEventCreate", err)
}

// CloseEvent implements driver.Streams.
func (d *Driver) CloseEvent(e driver.Event) error {
	own := event(e)
	return failed("cuEventDestroy", cu.DestroyEvent(&own))
}

// Record implements driver.Streams.
func (d *Driver) Record(e driver.Event, s driver.Stream) error {
	return failed("cuEventRecord", event(e).Record(stream(s)))
}

// Wait implements driver.Streams.
func (d *Driver) Wait(s driver.Stream, e driver.Event) error {
	return failed("cuStreamWaitEvent", stream(s).Wait(event(e), 0))
}

// SyncEvent implements driver.Streams.
func (d *Driver) SyncEvent(e driver.Event) error {
	return failed("cuEventSynchronize", event(e).Synchronize())
}

// Elapsed implements driver.Streams.
func (d *Driver) Elapsed(from, to driver.Event) (float32, error) {
	ms, err := event(from).Elapsed(event(to))
	return float32(ms), failed("cuEventElapsedTime", err)
}

// Func implements driver.Code.
func (d *Driver) Func(m driver.Module, name string) (driver.Func, error) {
	f, err := handle[cu.Module](uintptr(m)).Function(name)
	return driver.Func(number(f)), failed("cuModuleGetFunction", err)
}
