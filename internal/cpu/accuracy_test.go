package cpu

import (
	"math"
	"math/rand/v2"
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

// awkwardRows are the rows that norms, softmax and log-sum-exp are tried on: of all sizes, the lengths of models and around vectors,
// with outliers, equal values, and zeros.
func awkwardRows(t *testing.T) [][]float32 {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var rows [][]float32
	for _, n := range []int{1, 2, 15, 16, 17, 64, 127, 192, 576, 896, 4864, 8192} {
		for _, std := range []float64{1e-3, 1, 30} {
			row := make([]float32, n)
			for i := range row {
				row[i] = float32(std * rng.NormFloat64())
			}
			outlier := append([]float32(nil), row...)
			outlier[n/2] = float32(1000 * std)
			rows = append(rows, row, outlier)
		}
		equal := make([]float32, n)
		for i := range equal {
			equal[i] = -3.3
		}
		rows = append(rows, equal)
	}
	return rows
}

// RMSNorm is within 2.5 units of the last place.
func TestRMSNormAccuracy(t *testing.T) {
	const eps = 1e-6
	everyTier(t, func(t *testing.T, k *kernels) {
		most := 0.0
		for _, x := range awkwardRows(t) {
			n := len(x)
			y, w := make([]float32, n), sweep(-2, 2, n+1)[:n]
			task := rmsNorm{k: k, y: dense(y, 1, n), x: dense(x, 1, n), w: w, eps: eps}
			task.do(0, 0, 1)
			squares := 0.0
			for _, v := range x {
				squares += float64(v) * float64(v)
			}
			inv := 1 / math.Sqrt(squares/float64(n)+float64(float32(eps)))
			for i := range y {
				most = max(most, ulps(y[i], float64(x[i])*float64(w[i])*inv))
			}
		}
		if t.Logf("RMSNorm: at most %.2f ulp off", most); most > 2.5 {
			t.Errorf("RMSNorm is %.2f ulp off", most)
		}
	})
}

// A rotation is within 2 units of the last place of the larger of its two terms, 1.5 with fused multiply-adds.
func TestRotaryAccuracy(t *testing.T) {
	everyTier(t, func(t *testing.T, k *kernels) {
		const n = 1 << 12
		rng := rand.New(rand.NewPCG(3, 4))
		draw := func() []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(rng.NormFloat64() * math.Exp(4*rng.NormFloat64()))
			}
			return x
		}
		x1, x2, y1, y2, d1, d2 := draw(), draw(), draw(), draw(), draw(), draw()
		cos, sin := make([]float32, n), make([]float32, n)
		for i := range cos {
			s, c := math.Sincos(float64(i) * 0.37)
			cos[i], sin[i] = float32(c), float32(s)
		}
		k.rotate(y1, y2, x1, x2, cos, sin)
		k.rotateGrad(d1, d2, x1, x2, cos, sin)
		most := 0.0
		check := func(got, a, c, b, s float32) {
			u, v := float64(a)*float64(c), float64(b)*float64(s)
			larger := float32(max(math.Abs(u), math.Abs(v)))
			unit := float64(math.Nextafter32(larger, float32(math.Inf(1)))) - float64(larger)
			most = max(most, math.Abs(float64(got)-(u+v))/unit)
		}
		for i := range n {
			check(y1[i], x1[i], cos[i], x2[i], -sin[i])
			check(y2[i], x2[i], cos[i], x1[i], sin[i])
			check(d1[i], x1[i], cos[i], x2[i], sin[i])
			check(d2[i], x2[i], cos[i], x1[i], -sin[i])
		}
		if t.Logf("rotary: at most %.2f ulp of the larger term off", most); most > 2 {
			t.Errorf("rotary is %.2f ulp of the larger term off", most)
		}
	})
}

// Attention's softmax: a weight exp(score-top) is within one unit of the last place and what the rounding of score-top
// means, up to a unit for each unit that it is below the top; the sum of the weights is within 3.
func TestSoftmaxAccuracy(t *testing.T) {
	everyTier(t, func(t *testing.T, k *kernels) {
		weight, total := 0.0, 0.0
		for _, x := range awkwardRows(t) {
			for from := 0; from < len(x); from += keyBlock {
				scores := append(make([]float32, 0, scoreStride), x[from:min(len(x), from+keyBlock)]...)
				n := len(scores)
				sees, top, sum, scale := int32(n), negInf(), float32(0), float32(0)
				given := append([]float32(nil), scores...)
				k.softmax(&scores[:scoreStride][0], scoreStride, 1, n, &sees, 0, &top, &sum, &scale)
				exact := 0.0
				for i, s := range given {
					d := float64(s) - float64(top)
					exact += math.Exp(d)
					if float32(d) >= normal {
						weight = max(weight, ulps(scores[i], math.Exp(d))+d)
					}
				}
				total = max(total, ulps(sum, exact))
			}
		}
		if t.Logf("softmax: weights %.2f ulp off, sums %.2f", weight, total); weight > 1.01 || total > 3 {
			t.Errorf("softmax: weights %.2f ulp off, sums %.2f", weight, total)
		}
	})
}

// The log-sum-exp of a row of logits, and a log-probability, are within 1e-6 and a unit of the last place.
func TestLogSumExpAccuracy(t *testing.T) {
	rows := awkwardRows(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, std := range []float64{0.1, 3, 20} {
		row := make([]float32, 151936)
		for i := range row {
			row[i] = float32(std * rng.NormFloat64())
		}
		rows = append(rows, row)
	}
	everyTier(t, func(t *testing.T, k *kernels) {
		most := 0.0
		for _, x := range rows {
			for _, inv := range []float32{1, 1 / float32(0.7)} {
				s := k.softmaxStats(x, inv)
				top, exact := float64(x[argMax(k, x)]), 0.0
				for _, v := range x {
					exact += math.Exp((float64(v) - top) * float64(inv))
				}
				lse := top*float64(inv) + math.Log(exact)
				unit := math.Abs(float64(math.Nextafter32(float32(lse), negInf())) - float64(float32(lse)))
				most = max(most, math.Abs(s.lse()-lse)-unit)
				want := float64(x[len(x)/2])*float64(inv) - lse
				unit = math.Abs(float64(math.Nextafter32(float32(want), negInf())) - float64(float32(want)))
				most = max(most, math.Abs(float64(s.logp(x[len(x)/2]))-want)-unit)
			}
		}
		if t.Logf("log-sum-exp: at most %.2g and an ulp off", most); most > 1e-6 {
			t.Errorf("log-sum-exp is %.2g and an ulp off", most)
		}
	})
}
