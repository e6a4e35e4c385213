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
