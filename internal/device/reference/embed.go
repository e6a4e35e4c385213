package reference

import "github.com/rubicon-rl/rubicon/internal/device"

func (d *reference) Embed(y device.Mat, w device.Weight, ids device.Mem) {
	if !d.begin("embed", device.CheckEmbed(y, w, ids), y, w, ids) {
		return
	}
	own := w.(*weight)
	id, ok := d.indices("embed", "id", ids, y.Rows, own.n)
	if !ok {
		return
	}
	for t := range y.Rows {
		copy(row(y, t), own.row(int(id[t])))
	}
}

func (d *reference) EmbedGrad(dW, dy device.Mat, ids device.Mem) {
	if !d.begin("embed gradient", device.CheckEmbedGrad(dW, dy, ids), dW, dy, ids) || dW.Absent() {
		return
	}
	id, ok := d.indices("embed gradient", "id", ids, dy.Rows, dW.Rows)
	if !ok {
		return
	}
	for t := range dy.Rows {
		axpy(row(dW, int(id[t])), 1, row(dy, t))
	}
}
