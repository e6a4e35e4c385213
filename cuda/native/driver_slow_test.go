//go:build slow && linux && (amd64 || arm64) && !nocuda && !nodl

package native

import (
	"errors"
	"math"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// Arguments in a wrong order, of a wrong size or at a wrong place show as a wrong result of one of these.
func TestDriverCalls(t *testing.T) {
	f := newFake(t, nil)
	d := f.open()
	if i := d.Info(); i.Name != "fake device 0" || i.Driver != "CUDA 12.4" || i.Major != 8 || i.Minor != 0 || i.Processors != 108 ||
		i.SharedLimit != 166912 || i.Memory != 8<<30 {
		t.Errorf("info is %+v", i)
	}
	s := f.stream(d)
	before, total, err := d.MemInfo()
	f.must(err)
	p := f.floats(d, s, 1, 2, 3, 4)
	if free, _, err := d.MemInfo(); err != nil || before-free != 16 || total != 8<<30 {
		t.Errorf("%d bytes are taken of %d, %v; want 16", before-free, total, err)
	}
	q := f.memory(d, 16)
	if v := f.read(d, s, q, 1)[0]; !math.IsNaN(float64(v)) {
		t.Errorf("fresh memory is %g, want NaN", v)
	}
	f.must(d.Copy(q, p+4, 12, s), d.Fill(q+12, 0, 4, s))
	if v := f.read(d, s, q, 4); !slices.Equal(v, []float32{2, 3, 4, 0}) {
		t.Errorf("copied %v", v)
	}
	f.must(d.CopyIn(p, nil, s), d.CopyOut(nil, p, s), d.Copy(p, q, 0, s), d.Fill(p, 0, 0, s))
	host, err := d.HostAlloc(5000)
	f.must(err)
	host[4999] = 7
	if len(host) != 5000 {
		t.Errorf("pinned memory has %d bytes", len(host))
	}
	f.must(d.HostFree(host))
}

// A kernel gets a structure by value, integers and a float, and runs on the grid that it is given.
func TestLaunch(t *testing.T) {
	f := newFake(t, nil)
	d := f.open()
	s := f.stream(d)
	y, x := f.floats(d, s, 1, 2, 3, 9, 4, 5, 6, 9), f.floats(d, s, 10, 20, 30, 40, 50, 60)
	a := new(driver.Args)
	a.Matrix(driver.Matrix{At: y, Stride: 4}).Matrix(driver.Matrix{At: x, Stride: 3}).Int(2).Int(3).Float(0.5)
	add := f.kernel(d, "elementwise", "add")
	f.must(d.Launch(add, driver.Launch{Grid: [3]int{1, 2, 1}, Block: [3]int{32, 1, 1}, Stream: s}, a))
	a.Reset() // the launch has copied them
	a.Int(0).Int(0).Int(0).Int(0).Int(0)
	if v := f.read(d, s, y, 8); !slices.Equal(v, []float32{6, 12, 18, 9, 24, 30, 36, 9}) {
		t.Errorf("y is %v", v)
	}
	if err := d.Launch(add, driver.Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, Shared: 60 << 10, Stream: s}, a); err == nil {
		t.Error("60 KiB of shared memory were not refused")
	}
	f.must(d.SetShared(add, 60<<10))
	if err := d.Launch(add, driver.Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, Shared: 60 << 10, Stream: s}, a); err != nil {
		t.Errorf("60 KiB of shared memory after SetShared: %v", err)
	}
	if _, err := d.Func(d.modules[0], "nothing"); err == nil {
		t.Error("there is a kernel called nothing")
	}
}

// What is current belongs to the thread: a call from another one is refused by the driver, and Bind makes it right.
func TestThread(t *testing.T) {
	f := newFake(t, nil)
	d := f.open()
	unbound, bound := make(chan error), make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := d.cuda.call(fCtxSetCurrent, 0) // the thread may be an old one
		if err == nil {
			_, err = d.Alloc(4)
		}
		unbound <- err
		if err = d.Bind(); err == nil {
			_, err = d.Alloc(4)
		}
		bound <- err
	}()
	var e *driver.Error
	if err := <-unbound; !errors.As(err, &e) || e.Code != 201 || !strings.Contains(err.Error(), "thread") {
		t.Errorf("a call from another thread: %v", err)
	}
	if err := <-bound; err != nil {
		t.Errorf("after Bind: %v", err)
	}
}

