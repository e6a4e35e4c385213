package cpu

import (
	"testing"

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

// TestConformance runs the suite on every tier that the machine has.
func TestConformance(t *testing.T) {
	tol := devicetest.Tolerances{Forward: 5e-6, Backward: 5e-5, State: 1e-5}
	for _, tier := range tiers() {
		t.Run(tier.name, func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) device.Device { return open(t, Options{Threads: 2, Tier: tier.name}) }, tol)
		})
	}
}
