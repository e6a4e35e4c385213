package reference_test

import (
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/devicetest"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

// TestConformance tests the suite as much as the device: comparisons are of the reference with itself, but
// everything else (what may be written, invariance, misuse, allocation) is not.
func TestConformance(t *testing.T) {
	devicetest.Run(t, func(*testing.T) device.Device { return reference.New() }, devicetest.Tolerances{})
}
