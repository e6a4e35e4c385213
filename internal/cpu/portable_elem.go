package cpu

import "math"

// normal is the least number whose exponential is a normal float32.
const normal = -87.33654

// exp32 is the exponential, 0 where it would be below the normal numbers.
func exp32(t float32) float32 {
	if t < normal {
		return 0
	}
	return float32(math.Exp(float64(t)))
}

// maxOf returns the largest element, -Inf for none.
func maxOfGo(x []float32) float32 {
	top := negInf()
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	return top
}

// dot returns the sum of x·y.
func dotGo(x, y []float32) float32 {
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b := x[i:i+4], y[i:i+4]
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
	}
	for ; i < len(x); i++ {
		s0 += x[i] * y[i]
	}
	return s0 + s1 + s2 + s3
}

// dot3 returns the sum of x·y·w.
func dot3Go(x, y, w []float32) float32 {
	var s float32
	for i, v := range x {
		s += v * y[i] * w[i]
	}
	return s
}

// sumSquares returns the sum of x², accumulated in float64.
func sumSquaresGo(x []float32) float64 {
	s := 0.0
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	return s
}

// expSum writes exp(scale·x-shift) and returns its sum; the order in which an element is added depends on its index
// alone, so that zeros at the end change nothing.
func expSumGo(dst, x []float32, scale, shift float32) float32 {
	var s [4]float32
	for i := range dst {
		e := exp32(x[i]*scale - shift)
		dst[i] = e
		s[i&3] += e
	}
	return s[0] + s[1] + s[2] + s[3]
}

// expSums returns the sums of exp(t) and exp(t)·t, t = scale·x-shift.
func expSumsGo(x []float32, scale, shift float32) (sum, dot float32) {
	var s, d [4]float32
	for i, v := range x {
		t := v*scale - shift
		e := exp32(t)
		s[i&3] += e
		d[i&3] += e * t
	}
	return s[0] + s[1] + s[2] + s[3], d[0] + d[1] + d[2] + d[3]
}

// expGrad replaces x by exp(t)·(c0+c1·t), t = scale·x-shift.
func expGradGo(x []float32, scale, shift, c0, c1 float32) {
	for i, v := range x {
		t := v*scale - shift
		x[i] = exp32(t) * (c0 + c1*t)
	}
}

// expAdd adds a·exp(scale·x-shift) to y.
func expAddGo(y, x []float32, scale, shift, a float32) {
	for i := range y {
		y[i] += a * exp32(x[i]*scale-shift)
	}
}

// divergence returns the sum of exp(u)·(u-t), t = scale·x-shift, u = scale·r-rshift.
func divergenceGo(x, r []float32, scale, shift, rshift float32) float32 {
	var s [4]float32
	for i, v := range x {
		t, u := v*scale-shift, r[i]*scale-rshift
		s[i&3] += exp32(u) * (u - t)
	}
	return s[0] + s[1] + s[2] + s[3]
}

// axpy adds a·x to y.
func axpyGo(y, x []float32, a float32) {
	for i := range y {
		y[i] += a * x[i]
	}
}

// scaleTo sets y to a·x.
func scaleToGo(y, x []float32, a float32) {
	for i := range y {
		y[i] = a * x[i]
	}
}

// mulTo sets y to (a·x)·w.
func mulToGo(y, x, w []float32, a float32) {
	for i := range y {
		y[i] = a * x[i] * w[i]
	}
}

// mulAdd adds (a·x)·w to y.
func mulAddGo(y, x, w []float32, a float32) {
	for i := range y {
		y[i] += a * x[i] * w[i]
	}
}

// normGrad adds a·dy·w + b·x to dx.
func normGradGo(dx, dy, w, x []float32, a, b float32) {
	for i := range dx {
		dx[i] += a*dy[i]*w[i] + b*x[i]
	}
}

// scoreGrad sets ds to p·(dp-d).
func scoreGradGo(ds, p, dp []float32, d float32) {
	for i := range ds {
		ds[i] = p[i] * (dp[i] - d)
	}
}

// rotate sets (y1, y2) to (x1·cos - x2·sin, x2·cos + x1·sin).
func rotateGo(y1, y2, x1, x2, cos, sin []float32) {
	for i := range y1 {
		a, b, c, s := x1[i], x2[i], cos[i], sin[i]
		y1[i], y2[i] = a*c-b*s, b*c+a*s
	}
}

// rotateGrad adds (dy1·cos + dy2·sin, dy2·cos - dy1·sin) to (dx1, dx2).
func rotateGradGo(dx1, dx2, dy1, dy2, cos, sin []float32) {
	for i := range dx1 {
		a, b, c, s := dy1[i], dy2[i], cos[i], sin[i]
		dx1[i] += a*c + b*s
		dx2[i] += b*c - a*s
	}
}

// swiglu sets y to g·σ(g)·u.
func swigluGo(y, g, u []float32) {
	for i := range y {
		y[i] = g[i] / (1 + exp32(-g[i])) * u[i]
	}
}

// swigluGrad adds dy·u·σ(g)·(1 + g·(1-σ(g))) to dg and dy·g·σ(g) to du.
func swigluGradGo(dg, du, dy, g, u []float32) {
	for i := range dg {
		d := dy[i]
		e := exp32(min(-g[i], 88)) // finite
		s := 1 / (1 + e)
		dg[i] += d * u[i] * s * (1 + g[i]*(e*s)) // 1-σ = e·σ
		du[i] += d * g[i] * s
	}
}

// adamw updates w, m and v with the constants of adamConsts.
func adamwGo(w, g, m, v []float32, c *[9]float32) {
	for i := range w {
		d := g[i] * c[0]
		m[i] = c[1]*m[i] + c[2]*d
		v[i] = c[3]*v[i] + c[4]*d*d
		root := float32(math.Sqrt(float64(v[i])))
		w[i] = w[i]*c[5] - c[6]*m[i]/(root*c[7]+c[8])
	}
}
