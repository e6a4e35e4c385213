package cuda

import (
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// Embed implements device.Ops.
func (d *gpu) Embed(y device.Mat, w device.Weight, ids device.Mem) {
	if !d.ok(device.CheckEmbed(y, w, ids)) {
		return
	}
	own, to := d.weight(w), d.mat(y)
	_, list := d.indices("embed", "id", ids, y.Rows, own.n)
	run := runOf(y.Cols, to, own.mat)
	a := d.args().Matrix(to).Matrix(own.mat).Ptr(list).Int(y.Rows).Int(y.Cols).Int(run)
	d.launch(kernel{"embed", "embed"}, runs(y.Rows, y.Cols, run), a)
}

// EmbedGrad implements device.Ops.
func (d *gpu) EmbedGrad(dW, dy device.Mat, ids device.Mem) {
	if !d.ok(device.CheckEmbedGrad(dW, dy, ids)) || dW.Absent() {
		return
	}
	to, from := d.mat(dW), d.mat(dy)
	list, _ := d.indices("embed gradient", "id", ids, dy.Rows, dW.Rows)
	if d.err != nil || len(list) == 0 {
		return
	}
	groups, packed := meetings(list)
	lists := d.scratch(4 * len(packed))
	d.sendInts(lists, packed)
	word := func(i int) driver.Ptr { return lists + driver.Ptr(4*i) }
	run := runOf(dy.Cols, to, from)
	a := d.args().Matrix(to).Matrix(from).Ptr(lists).Ptr(word(groups)).Ptr(word(2 * groups)).Int(groups).Int(dy.Cols).Int(run)
	d.launch(kernel{"embed", "embed_grad"}, runs(groups, dy.Cols, run), a)
	d.give(driver.Matrix{At: lists})
}