// Streams that run late show a missing wait every time, and that events order one stream after another.
func TestOrder(t *testing.T) {
	f := newFake(t, nil)
	f.option("lazy", 1, 0)
	d := f.open()
	s, other := f.stream(d), f.stream(d)
	p := f.memory(d, 4)
	b := []byte{1, 0, 0, 0}
	f.must(d.CopyIn(p, b, s))
	b[0] = 2 // too early
	f.must(d.SyncStream(s))
	out := make([]byte, 4)
	f.must(d.CopyOut(out, p, s))
	if out[0] != 0 {
		t.Errorf("the copy is there before anything waited: %v", out)
	}
	f.must(d.SyncStream(s))
	if out[0] != 2 {
		t.Errorf("a lazy stream read %d, want what was there when it ran, 2", out[0])
	}
	e, err := d.NewEvent()
	f.must(err)
	late, err := d.NewEvent()
	f.must(err)
	f.must(d.Fill(p, 9, 4, s), d.Record(e, s), d.Wait(other, e), d.CopyOut(out, p, other), d.Record(late, other), d.SyncEvent(late))
	if out[0] != 9 {
		t.Errorf("the other stream did not wait for the event: %d", out[0])
	}
	if ms, err := d.Elapsed(e, late); err != nil || ms < 0 || ms > 60_000 {
		t.Errorf("elapsed %g ms, %v", ms, err)
	}
	f.must(d.CloseEvent(e), d.CloseEvent(late))
}

// Accesses outside of memory surface in the call that waits, and stay.
func TestBounds(t *testing.T) {
	f := newFake(t, nil)
	d := f.open()
	s := f.stream(d)
	p := f.memory(d, 16)
	f.must(d.CopyIn(p+8, make([]byte, 9), s))
	for range 2 {
		if err := d.SyncStream(s); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)") {
			t.Errorf("a copy over the end of memory: %v", err)
		}
	}
}

