package cpu

import (
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// rowsTask is an operation that copies, adds or scales whole rows. Its items are rows, or runs of columns where
// several rows of x meet in one of y.
type rowsTask struct {
	d     *cpu
	op    func(t *rowsTask, i, j int)
	y, x  mat
	a     float32
	at    []int32
	spans []device.Span
	w     *weight
}

// rowsOp runs op over items of a task, in runs of chunk.
func (d *cpu) rowsOp(t rowsTask, items, chunk int) {
	p := &d.ops.rows
	*p = t
	p.d = d
	d.each(items, chunk, p)
	*p = rowsTask{}
}

func (t *rowsTask) do(_, i, j int) { t.op(t, i, j) }

func (d *cpu) Add(y, x device.Mat, a float32) {
	if d.ok(device.CheckSame("add", y, x)) {
		d.rowsOp(rowsTask{op: addRows, y: d.mat(y), x: d.mat(x), a: a}, y.Rows, rowChunk(y.Cols))
	}
}

func addRows(t *rowsTask, i, j int) {
	for r := i; r < j; r++ {
		t.d.k.axpy(t.y.row(r), t.x.row(r), t.a)
	}
}

func (d *cpu) Scale(x device.Mat, a float32) {
	if d.ok(device.CheckSame("scale", x)) {
		d.rowsOp(rowsTask{op: scaleRows, x: d.mat(x), a: a}, x.Rows, rowChunk(x.Cols))
	}
}

func scaleRows(t *rowsTask, i, j int) {
	for r := i; r < j; r++ {
		t.d.k.scaleTo(t.x.row(r), t.x.row(r), t.a)
	}
}

// roundRows rounds the elements [i, j) of one row to bfloat16.
func roundRows(t *rowsTask, i, j int) {
	for q, x := range t.x.f[i:j] {
		t.x.f[i+q] = half.FromBF16(half.ToBF16(x))
	}
}

func (d *cpu) Zero(x device.Mat) {
	if d.ok(device.CheckSame("zero", x)) {
		d.rowsOp(rowsTask{op: zeroRows, x: d.mat(x)}, x.Rows, 2*rowChunk(x.Cols))
	}
}

func zeroRows(t *rowsTask, i, j int) {
	for r := i; r < j; r++ {
		clear(t.x.row(r))
	}
}

func (d *cpu) Copy(y, x device.Mat) {
	if d.ok(device.CheckSame("copy", y, x)) {
		d.rowsOp(rowsTask{op: copyAll, y: d.mat(y), x: d.mat(x)}, y.Rows, 2*rowChunk(x.Cols))
	}
}

func copyAll(t *rowsTask, i, j int) {
	for r := i; r < j; r++ {
		copy(t.y.row(r), t.x.row(r))
	}
}

func (d *cpu) GatherRows(y, x device.Mat, rows device.Mem) {
	if !d.ok(device.CheckGatherRows(y, x, rows)) {
		return
	}
	at := d.indices("gather rows", "row", rows, y.Rows, x.Rows)
	d.rowsOp(rowsTask{op: gatherRows, y: d.mat(y), x: d.mat(x), at: at}, y.Rows, 2*rowChunk(x.Cols))
}

func gatherRows(t *rowsTask, i, j int) {
	for r := i; r < j; r++ {
		copy(t.y.row(r), t.x.row(int(t.at[r])))
	}
}

func (d *cpu) ScatterRows(y, x device.Mat, rows device.Mem) {
	d.scatter(y, x, rows, 0)
}

func (d *cpu) ScatterAddRows(y, x device.Mat, rows device.Mem) {
	d.scatter(y, x, rows, 1)
}

// scatter sets (add 0) or adds (add 1) rows of x into y.
func (d *cpu) scatter(y, x device.Mat, rows device.Mem, add float32) {
	if !d.ok(device.CheckScatterRows(y, x, rows)) {
		return
	}
	at := d.indices("scatter rows", "row", rows, x.Rows, y.Rows)
	d.rowsOp(rowsTask{op: scatterColumns, y: d.mat(y), x: d.mat(x), at: at, a: add}, x.Cols, columnChunk(x.Rows))
}

func scatterColumns(t *rowsTask, i, j int) {
	for r, to := range t.at {
		y, x := t.y.row(int(to))[i:j], t.x.row(r)[i:j]
		if t.a == 0 {
			copy(y, x)
		} else {
			t.d.k.axpy(y, x, t.a)
		}
	}
}

func (d *cpu) MeanRows(y, x device.Mat, spans []device.Span) {
	if d.ok(device.CheckMeanRows(y, x, spans)) {
		d.rowsOp(rowsTask{op: meanRows, y: d.mat(y), x: d.mat(x), spans: spans}, len(spans), 1)
	}
}

func meanRows(t *rowsTask, i, j int) {
	for q := i; q < j; q++ {
		y, s := t.y.row(q), t.spans[q]
		clear(y)
		for r := s.Row; r < s.Row+s.N; r++ {
			t.d.k.axpy(y, t.x.row(r), 1)
		}
		t.d.k.scaleTo(y, y, 1/float32(s.N))
	}
}

func (d *cpu) MeanRowsGrad(dx, dy device.Mat, spans []device.Span) {
	if d.ok(device.CheckMeanRowsGrad(dx, dy, spans)) {
		d.rowsOp(rowsTask{op: meanColumnsGrad, y: d.mat(dx), x: d.mat(dy), spans: spans}, dx.Cols, columnChunk(dx.Rows))
	}
}

func meanColumnsGrad(t *rowsTask, i, j int) {
	for q, s := range t.spans {
		for r := s.Row; r < s.Row+s.N; r++ {
			t.d.k.axpy(t.y.row(r)[i:j], t.x.row(q)[i:j], 1/float32(s.N))
		}
	}
}

func (d *cpu) Embed(y device.Mat, w device.Weight, ids device.Mem) {
	if !d.ok(device.CheckEmbed(y, w, ids)) {
		return
	}
	own := d.weight(w)
	if own == nil {
		return
	}
	at := d.indices("embed", "id", ids, y.Rows, own.n)
	d.rowsOp(rowsTask{op: embedRows, y: d.mat(y), w: own, at: at}, y.Rows, max(1, rowChunk(y.Cols)/4))
}

func embedRows(t *rowsTask, i, j int) {
	for r := i; r < j; r++ {
		t.w.readRow(t.y.row(r), int(t.at[r]))
	}
}

func (d *cpu) EmbedGrad(dW, dy device.Mat, ids device.Mem) {
	if !d.ok(device.CheckEmbedGrad(dW, dy, ids)) || dW.Absent() {
		return
	}
	at := d.indices("embed gradient", "id", ids, dy.Rows, dW.Rows)
	d.rowsOp(rowsTask{op: scatterColumns, y: d.mat(dW), x: d.mat(dy), at: at, a: 1}, dy.Cols, columnChunk(dy.Rows))
}
