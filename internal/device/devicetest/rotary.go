package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// rotary makes the tables of 100 positions, and a norm with gradient if one is wanted.
func (s *scene) rotary(headDim int, norm bool, pos device.Mem) device.Rotary {
	table := func(name string, f func(float64) float64) device.Mat {
		return s.mat(name, device.F32, input, 100, headDim/2, func(_ *rand.Rand, r, c int) float32 {
			return float32(f(float64(r) / math.Pow(1e4, 2*float64(c)/float64(headDim))))
		})
	}
	r := device.Rotary{HeadDim: headDim, Eps: eps, Pos: pos, Cos: table("cos", math.Cos), Sin: table("sin", math.Sin)}
	if norm {
		r.Norm = s.param("norm", 1, headDim, 1)
		r.DNorm = s.paramGrad("dNorm", 1, headDim)
	}
	return r
}

func testRotary(s *suite) {
	for _, c := range []struct{ t, heads, dim int }{
		{1, 1, 2}, {31, 2, 6}, {32, 3, 24}, {33, 14, 64}, {5, 2, 62}, {3, 1, 128}, {1, 14, 64}, {0, 2, 8},
	} {
		for _, norm := range []bool{false, true} {
			for _, strided := range []bool{false, true} {
				s.compare(fmt.Sprintf("t%d-h%d-d%d-norm=%v-strided=%v", c.t, c.heads, c.dim, norm, strided), strided, func(sc *scene) {
					width := c.heads * c.dim
					r := sc.rotary(c.dim, norm, sc.randomInts(c.t, 100))
					x, dy := sc.in("x", c.t, width), sc.in("dy", c.t, width)
					sc.Rotary(sc.out("y", c.t, width), x, r)
					sc.RotaryGrad(sc.grad("dx", c.t, width), dy, x, r)
					r.DNorm = device.Mat{}
					sc.RotaryGrad(sc.grad("dx alone", c.t, width), dy, x, r)
					if !norm {
						inPlace := sc.mat("x in place", device.Act, output, c.t, width, normal(1))
						sc.Rotary(inPlace, inPlace, r)
						sc.RotaryGrad(sc.grad("dx without x", c.t, width), dy, device.Mat{}, r)
						dInPlace := sc.grad("dx in place", c.t, width)
						sc.RotaryGrad(dInPlace, dInPlace, device.Mat{}, r)
					}
				})
			}
		}
	}
	s.invariant(testRotaryInvariant)
}

func testRotaryInvariant(s *suite) {
	const heads, dim = 3, 24
	base := newScene(s.T, s.dev)
	xs, dys := base.pool(heads*dim, 1), base.pool(heads*dim, 1)
	r := base.rotary(dim, true, nil)
	r.DNorm = device.Mat{}
	for _, norm := range []bool{false, true} {
		s.sameBits(fmt.Sprintf("norm=%v", norm), func(sc *scene, rows []int) []device.Mat {
			r := r
			r.Pos = sc.ints(takeInts(upTo(poolSize), rows))
			if !norm {
				r.Norm = device.Mat{}
			}
			x := sc.mat("x", device.Act, input, len(rows), heads*dim, xs.take(rows))
			y := sc.out("y", len(rows), heads*dim)
			sc.Rotary(y, x, r)
			dx := sc.mat("dx", device.Act, grad, len(rows), heads*dim, xs.take(rows))
			sc.RotaryGrad(dx, sc.mat("dy", device.Act, input, len(rows), heads*dim, dys.take(rows)), x, r)
			return []device.Mat{y, dx}
		})
	}
	base.free()
}
