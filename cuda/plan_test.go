package cuda

import (
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/cuda/ptxsim"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// shared is a card of 80 GiB of which 70 are free, but for what this process allocates.
type shared struct {
	driver.Driver
	own int64
}

func (s *shared) Info() driver.Info {
	i := s.Driver.Info()
	i.Memory = 80 << 30
	return i
}

func (s *shared) Alloc(n int64) (driver.Ptr, error) {
	s.own += n
	return s.Driver.Alloc(n)
}

func (s *shared) MemInfo() (free, total int64, err error) { return 70<<30 - s.own, 80 << 30, nil }

// What others hold of the card, and the context, is not there for the run; what the run itself holds is, and is in the plan
// already.
func TestFootprint(t *testing.T) {
	d, err := ptxsim.NewDriver(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := New(Options{Driver: &shared{Driver: d}, Blas: ptxsim.Blas{D: d}, Act: driver.BF16})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	want := device.Footprint{ActBytes: 2, Dense: true, Fixed: 10<<30 + reserve, Head: headBytes}
	for range 2 {
		if got := dev.(*gpu).Footprint(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if _, err := dev.Alloc(device.Act, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if got := simulated(driver.F32)(t).(*gpu).Footprint(); got != (device.Footprint{ActBytes: 4, Dense: true, Fixed: leastContext + reserve, Head: 1 << 30 / headShare}) {
		t.Errorf("%+v of a small card with nothing in it", got)
	}
}
