// Package drivertest runs the conformance suite of a device on a driver.Driver that belongs to the thread which it is bound to, as
// CUDA's are: the suite's subtests are goroutines of their own.
package drivertest

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda"
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/devicetest"
)

// Open opens a driver and cuBLAS on the calling thread.
type Open func() (driver.Driver, driver.Blas, error)

// Run runs the suite with activations of type act on the operations covered; nil: on all.
func Run(t *testing.T, open Open, act driver.Type, covered []string) {
	tolerances := devicetest.Tolerances{Forward: 1e-5, Backward: 2e-5, State: 1e-6} // as in package cuda's own tests
	if act == driver.BF16 {
		tolerances.Forward, tolerances.Backward = 2e-2, 2e-2
	}
	devicetest.Run(t, func(t *testing.T) device.Device {
		t.Helper()
		if op := t.Name()[strings.LastIndex(t.Name(), "/")+1:]; covered != nil && !slices.Contains(covered, op) {
			t.Skip("the libraries have no kernels for it")
		}
		defer locked()()
		d, b, err := open()
		if err != nil {
			t.Fatal(err)
		}
		dev, err := cuda.New(cuda.Options{Driver: roaming{d}, Blas: roamingBlas{b, roaming{d}}, Act: act})
		if err != nil {
			t.Fatal(err)
		}
		return dev
	}, tolerances)
}

// locked locks the goroutine to its thread until what it returns is called.
func locked() func() {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// roaming is a driver that any goroutine may use.
type roaming struct{ driver.Driver }

// on calls f on a thread that the device is bound to.
func on[T any](r roaming, f func() (T, error)) (T, error) {
	defer locked()()
	if err := r.Driver.Bind(); err != nil {
		var none T
		return none, err
	}
	return f()
}

func (r roaming) do(f func() error) error {
	_, err := on(r, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func (r roaming) Alloc(n int64) (driver.Ptr, error) {
	return on(r, func() (driver.Ptr, error) { return r.Driver.Alloc(n) })
}
func (r roaming) Free(p driver.Ptr) error { return r.do(func() error { return r.Driver.Free(p) }) }
func (r roaming) HostAlloc(n int) ([]byte, error) {
	return on(r, func() ([]byte, error) { return r.Driver.HostAlloc(n) })
}
func (r roaming) HostFree(b []byte) error { return r.do(func() error { return r.Driver.HostFree(b) }) }
func (r roaming) CopyIn(p driver.Ptr, b []byte, s driver.Stream) error {
	return r.do(func() error { return r.Driver.CopyIn(p, b, s) })
}
func (r roaming) CopyOut(b []byte, p driver.Ptr, s driver.Stream) error {
	return r.do(func() error { return r.Driver.CopyOut(b, p, s) })
}
func (r roaming) Copy(to, from driver.Ptr, n int64, s driver.Stream) error {
	return r.do(func() error { return r.Driver.Copy(to, from, n, s) })
}
func (r roaming) Fill(p driver.Ptr, v byte, n int64, s driver.Stream) error {
	return r.do(func() error { return r.Driver.Fill(p, v, n, s) })
}
func (r roaming) NewStream() (driver.Stream, error) { return on(r, r.Driver.NewStream) }
func (r roaming) CloseStream(s driver.Stream) error {
	return r.do(func() error { return r.Driver.CloseStream(s) })
}
func (r roaming) SyncStream(s driver.Stream) error {
	return r.do(func() error { return r.Driver.SyncStream(s) })
}
func (r roaming) NewEvent() (driver.Event, error) { return on(r, r.Driver.NewEvent) }
func (r roaming) CloseEvent(e driver.Event) error {
	return r.do(func() error { return r.Driver.CloseEvent(e) })
}
func (r roaming) Record(e driver.Event, s driver.Stream) error {
	return r.do(func() error { return r.Driver.Record(e, s) })
}
func (r roaming) Wait(s driver.Stream, e driver.Event) error {
	return r.do(func() error { return r.Driver.Wait(s, e) })
}
func (r roaming) SyncEvent(e driver.Event) error {
	return r.do(func() error { return r.Driver.SyncEvent(e) })
}
func (r roaming) Load(ptx []byte) (driver.Module, error) {
	return on(r, func() (driver.Module, error) { return r.Driver.Load(ptx) })
}
func (r roaming) Func(m driver.Module, name string) (driver.Func, error) {
	return on(r, func() (driver.Func, error) { return r.Driver.Func(m, name) })
}
func (r roaming) SetShared(f driver.Func, n int) error {
	return r.do(func() error { return r.Driver.SetShared(f, n) })
}
func (r roaming) Launch(f driver.Func, l driver.Launch, a *driver.Args) error {
	return r.do(func() error { return r.Driver.Launch(f, l, a) })
}
func (r roaming) Close() error { return r.do(r.Driver.Close) }

type roamingBlas struct {
	driver.Blas
	driver roaming
}

func (b roamingBlas) Gemm(g driver.Gemm, s driver.Stream) error {
	return b.driver.do(func() error { return b.Blas.Gemm(g, s) })
}
func (b roamingBlas) Close() error { return b.driver.do(b.Blas.Close) }
