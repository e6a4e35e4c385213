package main

import (
	"errors"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/native"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// threaded is a device that counts how often it is bound to a thread.
type threaded struct {
	device.Device
	binds int
}

func (d *threaded) Bind() error {
	d.binds++
	return nil
}

// A judge on the run's own model computes in other goroutines: each must have the device bound to its thread, or the driver
// refuses what it asks.
func TestDeviceLockBinds(t *testing.T) {
	l, d := &deviceLock{}, &threaded{}
	func() { // before a device is open
		l.Lock()
		defer l.Unlock()
	}()
	l.dev = d
	l.Lock()
	done := make(chan int)
	go func() {
		l.Lock()
		defer l.Unlock()
		done <- d.binds
	}()
	if d.binds != 1 {
		t.Errorf("the device was bound %d times by its first holder", d.binds)
	}
	l.Unlock()
	if n := <-done; n != 2 {
		t.Errorf("the device was bound %d times when another goroutine held it", n)
	}
}

// The line `device` of a run is one line, also where the error has many.
func TestReason(t *testing.T) {
	missing := &native.NotFound{What: native.DriverName, Tried: []string{"a: no", "b: no"}, Hint: "install it"}
	if got := reason(errors.Join(missing)); got != "no NVIDIA driver" {
		t.Errorf("without a driver the reason is %q", got)
	}
	missing.What = "cuBLAS"
	if got := reason(missing); got != "not cuda: cuBLAS cannot be opened (rubicon doctor says more)" {
		t.Errorf("without cuBLAS the reason is %q", got)
	}
}
