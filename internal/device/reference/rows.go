package reference

import "github.com/rubicon-rl/rubicon/internal/device"

func (d *reference) GatherRows(y, x device.Mat, rows device.Mem) {
	if !d.begin("gather rows", device.CheckGatherRows(y, x, rows), y, x, rows) {
		return
	}
	at, ok := d.indices("gather rows", "row", rows, y.Rows, x.Rows)
	if !ok {
		return
	}
	for i := range y.Rows {
		copy(row(y, i), row(x, int(at[i])))
	}
}

func (d *reference) ScatterRows(y, x device.Mat, rows device.Mem) {
	d.scatter(y, x, rows, func(y, x []float64) { copy(y, x) })
}

func (d *reference) ScatterAddRows(y, x device.Mat, rows device.Mem) {
	d.scatter(y, x, rows, func(y, x []float64) { axpy(y, 1, x) })
}

func (d *reference) scatter(y, x device.Mat, rows device.Mem, put func(y, x []float64)) {
	if !d.begin("scatter rows", device.CheckScatterRows(y, x, rows), y, x, rows) {
		return
	}
	at, ok := d.indices("scatter rows", "row", rows, x.Rows, y.Rows)
	if !ok {
		return
	}
	for i := range x.Rows {
		put(row(y, int(at[i])), row(x, i))
	}
}

func (d *reference) MeanRows(y, x device.Mat, spans []device.Span) {
	if !d.begin("mean rows", device.CheckMeanRows(y, x, spans), y, x) {
		return
	}
	for i, s := range spans {
		mean := row(y, i)
		clear(mean)
		for r := s.Row; r < s.Row+s.N; r++ {
			axpy(mean, 1, row(x, r))
		}
		for c := range mean {
			mean[c] /= float64(s.N)
		}
	}
}

func (d *reference) MeanRowsGrad(dx, dy device.Mat, spans []device.Span) {
	if !d.begin("mean rows gradient", device.CheckMeanRowsGrad(dx, dy, spans), dx, dy) {
		return
	}
	for i, s := range spans {
		for r := s.Row; r < s.Row+s.N; r++ {
			axpy(row(dx, r), 1/float64(s.N), row(dy, i))
		}
	}
}
