package devicetest

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func testSwiGLU(s *suite) {
	for _, c := range []struct {
		t, f int
		std  float64
	}{{1, 1, 1}, {31, 32, 1}, {32, 33, 1}, {33, 31, 1}, {3, 1025, 1}, {5, 4864, 1}, {3, 64, 100}, {3, 64, 1e4}, {0, 32, 1}} {
		for _, strided := range []bool{false, true} {
			s.compare(fmt.Sprintf("t%d-f%d-std%g-strided=%v", c.t, c.f, c.std, strided), strided, func(sc *scene) {
				gu := sc.mat("gu", device.Act, input, c.t, 2*c.f, normal(c.std))
				sc.SwiGLU(sc.out("y", c.t, c.f), gu)
				dy := sc.in("dy", c.t, c.f)
				sc.SwiGLUGrad(sc.grad("dgu", c.t, 2*c.f), dy, gu)
				sc.SwiGLUGrad(device.Mat{}, dy, gu)
			})
		}
	}
	s.invariant(func(s *suite) {
		const f = 75
		base := newScene(s.T, s.dev)
		gus, dys := base.pool(2*f, 1), base.pool(f, 1)
		s.sameBits("f75", func(sc *scene, rows []int) []device.Mat {
			gu := sc.mat("gu", device.Act, input, len(rows), 2*f, gus.take(rows))
			y := sc.out("y", len(rows), f)
			sc.SwiGLU(y, gu)
			dgu := sc.mat("dgu", device.Act, grad, len(rows), 2*f, gus.take(rows))
			sc.SwiGLUGrad(dgu, sc.mat("dy", device.Act, input, len(rows), f, dys.take(rows)), gu)
			return []device.Mat{y, dgu}
		})
	})
}