// Every failure must say what to do; a hint at the wrong code sends the user the wrong way.
func TestHints(t *testing.T) {
	for _, c := range []struct {
		call string
		code int
		say  []string
	}{
		{"cuInit", 100, []string{"CUDA_ERROR_NO_DEVICE (100)", "nvidia-smi"}},
		{"cuInit", 803, []string{"restart the machine"}},
		{"cuInit", 804, []string{"cuda/compat"}},
		{"cuInit", 802, []string{"fabricmanager"}},
		{"cuDevicePrimaryCtxRetain", 46, []string{"device 0 (fake device 0)", "another process"}},
		{"cuMemAlloc_v2", 2, []string{"CUDA_ERROR_OUT_OF_MEMORY", "per_device_train_batch_size"}},
		{"cuModuleLoadDataEx", 222, []string{"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "11.8", "520"}},
		{"cuModuleLoadDataEx", 221, []string{"libnvidia-ptxjitcompiler"}},
		{"cuStreamSynchronize", 700, []string{"outside of memory", "RUBICON_CUDA_SYNC=1"}},
		{"cuMemFree_v2", 12345, []string{"CUDA error (12345)"}},
	} {
		f := newFake(t, nil)
		f.fail(c.call, c.code)
		err := everything(f)
		for _, say := range c.say {
			if err == nil || !strings.Contains(err.Error(), say) {
				t.Errorf("%s failing with %d has no %q: %v", c.call, c.code, say, err)
			}
		}
	}
}

// everything opens a device, loads a kernel and waits.
func everything(f *fake) error {
	c, err := Load(f.env)
	if err != nil {
		return err
	}
	list, err := c.Devices()
	if err != nil {
		return err
	}
	d, err := c.Open(list[0])
	if err != nil {
		return err
	}
	p, err := d.Alloc(4)
	if err != nil {
		return err
	}
	if _, err := d.Load(ptx(f, "elementwise")); err != nil {
		return err
	}
	return errors.Join(d.SyncStream(0), d.Free(p), d.Close())
}

// The messages of the driver's compiler are what says why code is refused.
func TestCompilerLog(t *testing.T) {
	f := newFake(t, nil)
	d := f.open()
	if _, err := d.Load([]byte("rubbish")); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_INVALID_PTX (218)") ||
		!strings.Contains(err.Error(), "ptxas fatal : no .version in it") {
		t.Errorf("rubbish was loaded: %v", err)
	}
	f.option("ptx", 77, 84)
	if _, err := d.Load(ptx(f, "elementwise")); err == nil || !strings.Contains(err.Error(), "driver 520") {
		t.Errorf("an old driver loaded PTX 7.8: %v", err)
	}
}

// A device that cannot do the arithmetic and a driver that cannot load the kernels are refused before anything is loaded.
func TestRefused(t *testing.T) {
	f := newFake(t, nil)
	f.option("capability", 75, 80)
	if err := everything(f); err == nil || !strings.Contains(err.Error(), "bfloat16 needs 8.0") {
		t.Errorf("compute capability 7.5: %v", err)
	}
	f.option("capability", 90, 80)
	f.option("version", 11040, 12040)
	if err := everything(f); err == nil || !strings.Contains(err.Error(), "is for CUDA 11.4") || !strings.Contains(err.Error(), "update the driver") {
		t.Errorf("a driver of CUDA 11.4: %v", err)
	}
}

// A library without the functions is another one, or too old: it must be named, not crash.
func TestMissingFunction(t *testing.T) {
	f := newFake(t, map[string]string{"RUBICON_LIBCUDA": "libm.so.6"})
	if _, err := Load(f.env); err == nil || !strings.Contains(err.Error(), "has no function cuInit") {
		t.Errorf("libm as the driver: %v", err)
	}
}

// Peers are pairs of devices, each other's and not their own.
func TestDevices(t *testing.T) {
	f := newFake(t, nil)
	f.option("devices", 3, 1)
	c, err := Load(f.env)
	f.must(err)
	list, err := c.Devices()
	f.must(err)
	if len(list) != 3 || list[2].Name != "fake device 2" || !slices.Equal(list[1].Peers, []int{0, 2}) {
		t.Errorf("devices are %+v", list)
	}
	f.option("devices", 0, 1)
	if _, err := c.Devices(); err == nil || !strings.Contains(err.Error(), "CUDA_VISIBLE_DEVICES") {
		t.Errorf("no device: %v", err)
	}
}

// With RUBICON_CUDA_SYNC=1 the launch itself reports what its kernel did, so that the kernel is named.
func TestSyncEachLaunch(t *testing.T) {
	for _, sync := range []string{"", "1"} {
		f := newFake(t, map[string]string{"RUBICON_CUDA_SYNC": sync})
		d := f.open()
		s := f.stream(d)
		x := f.floats(d, s, 1)
		a := new(driver.Args)
		a.Matrix(driver.Matrix{At: x, Stride: 1}).Matrix(driver.Matrix{At: x, Stride: 1}).Int(1).Int(1).Float(1)
		scale := f.kernel(d, "elementwise", "scale")
		f.fail("cuStreamSynchronize", 700)
		err := d.Launch(scale, driver.Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, Stream: s}, a)
		if (err != nil) != (sync == "1") {
			t.Errorf("RUBICON_CUDA_SYNC=%q: the launch gives %v", sync, err)
		}
		if err == nil {
			d.SyncStream(s) // takes the failure
		}
	}
}

// What a call's pointer points to must be on the heap: a stack moves while C writes to it.
func TestNothingOnTheStack(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	heap := 0
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "new(") && !strings.Contains(line, "&[2]float32") {
			continue
		}
		if strings.Contains(line, "does not escape") {
			t.Error(strings.TrimSpace(line))
		}
		heap++
	}
	if heap < 15 {
		t.Errorf("the compiler speaks of %d variables, want at least 15: the check sees nothing", heap)
	}
}
