package ptxsim

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// The limits of a launch; shared memory is in bytes.
const (
	maxThreads      = 1024
	maxBlockZ       = 64
	maxGridX        = 1<<31 - 1
	maxGridYZ       = 65535
	maxStaticShared = 48 << 10
)

// launch is a kernel that is run on a grid.
type launch struct {
	kernel      *kernel
	memory      *memory
	grid, block [3]int
	shared      int // bytes of dynamic shared memory
	params      []byte
	number      uint32 // of the launch
	races       bool   // looks for races in global memory
}

// check finds what a device would refuse; allowed is the dynamic shared memory that the function may have.
func (l *launch) check(allowed int) error {
	k, threads := l.kernel, 1
	for i, n := range l.block {
		if limit := [3]int{maxThreads, maxThreads, maxBlockZ}[i]; n < 1 || n > limit {
			return fmt.Errorf("block %v: axis %d has to be in [1, %d]", l.block, i, limit)
		}
		if k.block[i] > 0 && n > k.block[i] {
			return fmt.Errorf("block %v: the kernel was compiled for at most %v", l.block, k.block)
		}
		threads *= n
	}
	if threads > maxThreads {
		return fmt.Errorf("block %v has %d threads, more than %d", l.block, threads, maxThreads)
	}
	for i, n := range l.grid {
		if limit := [3]int{maxGridX, maxGridYZ, maxGridYZ}[i]; n < 1 || n > limit {
			return fmt.Errorf("grid %v: axis %d has to be in [1, %d]", l.grid, i, limit)
		}
	}
	if k.shared > maxStaticShared {
		return fmt.Errorf("%d bytes of static shared memory, more than %d", k.shared, maxStaticShared)
	}
	if l.shared < 0 || l.shared > allowed {
		return fmt.Errorf("%d bytes of dynamic shared memory, more than the %d that the function may have: allow them by SetShared",
			l.shared, allowed)
	}
	if n := k.shared + l.shared; n > sharedLimit {
		return fmt.Errorf("%d bytes of static and dynamic shared memory, more than the device's %d", n, sharedLimit)
	}
	return nil
}

// pack lays the arguments out as the parameters are.
func (k *kernel) pack(a *driver.Args) ([]byte, error) {
	if a.Len() != len(k.params) {
		return nil, fmt.Errorf("%d arguments, the kernel has %d parameters", a.Len(), len(k.params))
	}
	out := make([]byte, k.paramSize)
	for i, p := range k.params {
		v := a.Bytes(i)
		if p.size > len(v) {
			return nil, fmt.Errorf("parameter %d has %d bytes, an argument has at most %d", i, p.size, len(v))
		}
		copy(out[p.offset:], v[:p.size])
	}
	return out, nil
}

// coordinates are those of a block by its number.
func (l *launch) coordinates(index int) [3]int {
	return [3]int{index % l.grid[0], index / l.grid[0] % l.grid[1], index / (l.grid[0] * l.grid[1])}
}

// run runs all blocks on so many goroutines. The first error ends it.
func (l *launch) run(workers int) error {
	total := l.grid[0] * l.grid[1] * l.grid[2]
	var taken atomic.Int64
	var group errgroup.Group
	for range min(workers, total) {
		group.Go(func() error {
			b := newBlock(l)
			for {
				n := int(taken.Add(1)) - 1
				if n >= total {
					return nil
				}
				if err := b.run(n); err != nil {
					taken.Store(int64(total))
					return err
				}
			}
		})
	}
	return group.Wait()
}
