package selftest

import (
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

func openCPU(t *testing.T) device.Device {
	t.Helper()
	d, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// The CPU, which the suite has proved, must pass against the float64 reference: a case that is wrong would blame a device that is
// right.
func TestCPU(t *testing.T) {
	d, n := openCPU(t), 0
	for r := range Run(d, reference.New(), Tolerance) {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Op, r.Err)
		}
		n++
	}
	if n != len(cases()) || d.Allocated() != 0 {
		t.Errorf("%d of %d cases were run, %d bytes are left", n, len(cases()), d.Allocated())
	}
}

// broken is a device of which one operation is wrong.
type broken struct{ device.Device }

func (b broken) SwiGLU(y, gu device.Mat) {
	b.Device.SwiGLU(y, gu)
	b.Copy(y.RowsOf(7, 8), y.RowsOf(8, 9))
}

func TestOneWrongRow(t *testing.T) {
	for r := range Run(broken{openCPU(t)}, reference.New(), Loose) {
		if (r.Err != nil) != (r.Op == "SwiGLU") {
			t.Errorf("%s: %v", r.Op, r.Err)
		}
	}
}

// failing is a device that fails in an operation.
type failing struct{ device.Device }

func (f failing) Embed(y device.Mat, w device.Weight, ids device.Mem) { f.Device.Embed(y, nil, ids) }

// After an error nothing more is asked of the device, and the error is reported.
func TestStopsAtAnError(t *testing.T) {
	d, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	last := Result{}
	for last = range Run(failing{d}, reference.New(), Tolerance) {
	}
	if last.Op != "Embed" || last.Err == nil || !strings.Contains(last.Err.Error(), "embed") {
		t.Errorf("the last result is %+v", last)
	}
	d.Close()
}
