package trainer

import (
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
)

// By hand: a product of 512 x 1024 x 1024 is 2^30 operations; on a clock that takes 1/4 s between two looks, 2^32 a second.
func TestPeak(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	check(t, err)
	defer dev.Close()
	now := time.Unix(0, 0)
	clock := func() time.Time {
		now = now.Add(time.Second / 4)
		return now
	}
	before := dev.Allocated()
	if got := peak(dev, device.BFloat16, clock); got != 1<<32 {
		t.Errorf("peak = %v, want 2^32", got)
	}
	if got := dev.Allocated(); got != before {
		t.Errorf("%d bytes are left of %d", got, before)
	}
	if lora, full := trainFLOPs(10, false), trainFLOPs(10, true); lora != 40 || full != 60 {
		t.Errorf("a token of 10 weights costs %v with an adapter and %v with all weights, want 40 and 60", lora, full)
	}
	f := policy.Forest{Segments: []policy.Segment{{Parent: policy.Root, Tokens: []int32{1, 2}}, {Tokens: []int32{3}}, {Tokens: []int32{4, 5}}}}
	if f.Tokens() != 5 {
		t.Errorf("Tokens = %d, want 5", f.Tokens())
	}
}
