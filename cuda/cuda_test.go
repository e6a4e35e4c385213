package cuda

import (
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/ptxsim"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/devicetest"
)

// simulated opens a device that runs the kernels' PTX on the processor, and finds races in shared memory and between blocks,
// accesses outside of allocations and reads of what nobody wrote.
func simulated(act driver.Type) devicetest.Opener {
	cache := new(ptxsim.Cache) // each device of a test loads the same kernels
	return func(t *testing.T) device.Device {
		t.Helper()
		d, err := ptxsim.NewDriver(1<<30, ptxsim.WithCache(cache))
		if err != nil {
			t.Fatal(err)
		}
		dev, err := New(Options{Driver: d, Blas: ptxsim.Blas{D: d}, Act: act})
		if err != nil {
			t.Fatal(err)
		}
		return dev
	}
}

// Of float32, sums differ from the reference's in order. Of bfloat16, every activation that is written has 8 bits
// (2^-9 relative), and a result that rests on several such has a few times that.
func TestFloat32(t *testing.T) {
	devicetest.Run(t, simulated(driver.F32), devicetest.Tolerances{Forward: 1e-5, Backward: 2e-5, State: 1e-6})
}

func TestBFloat16(t *testing.T) {
	devicetest.Run(t, simulated(driver.BF16), devicetest.Tolerances{Forward: 2e-2, Backward: 2e-2, State: 1e-6})
}
