//go:build unix

package cpu

import (
	"fmt"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// BenchmarkStoredAs runs x·Wᵀ, and at the size of a training batch dy·W too, through all projections of SmolLM2-135M one
// after the other, so that weights come from memory as they do in a model.
func BenchmarkStoredAs(b *testing.B) {
	shapes := [][2]int{{960, 576}, {576, 576}, {3072, 576}, {576, 1536}}
	for _, dtype := range []device.DType{device.BFloat16, device.Int8, device.Int4} {
		for _, rows := range []int{1, 8, 64, 512} {
			b.Run(fmt.Sprintf("%v/rows=%d", dtype, rows), func(b *testing.B) {
				threadCounts(b, func(b *testing.B, d on) {
					var layers [][]device.Linear
					var ins, outs []device.Mat
					weights := 0.0
					for range 30 {
						var l []device.Linear
						for _, s := range shapes {
							l = append(l, device.Linear{W: d.weight(dtype, s[0], s[1])})
							weights += float64(s[0] * s[1])
						}
						layers = append(layers, l)
					}
					for _, s := range shapes {
						ins, outs = append(ins, d.mat(rows, s[1])), append(outs, d.mat(rows, s[0]))
					}
					passes := 1.0
					if rows == 512 {
						passes = 2
					}
					measure(b, 2*passes*weights*float64(rows), func() {
						for _, l := range layers {
							for i := range l {
								d.Linear(outs[i], ins[i], l[i])
								if rows == 512 {
									d.LinearGrad(ins[i], outs[i], ins[i], l[i])
								}
							}
						}
					})
				})
			})
		}
	}
}
