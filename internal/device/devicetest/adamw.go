package devicetest

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

func testAdamW(s *suite) {
	for i, h := range []device.AdamW{
		{LR: 1e-2, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Step: 1, GradScale: 1},
		{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Step: 1, GradScale: 0.37},
		{LR: 0.1, Beta1: 0, Beta2: 0.99, Eps: 1e-3, WeightDecay: 0.01, Step: 7, GradScale: 1},
		{LR: 0, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.1, Step: 100000, GradScale: 1},
	} {
		for _, shape := range awkward {
			s.compare(fmt.Sprintf("constants%d-%dx%d", i, shape[0], shape[1]), i%2 == 1, func(sc *scene) {
				h, rows, cols := h, shape[0], shape[1]
				mat := func(name string, as role, std float64) device.Mat {
					return sc.mat(name, device.F32, as, rows, cols, normal(std))
				}
				// The second moment starts at 0, as in training; later steps have it positive.
				w, m, v := mat("w", state, 1), mat("m", state, 0), mat("v", state, 0)
				for range 3 {
					sc.AdamW(w, mat("g", input, 0.1), m, v, h)
					h.Step++
				}
			})
		}
	}
}
