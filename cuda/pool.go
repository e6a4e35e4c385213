package cuda

import (
	"errors"
	"fmt"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// pool hands out device memory and keeps what is given back, so that steps that need the same sizes allocate nothing: the
// driver's own allocation waits for the device.
type pool struct {
	driver driver.Driver
	sizes  map[driver.Ptr]int64   // of every block
	free   map[int64][]driver.Ptr // blocks by size
}

// granule is what sizes are rounded up to.
const granule = 512

func (p *pool) take(bytes int64) (driver.Ptr, error) {
	if p.sizes == nil {
		p.sizes, p.free = map[driver.Ptr]int64{}, map[int64][]driver.Ptr{}
	}
	size := max(granule, (bytes+granule-1)/granule*granule)
	if list := p.free[size]; len(list) > 0 {
		at := list[len(list)-1]
		p.free[size] = list[:len(list)-1]
		return at, nil
	}
	at, err := p.driver.Alloc(size)
	if err != nil {
		if p.release() != nil {
			return 0, err
		}
		if at, err = p.driver.Alloc(size); err != nil {
			return 0, fmt.Errorf("%d MiB of device memory: %w", size>>20, err)
		}
	}
	p.sizes[at] = size
	return at, nil
}

// give takes a block back; address 0, which a failed take returns, is none.
func (p *pool) give(at driver.Ptr) {
	if at == 0 {
		return
	}
	size := p.sizes[at]
	p.free[size] = append(p.free[size], at)
}

// release gives unused blocks back to the driver.
func (p *pool) release() error {
	var err error
	for size, list := range p.free {
		for _, at := range list {
			err = errors.Join(err, p.driver.Free(at))
			delete(p.sizes, at)
		}
		delete(p.free, size)
	}
	return err
}

// close frees all blocks.
func (p *pool) close() error {
	var err error
	for at := range p.sizes {
		err = errors.Join(err, p.driver.Free(at))
	}
	*p = pool{driver: p.driver}
	return err
}
