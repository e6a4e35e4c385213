package devicetest

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func testEmbed(s *suite) {
	for _, c := range []struct{ t, v, d int }{{1, 1, 1}, {31, 33, 32}, {32, 1025, 31}, {33, 31, 1025}, {65, 300, 896}} {
		for _, strided := range []bool{false, true} {
			for _, dtype := range []device.DType{device.Float32, device.BFloat16, device.Int8, device.Int4} {
				s.compare(fmt.Sprintf("t%d-v%d-d%d-dtype%d-strided=%v", c.t, c.v, c.d, dtype, strided), strided, func(sc *scene) {
					ids := sc.randomInts(c.t, c.v)
					sc.Embed(sc.out("y", c.t, c.d), sc.weight(dtype, c.v, c.d, 1), ids)
					// Repeated ids add up.
					sc.EmbedGrad(sc.paramGrad("dW", c.v, c.d), sc.in("dy", c.t, c.d), ids)
					sc.EmbedGrad(device.Mat{}, sc.in("unused dy", c.t, c.d), ids)
				})
			}
		}
	}
	s.compare("no-rows", false, func(sc *scene) {
		sc.Embed(sc.out("y", 0, 8), sc.weight(device.Float32, 4, 8, 1), sc.ints(nil))
	})
}
