package cuda

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// wideRun is the number of neighbouring elements that a thread takes where the memory allows it (kernels/run.cuh).
const wideRun = 8

// runOf is the run of a call on matrices of cols columns: wide if every row of each begins at a multiple of 16 bytes.
// Absent matrices allow anything.
func runOf(cols int, ms ...driver.Matrix) int {
	mask := cols % wideRun
	for _, m := range ms {
		mask |= (int(m.At) | m.Stride*m.Type.Size()) % 16
	}
	if mask != 0 {
		return 1
	}
	return wideRun
}

// oneType makes matrices of different types, of which absent ones have none, the device's error: an operation has one type for
// all its activations.
func (d *gpu) oneType(op string, ms ...driver.Matrix) {
	for _, m := range ms[1:] {
		if m.At != 0 && m.Type != ms[0].Type {
			d.ok(fmt.Errorf("%s: one matrix is of kind F32, another holds activations of bfloat16: use one kind for both", op))
		}
	}
}

// runs covers a [rows, cols] matrix with threads, a run of columns each; kernels step over rows beyond the grid.
func runs(rows, cols, run int) shape { return cells(rows, (cols+run-1)/run) }

// The parts of a sum over rows, whose sums are then added in order. How rows are parted follows from their number alone, so
// that a gradient has the same bits on every device.
const (
	mostParts = 128
	leastPart = 32
)

// parted returns the number of parts and of the rows of each but the last.
func parted(rows int) (parts, each int) {
	each = max(leastPart, (rows+mostParts-1)/mostParts)
	return (rows + each - 1) / each, each
}

// addParts adds the sum of parts, rows of cols floats, to the row dw.
func (d *gpu) addParts(dw driver.Matrix, part driver.Ptr, parts, cols int) {
	d.launch(kernel{"rmsnorm", "add_parts"}, cells(1, cols), d.args().Matrix(dw).Ptr(part).Int(parts).Int(cols))
}
