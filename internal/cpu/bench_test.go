//go:build unix

package cpu

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func threadCounts(b *testing.B, f func(b *testing.B, d on)) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", n), func(b *testing.B) { f(b, onDevice(b, Options{Threads: n})) })
	}
}

// measure runs f and reports arithmetic per second, and per second of processor time, which other programs on the
// machine disturb less.
func measure(b *testing.B, flops float64, f func()) {
	start := cpuSeconds(b)
	for b.Loop() {
		f()
	}
	work := flops * float64(b.N) / 1e9
	b.ReportMetric(work/b.Elapsed().Seconds(), "GFLOP/s")
	b.ReportMetric(work/(cpuSeconds(b)-start), "GFLOP/cpu-s")
}

func cpuSeconds(b *testing.B) float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return float64(r.Utime.Sec+r.Stime.Sec) + float64(r.Utime.Usec+r.Stime.Usec)/1e6
}

// BenchmarkProduct measures x·Wᵀ and dy·W.
func BenchmarkProduct(b *testing.B) {
	for _, s := range []struct{ t, n, k int }{
		{1, 1536, 576}, {8, 1536, 576}, {64, 512, 192}, {600, 512, 192}, {600, 192, 512},
		{512, 1536, 576}, {512, 576, 1536}, {512, 4864, 896},
	} {
		for _, dtype := range []device.DType{device.Float32, device.BFloat16} {
			b.Run(fmt.Sprintf("%dx%dx%d-dtype%d", s.t, s.n, s.k, dtype), func(b *testing.B) {
				threadCounts(b, func(b *testing.B, x on) {
					in, out, w := x.mat(s.t, s.k), x.mat(s.t, s.n), x.weight(dtype, s.n, s.k)
					flops := 2 * float64(s.t) * float64(s.n) * float64(s.k)
					b.Run("forward", func(b *testing.B) {
						measure(b, flops, func() { x.Linear(out, in, device.Linear{W: w}) })
					})
					b.Run("input-gradient", func(b *testing.B) {
						measure(b, flops, func() { x.LinearGrad(in, out, in, device.Linear{W: w}) })
					})
				})
			})
		}
	}
}
