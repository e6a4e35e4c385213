package devicetest

import (
	"fmt"
	"math/rand/v2"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func testRows(s *suite) {
	for _, c := range []struct{ n, m, d int }{{1, 1, 1}, {31, 33, 32}, {32, 40, 31}, {33, 40, 1025}, {3, 5, 896}, {0, 3, 4}} {
		for _, strided := range []bool{false, true} {
			for _, k := range []device.Kind{device.F32, device.Act} {
				s.compare(fmt.Sprintf("n%d-of%d-d%d-kind%d-strided=%v", c.n, c.m, c.d, k, strided), strided, func(sc *scene) {
					large := sc.mat("x", k, input, c.m, c.d, normal(1))
					small := sc.mat("rows of x", k, input, c.n, c.d, normal(1))
					repeated := sc.randomInts(c.n, c.m)
					sc.GatherRows(sc.mat("gathered", k, output, c.n, c.d, nan), large, repeated)
					sc.ScatterAddRows(sc.mat("scattered and added", k, output, c.m, c.d, normal(1)), small, repeated)
					distinct := upTo(c.m)
					for i := range c.n {
						distinct[i] = int32((i*7 + 2) % c.m) // 7 shares no factor with any m
					}
					sc.ScatterRows(sc.mat("scattered", k, output, c.m, c.d, normal(1)), small, sc.ints(distinct[:c.n]))
				})
			}
			s.compare(fmt.Sprintf("mean-n%d-of%d-d%d-strided=%v", c.n, c.m, c.d, strided), strided, func(sc *scene) {
				spans := []device.Span{{Row: 0, N: 1}, {Row: 0, N: c.m}, {Row: c.m / 2, N: c.m - c.m/2}}
				sc.MeanRows(sc.outF32("mean", 3, c.d), sc.in("x", c.m, c.d), spans)
				sc.MeanRowsGrad(sc.grad("dx", c.m, c.d), sc.mat("dmean", device.F32, input, 3, c.d, normal(1)), spans)
			})
		}
	}
	s.invariant(func(s *suite) {
		base := newScene(s.T, s.dev)
		xs := base.pool(33, 1)
		s.sameBits("mean", func(sc *scene, rows []int) []device.Mat {
			x := sc.mat("x", device.Act, input, poolSize, 33, func(_ *rand.Rand, r, c int) float32 { return xs.values[r*33+c] })
			y := sc.outF32("y", len(rows), 33)
			spans := make([]device.Span, len(rows))
			for i, r := range rows { // every row of the pool stands for the span that ends with it
				spans[i] = device.Span{Row: r / 3, N: r - r/3 + 1}
			}
			sc.MeanRows(y, x, spans)
			return []device.Mat{y}
		})
	})
}
