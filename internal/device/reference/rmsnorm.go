package reference

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func (d *reference) RMSNorm(y, x, res, w device.Mat, eps float32) {
	if !d.begin("rmsnorm", device.CheckRMSNorm(y, x, res, w, eps), y, x, res, w) {
		return
	}
	for t := range x.Rows {
		if !res.Absent() {
			axpy(row(x, t), 1, row(res, t))
		}
		rmsNorm(row(y, t), row(x, t), row(w, 0), float64(eps))
	}
}

// rmsNorm is y = x / sqrt(mean(x²) + eps) * w; y may be x.
func rmsNorm(y, x, w []float64, eps float64) {
	inv := 1 / math.Sqrt(dot(x, x)/float64(len(x))+eps)
	for i := range x {
		y[i] = x[i] * inv * w[i]
	}
}

func (d *reference) RMSNormGrad(dx, dW, dy, x, w device.Mat, eps float32) {
	if !d.begin("rmsnorm gradient", device.CheckRMSNormGrad(dx, dW, dy, x, w, eps), dx, dW, dy, x, w) {
		return
	}
	for t := range x.Rows {
		rmsNormGrad(optionalRow(dx, t), optionalRow(dW, 0), row(dy, t), row(x, t), row(w, 0), float64(eps))
	}
}

// optionalRow is row r of m, or nil if m is absent.
func optionalRow(m device.Mat, r int) []float64 {
	if m.Absent() {
		return nil
	}
	return row(m, r)
}

// rmsNormGrad: with s = 1/sqrt(mean(x²) + eps), dx += s·w·dy - x·s³/D·Σ(w·dy·x) and dw += dy·x·s; a nil one is skipped.
func rmsNormGrad(dx, dw, dy, x, w []float64, eps float64) {
	width := float64(len(x))
	s := 1 / math.Sqrt(dot(x, x)/width+eps)
	sum := 0.0
	for i := range x {
		sum += w[i] * dy[i] * x[i]
	}
	for i := range dx {
		dx[i] += s*w[i]*dy[i] - x[i]*s*s*s/width*sum
	}
	for i := range dw {
		dw[i] += dy[i] * x[i] * s
	}
}
