package cuda

// Footprint is how the device keeps what it is asked for, and what it takes of its memory beside that, for the plan of a run:
// it converts to policy.Footprint.
type Footprint struct {
	ActBytes int   // of an element of kind Act
	Dense    bool  // weights that are not float32 take as much as activations
	Fixed    int64 // bytes as long as the device is open: context, code, workspaces
	Head     int64 // bytes that the logits of Head and HeadGrad may take
}

// The driver's context takes 300 to 600 MiB by device, and what else takes memory comes when it is first used: cuBLAS's
// workspace and code, our kernels, scratch of operations, blocks of the pool that are larger than what is in them.
const (
	leastContext = 512 << 20
	reserve      = 1 << 30
)

// Footprint returns what the device takes. What other processes hold of it counts too.
func (d *gpu) Footprint() Footprint {
	f := Footprint{ActBytes: d.act.Size(), Dense: true, Fixed: leastContext + reserve, Head: min(headBytes, d.info.Memory/headShare)}
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
