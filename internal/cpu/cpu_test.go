package cpu

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/devicetest"
)

// open returns a device that the test closes.
func open(t testing.TB, o Options) *cpu {
	t.Helper()
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d.(*cpu)
}

// testedTiers are the tiers that the machine has. Under the race detector it is only the best one: the detector does not
// see into assembly, the Go around it is the same for all, and plain Go loops take it minutes.
func testedTiers() []tier {
	if underRace {
		return tiers()[:1]
	}
	return tiers()
}

// TestConformance runs the suite on every tier.
func TestConformance(t *testing.T) {
	tol := devicetest.Tolerances{Forward: 5e-6, Backward: 5e-5, State: 1e-5}
	for _, tier := range testedTiers() {
		t.Run(tier.name, func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) device.Device { return open(t, Options{Threads: 2, Tier: tier.name}) }, tol)
		})
	}
}

func TestNewNamesTheTiersThatItHas(t *testing.T) {
	if _, err := New(Options{Tier: "mmx"}); err == nil || !strings.Contains(err.Error(), "portable") {
		t.Errorf("New with an unknown tier: %v", err)
	}
}

// More memory than the machine has is an error, not the end of the process; the device goes on.
func TestTooMuchMemory(t *testing.T) {
	d := open(t, Options{Threads: 1})
	for _, n := range []int{1 << 45, math.MaxInt} {
		if m, err := d.Alloc(device.F32, n); err == nil {
			t.Errorf("Alloc of %d elements gives %v", n, m)
		}
		if w, err := d.NewWeight(device.BFloat16, n, 1<<40); err == nil {
			t.Errorf("NewWeight of %d rows gives %v", n, w)
		}
	}
	if _, err := d.Alloc(device.F32, 10); err != nil || d.Allocated() != 40 {
		t.Errorf("after that, Alloc of 10 elements: %v, %d bytes allocated", err, d.Allocated())
	}
}

// Close frees what is left, ends the workers, and makes later operations errors.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	d, err := New(Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(device.F32, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // a worker that was awaited still counts for a moment
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if d.Allocated() != 0 || runtime.NumGoroutine() > before {
		t.Errorf("%d bytes and %d goroutines are left", d.Allocated(), runtime.NumGoroutine()-before)
	}
	if d.Zero(device.View(m, 1, 10)); d.Err() == nil {
		t.Error("an operation on a closed device is no error")
	}
	if err := d.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}
