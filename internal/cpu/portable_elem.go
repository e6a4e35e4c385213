package cpu

import (
	"math"
	"unsafe"
)

// normal is the least number whose exponential is a normal float32.
const normal = -87.33654

// exp32 is the exponential, 0 where it would be below the normal numbers.
func exp32(t float32) float32 {
	if t < normal {
		return 0
	}
	return float32(math.Exp(float64(t)))
}

// tempered is scale·x - shift, rounded once as a fused multiply-add is.
func tempered(x, scale, shift float32) float32 {
	return float32(float64(x)*float64(scale) - float64(shift))
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
		e := exp32(tempered(x[i], scale, shift))
		dst[i] = e
		s[i&3] += e
	}
	return s[0] + s[1] + s[2] + s[3]
}

// expSums returns the sums of exp(t) and exp(t)·t, t = scale·x-shift.
func expSumsGo(x []float32, scale, shift float32) (sum, dot float32) {
	var s, d [4]float32
	for i, v := range x {
		t := tempered(v, scale, shift)
		e := exp32(t)
		s[i&3] += e
		d[i&3] += e * t
	}
	return s[0] + s[1] + s[2] + s[3], d[0] + d[1] + d[2] + d[3]
}

// expGrad replaces x by exp(t)·(c0+c1·t), t = scale·x-shift.
func expGradGo(x []float32, scale, shift, c0, c1 float32) {
	for i, v := range x {
		t := tempered(v, scale, shift)
		x[i] = exp32(t) * (c0 + c1*t)
	}
}

// expAdd adds a·exp(scale·x-shift) to y.
func expAddGo(y, x []float32, scale, shift, a float32) {
	for i := range y {
		y[i] += a * exp32(tempered(x[i], scale, shift))
	}
}

// divergence returns the sum of exp(u)·(u-t), t = scale·x-shift, u = scale·r-rshift.
func divergenceGo(x, r []float32, scale, shift, rshift float32) float32 {
	var s [4]float32
	for i, v := range x {
		t, u := tempered(v, scale, shift), tempered(r[i], scale, rshift)
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

// softmax raises top[r] to the maximum of the elements of row r that count, multiplies sum[r] by scale[r] = exp of minus
// that rise, replaces the elements by exp(x-top[r]), the others by 0, and adds them to sum[r].
func softmaxGo(x *float32, stride, rows, width int, sees *int32, from int, top, sum, scale *float32) {
	xs, see := unsafe.Slice(x, (rows-1)*stride+width), unsafe.Slice(sees, rows)
	tops, sums, scales := unsafe.Slice(top, rows), unsafe.Slice(sum, rows), unsafe.Slice(scale, rows)
	for r := range rows {
		row := xs[r*stride:][:width]
		n := min(width, max(0, int(see[r])-from))
		last := tops[r]
		tops[r] = max(last, maxOfGo(row[:n]))
		scales[r] = exp32(last - tops[r])
		sums[r] = sums[r]*scales[r] + expSumGo(row[:n], row[:n], 1, tops[r])
		clear(row[n:])
	}
}

// scoreGrad replaces the elements of p that count by exp(p-lse[r]), those of ds by p·(ds-delta[r]), the others by 0.
func scoreGradGo(ds, p *float32, stride, rows, width int, sees *int32, from int, lse, delta *float32) {
	dss, ps, see := unsafe.Slice(ds, (rows-1)*stride+width), unsafe.Slice(p, (rows-1)*stride+width), unsafe.Slice(sees, rows)
	for r := range rows {
		d, p := dss[r*stride:][:width], ps[r*stride:][:width]
		n := min(width, max(0, int(see[r])-from))
		shift, sum := unsafe.Slice(lse, rows)[r], unsafe.Slice(delta, rows)[r]
		for i := range n {
			p[i] = exp32(p[i] - shift)
			d[i] = p[i] * (d[i] - sum)
		}
		clear(p[n:])
		clear(d[n:])
	}
}

// rotate sets (y1, y2) to (x1·cos - x2·sin, x2·cos + x1·sin).
func rotateGo(y1, y2, x1, x2, cos, sin []float32) {
	for i := range y1 {
		a, b, c, s := x1[i], x2[i], cos[i], sin[i]
		y1[i], y2[i] = a*c-b*s, b*c+a*s
	}
}

// rotateGrad sets (dx1, dx2) to (dy1·cos + dy2·sin, dy2·cos - dy1·sin).
func rotateGradGo(dx1, dx2, dy1, dy2, cos, sin []float32) {
	for i := range dx1 {
		a, b, c, s := dy1[i], dy2[i], cos[i], sin[i]
		dx1[i], dx2[i] = a*c+b*s, b*c-a*s
	}
}

// swiglu sets y to g·σ(g)·u.
func swigluGo(y, g, u []float32) {
	for i := range y {
		y[i] = g[i] / (1 + exp32(-g[i])) * u[i]
	}
}

// swigluGrad sets dg to dy·u·σ(g)·(1 + g·(1-σ(g))) and du to dy·g·σ(g).
func swigluGradGo(dg, du, dy, g, u []float32) {
	for i := range dg {
		d := dy[i]
		e := exp32(min(-g[i], 88)) // finite
		s := 1 / (1 + e)
		dg[i] = d * u[i] * s * (1 + g[i]*(e*s)) // 1-σ = e·σ
		du[i] = d * g[i] * s
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

// sumBelow returns the sum of the w whose x is less than t.
func sumBelowGo(w, x []float32, t float32) float32 {
	var s [4]float32
	for i, v := range w {
		if x[i] < t {
			s[i&3] += v
		}
	}
	return s[0] + s[1] + s[2] + s[3]
}

// atLeast writes the indices of the elements that are t or more, ascending, and returns how many there are.
func atLeastGo(ids []int32, x []float32, t float32) int {
	n := 0
	for i, v := range x {
		if v >= t {
			ids[n] = int32(i)
			n++
		}
	}
	return n
}

// cutBelow replaces what is less than t by -Inf.
func cutBelowGo(x []float32, t float32) {
	for i, v := range x {
		if v < t {
			x[i] = negInf()
		}
	}
}

// divBy divides x by a.
func divByGo(x []float32, a float32) {
	for i := range x {
		x[i] /= a
	}
}
