package devicetest

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

const eps = 1e-6

func testRMSNorm(s *suite) {
	for _, c := range []struct {
		t, d int
		std  float64
	}{{1, 1, 1}, {31, 32, 1}, {32, 33, 1}, {33, 31, 1e-4}, {2, 1025, 1e4}, {5, 896, 1}, {0, 32, 1}} {
		for _, strided := range []bool{false, true} {
			s.compare(fmt.Sprintf("t%d-d%d-strided=%v", c.t, c.d, strided), strided, func(sc *scene) {
				w := sc.param("w", 1, c.d, 1)
				x := sc.mat("x", device.Act, input, c.t, c.d, normal(c.std))
				sc.RMSNorm(sc.out("y", c.t, c.d), x, device.Mat{}, w, eps)

				sum := sc.mat("x+res", device.Act, output, c.t, c.d, normal(c.std))
				sc.RMSNorm(sc.out("y of sum", c.t, c.d), sum, sc.mat("res", device.Act, input, c.t, c.d, normal(c.std)), w, eps)

				dy := sc.in("dy", c.t, c.d)
				dx := sc.mat("dx", device.Act, grad, c.t, c.d, normal(1/c.std))
				sc.RMSNormGrad(dx, sc.paramGrad("dW", 1, c.d), dy, x, w, eps)
				sc.RMSNormGrad(sc.mat("dx alone", device.Act, grad, c.t, c.d, normal(1/c.std)), device.Mat{}, dy, x, w, eps)
				sc.RMSNormGrad(device.Mat{}, sc.paramGrad("dW alone", 1, c.d), dy, x, w, eps)
			})
		}
	}
	s.invariant(func(s *suite) {
		for _, d := range []int{33, 896} {
			base := newScene(s.T, s.dev)
			xs, dys, w := base.pool(d, 1), base.pool(d, 1), base.param("w", 1, d, 1)
			s.sameBits(fmt.Sprintf("d%d", d), func(sc *scene, rows []int) []device.Mat {
				n := len(rows)
				x := sc.mat("x", device.Act, input, n, d, xs.take(rows))
				y, z := sc.out("y", n, d), sc.out("z", n, d)
				sc.RMSNorm(y, x, device.Mat{}, w, eps)
				sum := sc.mat("sum", device.Act, output, n, d, xs.take(rows))
				sc.RMSNorm(z, sum, sc.mat("res", device.Act, input, n, d, dys.take(rows)), w, eps)
				dx := sc.mat("dx", device.Act, grad, n, d, xs.take(rows))
				sc.RMSNormGrad(dx, device.Mat{}, sc.mat("dy", device.Act, input, n, d, dys.take(rows)), x, w, eps)
				return []device.Mat{y, sum, z, dx}
			})
			base.free()
		}
	})
}
