package cuda

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// attention is a call of Attention or AttentionGrad: its matrices on the device and the plan of its work.
type attention struct {
	*gpu
	a                                      device.Attention
	plan                                   *attentionPlan
	o, lse, q, k, v, delta, dO, dq, dk, dv driver.Matrix
}

// Attention implements device.Ops. Tasks of few queries are cut along their keys (decode), the others along their queries.
func (d *gpu) Attention(o, lse, q, k, v device.Mat, a device.Attention) {
	if !d.ok(device.CheckAttention(o, lse, q, k, v, a)) || !d.ok(checkHeadDim(a.HeadDim)) {
		return
	}
	c := attention{gpu: d, a: a, o: d.mat(o), lse: d.mat(lse), q: d.mat(q), k: d.mat(k), v: d.mat(v)}
	c.plan = &d.plans().forward
	key := c.key(c.o, c.q, c.k, c.v)
	key.qRows, key.kRows = q.Rows, k.Rows
	if d.err != nil || !d.ready(c.plan, key, a.Tasks) {
		return
	}
	defer d.used(c.plan)
	tiles := c.plan.tiles.n
	if key.lanes > 0 {
		args := c.plain(d.args().Matrix(c.o).Matrix(c.lse).Matrix(c.q).Matrix(c.k).Matrix(c.v).Ptr(c.plan.paths.at).Ptr(c.plan.tiles.at))
		d.launch(c.sized("attentionplain", "forward_8", "forward_16", "forward_32"), c.grid(tiles, a.Heads, key.room()), args)
		return
	}
	args := d.args().Matrix(c.o).Matrix(c.lse).Matrix(c.q).Matrix(c.k).Matrix(c.v).Ptr(c.plan.paths.at).Ptr(c.plan.tiles.at)
	d.launch(c.sized("attention", "forward_64", "forward_128"), c.grid(tiles, a.Heads, c.tileBytes(3*64)), args.Int(c.group()).Float(a.Scale))
	c.decode()
}

// AttentionGrad implements device.Ops.
func (d *gpu) AttentionGrad(dq, dk, dv, do, o, lse, q, k, v device.Mat, a device.Attention) {
	m := device.AttentionGradMats{DQ: dq, DK: dk, DV: dv, DO: do, O: o, LSE: lse, Q: q, K: k, V: v}
	if !d.ok(device.CheckAttentionGrad(m, a)) || !d.ok(checkHeadDim(a.HeadDim)) {
		return
	}
	c := attention{gpu: d, a: a, lse: d.mat(lse), q: d.mat(q), k: d.mat(k), v: d.mat(v), o: d.mat(o), dO: d.mat(do)}
	c.dq, c.dk, c.dv = d.mat(dq), d.mat(dk), d.mat(dv)
	c.plan = &d.plans().backward
	key := c.key(c.q, c.k, c.v, c.dO, c.dq, c.dk, c.dv)
	key.qRows, key.kRows, key.backward = q.Rows, k.Rows, true
	if d.err != nil || !d.ready(c.plan, key, a.Tasks) {
		return
	}
	defer d.used(c.plan)
	c.delta = driver.Matrix{At: d.roundScratch(4 * q.Rows * a.Heads)}
	defer d.pool.give(c.delta.At)
	if c.dq.At != 0 || c.dk.At != 0 || c.plan.lanes == 0 {
		c.deltas(q.Rows)
	}
	if c.dq.At != 0 {
		c.queryGrad()
	}
	if c.dk.At != 0 || c.dv.At != 0 {
		c.keyGrad()
	}
}

// deltas computes the sums of do·o.
func (c *attention) deltas(rows int) {
	lanes, whole := 1, 0
	for ; lanes < 32 && 8*lanes < c.a.HeadDim; lanes *= 2 {
	}
	if c.a.HeadDim%8 == 0 && wholeRows(c.o) && wholeRows(c.dO) {
		whole = 1
	}
	s := shape{grid: [3]int{(rows*c.a.Heads*lanes + threads - 1) / threads, 1, 1}, block: [3]int{threads, 1, 1}}
	c.launch(kernel{"attentiondelta", "delta"}, s, c.args().Ptr(c.delta.At).Matrix(c.dO).Matrix(c.o).
		Int(rows).Int(c.a.Heads).Int(c.a.HeadDim).Int(lanes).Int(whole))
}

