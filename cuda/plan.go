package cuda

import "github.com/rubicon-rl/rubicon/internal/device"

// The driver's context takes 300 to 600 MiB by device, and what else takes memory comes when it is first used: cuBLAS's
// workspace and code, our kernels, scratch of operations, blocks of the pool that are larger than what is in them.
const (
	leastContext = 512 << 20
	reserve      = 1 << 30
)

// Footprint returns what the device takes. What other processes hold of it counts too.
func (d *gpu) Footprint() device.Footprint {
	f := device.Footprint{ActBytes: d.act.Size(), Dense: true, Fixed: leastContext + reserve, Head: min(headBytes, d.info.Memory/headShare)}
	free, total, err := d.MemInfo()
	if d.ok(err) {
		f.Fixed = max(leastContext, total-free-d.pool.bytes()) + reserve
	}
	return f
}

// bytes is the size of all blocks.
func (p *pool) bytes() (n int64) {
	for _, size := range p.sizes {
		n += size
	}
	return n
}
