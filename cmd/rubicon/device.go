package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/cuda"
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/native"
	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// openDevice opens the device that the configuration names and says on w what it is, and why if it had the choice. The
// calling goroutine is the one that uses it, and others that hold its deviceLock.
func openDevice(c *configs.Config, w io.Writer) (device.Device, error) {
	d, why, err := chooseDevice(c.Device, c.Threads, c.Model.ComputeDType == "bfloat16")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "device     %s%s\n", d.Info().Name, why)
	return d, nil
}

// newDevice opens the best device of this machine.
func newDevice(threads int, bf16 bool) (device.Device, error) {
	d, _, err := chooseDevice("auto", threads, bf16)
	return d, err
}

// chooseDevice opens the device of a kind: auto, cpu or cuda. If auto is not cuda, why says why.
func chooseDevice(kind string, threads int, bf16 bool) (d device.Device, why string, err error) {
	if kind != "cpu" {
		d, err = openCUDA(bf16, native.System())
		if err == nil || kind == "cuda" {
			return d, "", err
		}
		why = "; " + reason(err)
	}
	d, err = openCPU(threads, bf16)
	return d, why, err
}

// openCPU opens the CPU. RUBICON_CPU_TIER chooses its kernels: amx, avx512, avx2 or portable.
func openCPU(threads int, bf16 bool) (device.Device, error) {
	return cpu.New(cpu.Options{Threads: threads, BFloat16: bf16, Tier: os.Getenv("RUBICON_CPU_TIER")})
}

// reason is, on one line, why there is no CUDA device.
func reason(err error) string {
	var missing *native.NotFound
	first, _, _ := strings.Cut(err.Error(), "\n")
	if errors.As(err, &missing) {
		if missing.What == native.DriverName {
			return "no NVIDIA driver"
		}
		first = missing.Short()
	}
	return "not cuda: " + first + " (rubicon doctor says more)"
}

// openCUDA opens the device of LOCAL_RANK, with activations in bfloat16 or float32. It locks the calling goroutine to its
// thread for good, because the device is bound to that.
func openCUDA(bf16 bool, e native.Env) (device.Device, error) {
	lib, err := native.Load(e)
	if err != nil {
		return nil, err
	}
	list, err := lib.Devices()
	if err != nil {
		return nil, err
	}
	mine, err := native.Choose(list, e.Getenv("LOCAL_RANK"))
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	d, err := newCUDA(lib, mine, bf16, e)
	if err != nil {
		runtime.UnlockOSThread()
	}
	return d, err
}

// newCUDA opens one device with cuBLAS on it.
func newCUDA(lib *native.CUDA, d native.Device, bf16 bool, e native.Env) (device.Device, error) {
	drv, err := openDriver(lib, d)
	if err != nil {
		return nil, err
	}
	blas, err := native.OpenBlas(e, drv, lib.Major())
	if err != nil {
		return nil, errors.Join(err, drv.Close())
	}
	o := cuda.Options{Driver: drv, Blas: blas, Act: driver.F32}
	if bf16 {
		o.Act = driver.BF16
	}
	return cuda.New(o)
}

// deviceLock is held by the goroutine that uses a run's device. One that is bound to a thread is bound to the holder's.
type deviceLock struct {
	mu  sync.Mutex
	dev device.Device // nil: none is open yet
}

// bound is a device that one thread at a time can use.
type bound interface{ Bind() error }

// Lock implements sync.Locker. If binding fails, so does whatever the holder asks of the device next.
func (l *deviceLock) Lock() {
	l.mu.Lock()
	if b, ok := l.dev.(bound); ok {
		runtime.LockOSThread()
		_ = b.Bind()
	}
}

// Unlock implements sync.Locker.
func (l *deviceLock) Unlock() {
	if _, ok := l.dev.(bound); ok {
		runtime.UnlockOSThread()
	}
	l.mu.Unlock()
}