// queryGrad computes dq.
func (c *attention) queryGrad() {
	p := c.plan
	args := c.args().Matrix(c.dq).Matrix(c.dO).Matrix(c.lse).Ptr(c.delta.At).Matrix(c.q).Matrix(c.k).Matrix(c.v).Ptr(p.paths.at).Ptr(p.tiles.at)
	if p.lanes > 0 {
		c.launch(c.sized("attentionplain", "queries_8", "queries_16", "queries_32"), c.grid(p.tiles.n, c.a.Heads, p.room()), c.plain(args))
		return
	}
	c.launch(c.sized("attentiongrad", "queries_64", "queries_128"), c.grid(p.tiles.n, c.a.Heads, c.tileBytes(4*64)), args.Int(c.group()).Float(c.a.Scale))
}

// keyGrad computes dk and dv.
func (c *attention) keyGrad() {
	p := c.plan
	args := c.args().Matrix(c.dk).Matrix(c.dv).Matrix(c.dO).Matrix(c.lse).Ptr(c.delta.At).Matrix(c.q).Matrix(c.k).Matrix(c.v).Ptr(p.uses.at).Ptr(p.keyTiles.at)
	if p.lanes > 0 {
		c.launch(c.sized("attentionplain", "keys_8", "keys_16", "keys_32"), c.grid(p.keyTiles.n, c.a.KVHeads, p.room()), c.plain(args))
		return
	}
	width := c.a.KVHeads * c.a.HeadDim
	partial := c.roundScratch(p.slots * keyRows * width * 8)
	defer c.pool.give(partial)
	c.launch(c.sized("attentiongrad", "keys_64", "keys_128"), c.grid(p.keyTiles.n, c.a.KVHeads, c.tileBytes(3*64)),
		args.Int(c.group()).Float(c.a.Scale).Ptr(partial))
	c.launch(kernel{"attentiongrad", "merge"}, perRow(p.merges.n),
		c.args().Matrix(c.dk).Matrix(c.dv).Ptr(p.merges.at).Ptr(partial).Int(width).Int(c.a.HeadDim))
}

// decode computes the tasks of few queries: ranges of keys, then their merge.
func (c *attention) decode() {
	p := c.plan
	if p.queries.n == 0 {
		return
	}
	outs := 4 * p.slots * c.a.Heads * c.a.HeadDim
	room := c.roundScratch(outs + 8*p.slots*c.a.Heads)
	defer c.pool.give(room)
	scores := room + driver.Ptr(outs)
	c.ranges(c.sized("decode", "wide_64", "wide_128"), &p.wide, 3*64, room, scores)
	c.ranges(c.sized("decode", "narrow_64", "narrow_128"), &p.narrow, 16+4*64, room, scores)
	const warps = threads / 32
	s := shape{grid: [3]int{(p.queries.n*c.a.Heads + warps - 1) / warps, 1, 1}, block: [3]int{threads, 1, 1}}
	c.launch(kernel{"decode", "join"}, s, c.args().Matrix(c.o).Matrix(c.lse).Ptr(room).Ptr(scores).Ptr(p.queries.at).Ptr(p.partOf.at).
		Int(p.queries.n).Int(c.a.Heads).Int(c.a.HeadDim))
}

// ranges computes items of a kernel that has tiles of so many rows.
func (c *attention) ranges(k kernel, items *section, rows int, room, scores driver.Ptr) {
	p := c.plan
	args := c.args().Ptr(room).Ptr(scores).Matrix(c.q).Matrix(c.k).Matrix(c.v).Ptr(p.paths.at).Ptr(p.queries.at).Ptr(items.at)
	c.launch(k, c.grid(items.n, c.a.KVHeads, c.tileBytes(rows)), args.Int(c.group()).Float(c.a.Scale))
}

// plain appends what all plain kernels take last.
func (c *attention) plain(a *driver.Args) *driver.Args {
	return a.Int(c.group()).Float(c.a.Scale).Int(c.a.HeadDim).Int(c.plan.lanes)
}

func (c *attention) group() int { return c.a.Heads / c.a.KVHeads }

// sized is the one of a file's kernels that is for the call's size of heads.
func (c *attention) sized(file string, names ...string) kernel {
	return kernel{file, names[c.plan.size]}
}

func (c *attention) grid(tiles, heads, shared int) shape {
	return shape{grid: [3]int{tiles, heads, 1}, block: [3]int{attentionThreads, 1, 1}, shared: shared}
}

// tileBytes is the shared memory of so many rows of bfloat16, and of numbers beside them.
func (c *attention) tileBytes(rows int) int { return 2*rows*c.a.HeadDim + 4*keyNumbers }

// maxHeadDim is what the plain kernels' shared memory takes on every device.
const maxHeadDim = 256

func checkHeadDim(dim int) error {
	if dim > maxHeadDim {
		return fmt.Errorf("attention: heads of %d elements, the CUDA device takes at most %d: use the CPU for this model", dim, maxHeadDim)
	}
	return nil
}
