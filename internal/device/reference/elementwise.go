package reference

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func (d *reference) Add(y, x device.Mat, a float32) {
	if !d.begin("add", device.CheckSame("add", y, x), y, x) {
		return
	}
	for r := range y.Rows {
		axpy(row(y, r), float64(a), row(x, r))
	}
}

func (d *reference) Scale(x device.Mat, a float32) {
	if !d.begin("scale", device.CheckSame("scale", x), x) {
		return
	}
	for r := range x.Rows {
		for c := range x.Cols {
			row(x, r)[c] *= float64(a)
		}
	}
}

func (d *reference) Zero(x device.Mat) {
	if !d.begin("zero", device.CheckSame("zero", x), x) {
		return
	}
	for r := range x.Rows {
		clear(row(x, r))
	}
}

func (d *reference) Copy(y, x device.Mat) {
	if !d.begin("copy", device.CheckSame("copy", y, x), y, x) {
		return
	}
	for r := range y.Rows {
		copy(row(y, r), row(x, r))
	}
}

// SumSquares is NaN if the device has failed.
func (d *reference) SumSquares(x device.Mat) float64 {
	if !d.begin("sum of squares", device.CheckSame("sum of squares", x), x) {
		return math.NaN()
	}
	sum := 0.0
	for r := range x.Rows {
		sum += dot(row(x, r), row(x, r))
	}
	return sum
}
