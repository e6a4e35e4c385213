//go:build unix

package cpu

import (
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func BenchmarkZ(b *testing.B) {
	d := onDevice(b, Options{Threads: 1})
	m, _ := d.Alloc(device.F32, 32<<20)
	x := d.floats(m)
	for i := range x {
		x[i] = 1
	}
	b.Run("dot", func(b *testing.B) {
		measure(b, 4*float64(len(x)), func() { d.k.dot(x, x) })
	})
	w := d.weight(device.BFloat16, 49152, 576)
	for _, rows := range []int{1, 2, 4, 8, 14} {
		h, y := d.mat(rows, 576), d.mat(rows, 49152)
		b.Run("logits"+string(rune('a'+rows)), func(b *testing.B) {
			measure(b, 2*49152*576, func() { d.Logits(y, h, w) })
		})
	}
}
