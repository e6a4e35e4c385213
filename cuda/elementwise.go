package cuda

import (
	"encoding/binary"
	"math"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// elementwise launches a kernel of kernels/elementwise.cu: y = f(y, x, a).
func (d *gpu) elementwise(name string, y, x device.Mat, a float32) {
	ym, xm := d.mat(y), d.mat(x)
	d.launch(kernel{"elementwise", name}, cells(y.Rows, y.Cols), d.args().Matrix(ym).Matrix(xm).Int(y.Rows).Int(y.Cols).Float(a))
}

// Add implements device.Ops.
func (d *gpu) Add(y, x device.Mat, a float32) {
	if d.ok(device.CheckSame("add", y, x)) {
		d.elementwise("add", y, x, a)
	}
}

// Scale implements device.Ops.
func (d *gpu) Scale(x device.Mat, a float32) {
	if d.ok(device.CheckSame("scale", x)) {
		d.elementwise("scale", x, x, a)
	}
}

// Zero implements device.Ops.
func (d *gpu) Zero(x device.Mat) {
	if d.ok(device.CheckSame("zero", x)) {
		d.elementwise("zero", x, x, 0)
	}
}

// Copy implements device.Ops.
func (d *gpu) Copy(y, x device.Mat) {
	if d.ok(device.CheckSame("copy", y, x)) {
		d.elementwise("copy", y, x, 0)
	}
}

// squaresBlocks is the number of partial sums of SumSquares, the same for every size and device, so that its order is.
const squaresBlocks = 256

// SumSquares implements device.Ops.
func (d *gpu) SumSquares(x device.Mat) float64 {
	if !d.ok(device.CheckSame("sum of squares", x)) || x.Rows == 0 {
		return 0
	}
	partial := d.scratch(8 * squaresBlocks)
	defer d.pool.give(partial)
	s := shape{grid: [3]int{squaresBlocks, 1, 1}, block: [3]int{threads, 1, 1}}
	d.launch(kernel{"elementwise", "squares"}, s, d.args().Ptr(partial).Matrix(d.mat(x)).Int(x.Rows).Int(x.Cols))
	sum := 0.0
	d.receive(partial, squaresBlocks, 8, func(b []byte, i, j int) {
		for q := range j - i {
			sum += math.Float64frombits(binary.LittleEndian.Uint64(b[8*q:]))
		}
	})
	return sum
}

// scratch is memory of the pool that the caller gives back when what uses it is in the stream.
func (d *gpu) scratch(bytes int) driver.Ptr {
	if d.err != nil {
		return 0
	}
	at, err := d.pool.take(int64(bytes))
	d.ok(err)
	return at
}
