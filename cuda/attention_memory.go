package cuda

import (
	"math/bits"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// plans are the plans of the last calls.
func (d *gpu) plans() *attentionPlans { return &d.attention }

// used is called when what reads a plan is in the stream.
func (d *gpu) used(*attentionPlan) {}

// roundScratch is scratch memory of at least so many bytes. Sizes that grow by a little from step to step, as those of
// generation do, are of a few sizes of the pool.
func (d *gpu) roundScratch(bytes int) driver.Ptr { return d.scratch(roundBytes(bytes)) }

// roundBytes is the next power of 2.
func roundBytes(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }
