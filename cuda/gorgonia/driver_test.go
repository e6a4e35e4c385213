//go:build gorgonia_cu && cgo

package gorgonia

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/drivertest"
	"github.com/rubicon-rl/rubicon/cuda/native"
)

// TestConformance runs the conformance suite through gorgonia.org/cu: some of it on the fake libcuda that the program is linked
// with; with RUBICON_TEST_GPU=1 all of it on this machine's device.
func TestConformance(t *testing.T) {
	covered := []string{"memory", "elementwise", "linear"}
	if os.Getenv("RUBICON_TEST_GPU") == "1" {
		covered = nil
	}
	open := func() (driver.Driver, driver.Blas, error) {
		d, err := Open(0)
		if err != nil {
			return nil, nil, err
		}
		b, err := native.OpenBlas(native.System(), d, 12)
		return d, b, err
	}
	for name, act := range map[string]driver.Type{"float32": driver.F32, "bfloat16": driver.BF16} {
		t.Run(name, func(t *testing.T) { drivertest.Run(t, open, act, covered) })
	}
}

// What gorgonia.org/cu lacks is ours: code that is refused comes with the compiler's messages, and errors say what to do.
func TestErrors(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d, err := Open(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Load([]byte("rubbish")); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_INVALID_PTX") || !strings.Contains(err.Error(), "ptxas") {
		t.Errorf("rubbish was loaded: %v", err)
	}
	if _, err := d.Alloc(1 << 50); err == nil || !strings.Contains(err.Error(), "per_device_train_batch_size") {
		t.Errorf("a petabyte: %v", err)
	}
	if _, err := Open(7); err == nil || !strings.Contains(err.Error(), "LOCAL_RANK") {
		t.Errorf("device 7: %v", err)
	}
}
