// Package devicetest is the conformance suite of a device.Device. It runs every operation, forward and backward,
// against package reference on awkward sizes, on strided views and with its optional arguments present and absent;
// compares bits where a device claims row invariance; and checks that a misuse is a sticky error.
package devicetest

import (
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// Tolerances bound the largest difference from the reference in a tensor, relative to the largest element of the
// reference's result and of what the call added to.
type Tolerances struct {
	Forward  float64 // outputs of forward operations
	Backward float64 // gradients
	State    float64 // what is float32 throughout: AdamW, sums of squares
}

// Opener returns a fresh device; the suite closes it.
type Opener func(t *testing.T) device.Device

// Run tests the devices that open returns.
func Run(t *testing.T, open Opener, tol Tolerances) {
	for _, op := range []struct {
		name string
		test func(*suite)
	}{
		{"memory", testMemory}, {"quant", testQuant}, {"embed", testEmbed}, {"rmsnorm", testRMSNorm}, {"linear", testLinear},
		{"rotary", testRotary}, {"attention", testAttention}, {"swiglu", testSwiGLU}, {"head", testHead},
		{"logits", testLogits}, {"sample", testSample}, {"rows", testRows}, {"elementwise", testElementwise},
		{"adamw", testAdamW},
	} {
		t.Run(op.name, func(t *testing.T) {
			dev := open(t)
			op.test(&suite{T: t, dev: dev, tol: tol})
			if err := dev.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	t.Run("misuse", func(t *testing.T) { testMisuse(t, open) })
}

// suite is the test of one operation on one device.
type suite struct {
	*testing.T
	dev device.Device
	tol Tolerances
}

// invariant runs f as a subtest if the device claims row invariance.
func (s *suite) invariant(f func(*suite)) {
	if s.dev.Info().Invariant {
		s.Run("invariant", func(t *testing.T) { f(&suite{T: t, dev: s.dev, tol: s.tol}) })
	}
}
