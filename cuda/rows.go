package cuda

import (
	"cmp"
	"slices"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// rows launches a kernel of kernels/rows.cu over a [rows, cols] matrix: y = f(y, x) by the integers at what.
func (d *gpu) rows(name string, y, x device.Mat, rows int, what ...driver.Ptr) {
	ym, xm := d.mat(y), d.mat(x)
	if name != "mean" {
		d.oneType("gather or scatter rows", ym, xm)
	}
	run := runOf(y.Cols, ym, xm)
	a := d.args().Matrix(ym).Matrix(xm)
	for _, p := range what {
		a.Ptr(p)
	}
	d.launch(kernel{"rows", name}, runs(rows, y.Cols, run), a.Int(rows).Int(y.Cols).Int(run))
}

// GatherRows implements device.Ops.
func (d *gpu) GatherRows(y, x device.Mat, rows device.Mem) {
	if d.ok(device.CheckGatherRows(y, x, rows)) {
		_, at := d.indices("gather rows", "row", rows, y.Rows, x.Rows)
		d.rows("gather", y, x, y.Rows, at)
	}
}

// ScatterRows implements device.Ops. What a row of y gets that several rows of x go to is undefined.
func (d *gpu) ScatterRows(y, x device.Mat, rows device.Mem) {
	if d.ok(device.CheckScatterRows(y, x, rows)) {
		_, at := d.indices("scatter rows", "row", rows, x.Rows, y.Rows)
		d.rows("scatter", y, x, x.Rows, at)
	}
}

// ScatterAddRows implements device.Ops.
func (d *gpu) ScatterAddRows(y, x device.Mat, rows device.Mem) {
	if !d.ok(device.CheckScatterRows(y, x, rows)) {
		return
	}
	at, _ := d.indices("scatter rows", "row", rows, x.Rows, y.Rows)
	if len(at) == 0 {
		return
	}
	groups, packed := meetings(at)
	lists := d.scratch(4 * len(packed))
	defer d.pool.give(lists)
	d.sendInts(lists, packed)
	word := func(i int) driver.Ptr { return lists + driver.Ptr(4*i) }
	d.rows("scatter_add", y, x, groups, lists, word(groups), word(2*groups))
}

// meetings groups the indices of at by their value: the values of the groups, ascending, then where each group's list of
// indices ends, then the lists, ascending.
func meetings(at []int32) (groups int, packed []int32) {
	order := make([]int32, len(at))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int { return cmp.Or(cmp.Compare(at[i], at[j]), cmp.Compare(i, j)) })
	to, ends := make([]int32, 0, 3*len(at)), make([]int32, 0, len(at))
	for i, from := range order {
		if i == len(order)-1 || at[from] != at[order[i+1]] {
			to, ends = append(to, at[from]), append(ends, int32(i+1))
		}
	}
	return len(to), append(append(to, ends...), order...)
}

// MeanRows implements device.Ops.
func (d *gpu) MeanRows(y, x device.Mat, spans []device.Span) {
	if d.ok(device.CheckMeanRows(y, x, spans)) && len(spans) > 0 {
		at := d.sendSpans(spans)
		defer d.pool.give(at)
		d.rows("mean", y, x, len(spans), at)
	}
}

// MeanRowsGrad implements device.Ops.
func (d *gpu) MeanRowsGrad(dx, dy device.Mat, spans []device.Span) {
	if d.ok(device.CheckMeanRowsGrad(dx, dy, spans)) && len(spans) > 0 {
		at := d.sendSpans(spans)
		defer d.pool.give(at)
		dxm, dym := d.mat(dx), d.mat(dy)
		run := runOf(dx.Cols, dxm, dym)
		a := d.args().Matrix(dxm).Matrix(dym).Ptr(at).Int(len(spans)).Int(dx.Rows).Int(dx.Cols).Int(run)
		d.launch(kernel{"rows", "mean_grad"}, runs(dx.Rows, dx.Cols, run), a)
	}
}

// sendSpans puts spans in scratch memory, as pairs of first row and number of rows.
func (d *gpu) sendSpans(spans []device.Span) driver.Ptr {
	pairs := make([]int32, 0, 2*len(spans))
	for _, s := range spans {
		pairs = append(pairs, int32(s.Row), int32(s.N))
	}
	at := d.scratch(4 * len(pairs))
	d.sendInts(at, pairs)
	return at
}
