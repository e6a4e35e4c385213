package cuda

import "github.com/rubicon-rl/rubicon/internal/device"

// A block has a row of logits (kernels/softmax.cuh). Few threads are enough for a small vocabulary; Head and Sample use
// the same number, which their sums' order depends on.
const (
	fewThreads  = 128
	manyThreads = 1024
	perThread   = 32 // logits, before there are more threads
)

// perLogits has a block for each of so many rows of logits.
func perLogits(rows, vocabulary int) shape {
	n := fewThreads
	for n < manyThreads && n*perThread < vocabulary {
		n *= 2
	}
	return shape{grid: [3]int{rows, 1, 1}, block: [3]int{n, 1, 1}}
}

// Logits implements device.Ops.
func (d *gpu) Logits(y, h device.Mat, w device.Weight) {
	if d.ok(device.CheckLogits(y, h, w)) {
		d.forward(d.mat(y), d.mat(h), w, h.Rows)
	}
}
