package cpu

import (
	"math"
	"testing"
)

// ulps is the distance of got from want in units of the last place of want as a float32.
func ulps(got float32, want float64) float64 {
	f := float32(want)
	next := math.Nextafter32(f, float32(math.Inf(1)))
	unit := float64(next) - float64(f)
	if f < 0 || math.IsInf(float64(next), 0) {
		unit = float64(f) - float64(math.Nextafter32(f, negInf()))
	}
	return math.Abs(float64(got)-want) / unit
}

// everyTier runs f as a subtest with the kernels of each tier.
func everyTier(t *testing.T, f func(t *testing.T, k *kernels)) {
	for _, tier := range testedTiers() {
		t.Run(tier.name, func(t *testing.T) { f(t, tier.make()) })
	}
}

// sweep is n numbers from lo to hi.
func sweep(lo, hi float64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(lo + (hi-lo)*float64(i)/float64(n-1))
	}
	return x
}

// The exponential is within one unit of the last place (and a rounding of it) down to the smallest normal number, and 0
// below.
func TestExpAccuracy(t *testing.T) {
	everyTier(t, func(t *testing.T, k *kernels) {
		worst := 0.0
		for _, x := range [][]float32{sweep(-103, 88.7, 1<<20), sweep(-1, 1, 1<<18), sweep(-1e-4, 1e-4, 1001)} {
			y := make([]float32, len(x))
			k.expSum(y, x, 1, 0)
			for i := range x {
				want := math.Exp(float64(x[i]))
				if x[i] < normal {
					if y[i] != 0 {
						t.Fatalf("exp(%g) is %g, want 0", x[i], y[i])
					}
					continue
				}
				if u := ulps(y[i], want); u > worst {
					worst = u
				}
			}
		}
		if t.Logf("exp: at most %.2f ulp off", worst); worst > 1.01 {
			t.Errorf("exp is %.2f ulp off", worst)
		}
	})
}

// Infinities and NaN come out of the exponential as they have to, in whole vectors and in the tail.
func TestExpSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	everyTier(t, func(t *testing.T, k *kernels) {
		for _, n := range []int{1, 16, 37} {
			for _, c := range []struct{ x, want float64 }{{inf, inf}, {-inf, 0}, {nan, nan}, {0, 1}, {-200, 0}, {200, inf}, {-1e30, 0}} {
				x, y := make([]float32, n), make([]float32, n)
				for i := range x {
					x[i] = float32(c.x)
				}
				k.expSum(y, x, 1, 0)
				for i := range y {
					if got := float64(y[i]); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
						t.Fatalf("exp(%g) is %g in place %d of %d", c.x, got, i, n)
					}
				}
			}
		}
	})
}

// swiglu is within 2.5 units of the last place, its gradient within 4 of the larger of its two terms.
func TestSwiGLUAccuracy(t *testing.T) {
	everyTier(t, func(t *testing.T, k *kernels) {
		g := sweep(-80, 80, 1<<18)
		ones, y, dg, du := make([]float32, len(g)), make([]float32, len(g)), make([]float32, len(g)), make([]float32, len(g))
		for i := range ones {
			ones[i] = 1
		}
		k.swiglu(y, g, ones)
		k.swigluGrad(dg, du, ones, g, ones)
		worst, worstGrad := 0.0, 0.0
		for i, x := range g {
			v := float64(x)
			s := 1 / (1 + math.Exp(-v))
			worst = max(worst, ulps(y[i], v*s), ulps(du[i], v*s))
			terms := s * max(1, math.Abs(v*(1-s)))
			worstGrad = max(worstGrad, math.Abs(float64(dg[i])-s*(1+v*(1-s)))/terms*(1<<23))
		}
		if t.Logf("swiglu: at most %.2f ulp off, its gradient %.2f", worst, worstGrad); worst > 2.5 || worstGrad > 4 {
			t.Errorf("swiglu is %.2f ulp off, its gradient %.2f", worst, worstGrad)
		}
	})
}

// Every elementwise loop of a tier agrees with the portable one on all lengths around its vectors, and writes nothing
// past the end.
func TestElementwiseTails(t *testing.T) {
	spec := portable()
	everyTier(t, func(t *testing.T, k *kernels) {
		for n := 0; n <= 70; n++ {
			for _, c := range elementwiseCalls() {
				got, want := newVectors(n), newVectors(n)
				a, b := c.call(k, got), c.call(spec, want)
				if math.Abs(a-b) > 1e-4*(1+math.Abs(b)) && !(math.IsInf(a, -1) && math.IsInf(b, -1)) {
					t.Errorf("%s of %d elements returns %g, want %g", c.name, n, a, b)
				}
				for v := range got {
					for i := range got[v] {
						if d := math.Abs(float64(got[v][i]) - float64(want[v][i])); d > 1e-5*(1+math.Abs(float64(want[v][i]))) {
							t.Errorf("%s of %d elements: vector %d has %g in place %d, want %g", c.name, n, v, got[v][i], i, want[v][i])
						}
					}
				}
			}
		}
	})
}

