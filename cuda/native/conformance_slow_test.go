//go:build slow && linux && (amd64 || arm64) && !nocuda && !nodl

package native

import (
	"os"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/drivertest"
)

// TestConformance runs the conformance suite through the libraries: on the fake ones in float32 with streams that run at once, in
// bfloat16 with streams that run late; with RUBICON_TEST_GPU=1 on this machine's device.
func TestConformance(t *testing.T) {
	for name, c := range map[string]struct {
		act  driver.Type
		lazy int
	}{"float32": {driver.F32, 0}, "bfloat16": {driver.BF16, 1}} {
		t.Run(name, func(t *testing.T) {
			env := System()
			if os.Getenv("RUBICON_TEST_GPU") != "1" {
				f := newFake(t, nil)
				f.option("lazy", c.lazy, 0)
				env = f.env
			}
			drivertest.Run(t, opener(env), c.act, nil)
		})
	}
}

func opener(e Env) drivertest.Open {
	return func() (driver.Driver, driver.Blas, error) {
		c, err := Load(e)
		if err != nil {
			return nil, nil, err
		}
		list, err := c.Devices()
		if err != nil {
			return nil, nil, err
		}
		d, err := c.Open(list[0])
		if err != nil {
			return nil, nil, err
		}
		b, err := OpenBlas(e, d, c.Major())
		return d, b, err
	}
}
