//go:build mutate

package cuda

import (
	"bytes"
	"os"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/ptxsim"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/devicetest"
)

// changed is a driver that loads a mutant in place of its original.
type changed struct {
	driver.Driver
	original, mutant []byte
}

func (c changed) Load(ptx []byte) (driver.Module, error) {
	if bytes.Equal(ptx, c.original) {
		ptx = c.mutant
	}
	return c.Driver.Load(ptx)
}

// TestMutant are all cases by operation on the kernels that scripts/mutate names in the environment.
func TestMutant(t *testing.T) {
	original, err := os.ReadFile(os.Getenv("RUBICON_MUTATE_ORIGINAL"))
	check(t, err)
	mutant, err := os.ReadFile(os.Getenv("RUBICON_MUTATE_MUTANT"))
	check(t, err)
	open := func(act driver.Type) devicetest.Opener {
		return func(t *testing.T) device.Device {
			d, err := ptxsim.NewDriver(1 << 30)
			check(t, err)
			dev, err := New(Options{Driver: changed{d, original, mutant}, Blas: ptxsim.Blas{D: d}, Act: act})
			check(t, err)
			return dev
		}
	}
	t.Run("Float32", func(t *testing.T) {
		devicetest.Run(t, open(driver.F32), devicetest.Tolerances{Forward: 1e-5, Backward: 2e-5, State: 1e-6})
	})
	t.Run("BFloat16", func(t *testing.T) {
		devicetest.Run(t, open(driver.BF16), devicetest.Tolerances{Forward: 2e-2, Backward: 2e-2, State: 1e-6})
	})
	t.Run("Float32 sizes", func(t *testing.T) { testSizes(t, open(driver.F32), 2e-5) })
	t.Run("BFloat16 sizes", func(t *testing.T) { testSizes(t, open(driver.BF16), 2e-2) })
}