// vectors are operands with room after them.
type vectors [6][]float32

func newVectors(n int) vectors {
	var v vectors
	for i := range v {
		v[i] = make([]float32, n+20)
		for j := range v[i] {
			v[i][j] = float32(math.Sin(float64(3*j + 7*i + 1)))
		}
		v[3] = v[3][:len(v[3]):len(v[3])]
	}
	for j := range v[3] {
		v[3][j] *= v[3][j] // the second moments of AdamW
	}
	return v
}

type elementwiseCall struct {
	name string
	call func(k *kernels, v vectors) float64
}

func elementwiseCalls() []elementwiseCall {
	cut := func(v vectors) (a, b, c, d, e, f []float32) {
		n := len(v[0]) - 20
		return v[0][:n], v[1][:n], v[2][:n], v[3][:n], v[4][:n], v[5][:n]
	}
	none := func(f func(k *kernels, a, b, c, d, e, g []float32)) func(*kernels, vectors) float64 {
		return func(k *kernels, v vectors) float64 {
			a, b, c, d, e, g := cut(v)
			f(k, a, b, c, d, e, g)
			return 0
		}
	}
	sum := func(f func(k *kernels, a, b, c []float32) float64) func(*kernels, vectors) float64 {
		return func(k *kernels, v vectors) float64 {
			a, b, c, _, _, _ := cut(v)
			return f(k, a, b, c)
		}
	}
	return []elementwiseCall{
		{"maxOf", sum(func(k *kernels, a, _, _ []float32) float64 { return float64(k.maxOf(a)) })},
		{"dot", sum(func(k *kernels, a, b, _ []float32) float64 { return float64(k.dot(a, b)) })},
		{"dot3", sum(func(k *kernels, a, b, c []float32) float64 { return float64(k.dot3(a, b, c)) })},
		{"sumSquares", sum(func(k *kernels, a, _, _ []float32) float64 { return k.sumSquares(a) })},
		{"expSum", sum(func(k *kernels, a, b, _ []float32) float64 { return float64(k.expSum(a, b, 2, 0.3)) })},
		{"expSums", sum(func(k *kernels, a, _, _ []float32) float64 { s, d := k.expSums(a, 2, 0.3); return float64(s + 100*d) })},
		{"divergence", sum(func(k *kernels, a, b, _ []float32) float64 { return float64(k.divergence(a, b, 2, 0.3, 0.4)) })},
		{"expGrad", none(func(k *kernels, a, _, _, _, _, _ []float32) { k.expGrad(a, 2, 0.3, 0.4, 0.5) })},
		{"expAdd", none(func(k *kernels, a, b, _, _, _, _ []float32) { k.expAdd(a, b, 2, 0.3, -0.4) })},
		{"axpy", none(func(k *kernels, a, b, _, _, _, _ []float32) { k.axpy(a, b, 0.3) })},
		{"scaleTo", none(func(k *kernels, a, b, _, _, _, _ []float32) { k.scaleTo(a, b, 0.3) })},
		{"mulTo", none(func(k *kernels, a, b, c, _, _, _ []float32) { k.mulTo(a, b, c, 0.3) })},
		{"mulAdd", none(func(k *kernels, a, b, c, _, _, _ []float32) { k.mulAdd(a, b, c, 0.3) })},
		{"normGrad", none(func(k *kernels, a, b, c, d, _, _ []float32) { k.normGrad(a, b, c, d, 0.3, 0.4) })},
		{"scoreGrad", none(func(k *kernels, a, b, c, _, _, _ []float32) { k.scoreGrad(a, b, c, 0.3) })},
		{"rotate", none(func(k *kernels, a, b, c, d, e, f []float32) { k.rotate(a, b, c, d, e, f) })},
		{"rotateGrad", none(func(k *kernels, a, b, c, d, e, f []float32) { k.rotateGrad(a, b, c, d, e, f) })},
		{"swiglu", none(func(k *kernels, a, b, c, _, _, _ []float32) { k.swiglu(a, b, c) })},
		{"swigluGrad", none(func(k *kernels, a, b, c, d, e, _ []float32) { k.swigluGrad(a, b, c, d, e) })},
		{"adamw", none(func(k *kernels, a, b, c, d, _, _ []float32) {
			k.adamw(a, b, c, d, &[9]float32{0.9, 0.8, 0.2, 0.95, 0.05, 0.99, 0.1, 1.1, 1e-3})
		})},
	}
}
