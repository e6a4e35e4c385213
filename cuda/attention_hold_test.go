package cuda

import (
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// sent counts the copies to a device.
type sent struct {
	driver.Driver
	copies int
}

func (s *sent) CopyIn(dst driver.Ptr, src []byte, stream driver.Stream) error {
	s.copies++
	return s.Driver.CopyIn(dst, src, stream)
}

// All layers of a pass use one plan, sent once and made without allocations; other tasks in the same slice get another.
func TestAttentionHoldsPlan(t *testing.T) {
	dev := simulated(driver.BF16)(t)
	defer dev.Close()
	d := dev.(*gpu)
	s := &sent{Driver: d.Driver}
	d.Driver = s
	a, queries, keys := grove(device.Attention{Heads: 2, KVHeads: 1, HeadDim: 64, Scale: 1}, []stem{{-1, 70, 0}, {0, 20, 1}, {0, 3, 1}})
	b := newBench(t, dev, a, queries, keys)
	call := func() { dev.Attention(b.o, b.lse, b.q, b.k, b.v, a) }
	call()
	before := s.copies
	if call(); s.copies != before {
		t.Errorf("%d copies for the second layer", s.copies-before)
	}
	a.Tasks[1].Pos--
	if call(); s.copies != before+1 {
		t.Errorf("%d copies for other tasks, want 1", s.copies-before)
	}
	if d.Sync() != nil {
		t.Error(d.Err())
	}
}
