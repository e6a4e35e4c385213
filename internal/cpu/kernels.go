package cpu

// kernels are the inner loops of one tier. Strides are in elements. Nothing outside the stated elements is
// written; a B row of a product may be read up to 32 columns past its start.
type kernels struct {
	name string
	mr   int // rows of C that one call of mulF32 or mulBF16 makes, at most

	// mulF32 makes C[mr,32] out of A·B for the columns in mask, with A[k,i] at a[k*lda+i] and B[k,j] at b[k*ldb+j],
	// k < kc. Each element is one chain of fused multiply-adds over ascending k (of multiplications and additions in
	// the portable tier).
	mulF32 func(mr, kc int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, mask uint32, onto int)
	// mulBF16 is mulF32 on a panel of bfloat16 pairs [kp][32][2], kc = 2kp. It cannot extend.
	mulBF16 func(mr, kp int, a *float32, lda int, b *uint32, c *float32, ldc int, mask uint32, onto int)

	// transpose: dst[k*ldd+i] = src[i*lds+k] for i < rows <= 16 and k < cols.
	transpose func(dst *float32, ldd int, src *float32, lds int, rows, cols int)
	// widenTranspose: dst[i*ldd+k] from the pairs [8][.][2] (32 pairs a row) of the 16 columns i at src, k < 16.
	widenTranspose func(dst *float32, ldd int, src *uint32)
	// copyRows: dst[k*ldd+j] = src[k*lds+j] for j < cols <= 32 and k < rows.
	copyRows func(dst *float32, ldd int, src *float32, lds int, rows, cols int)

	// Elementwise loops over the slice that comes first; the others are at least as long. What each does is said at
	// its portable implementation.
	maxOf      func(x []float32) float32
	dot        func(x, y []float32) float32
	dot3       func(x, y, w []float32) float32
	sumSquares func(x []float32) float64
	expSum     func(dst, x []float32, scale, shift float32) float32
	expSums    func(x []float32, scale, shift float32) (sum, dot float32)
	expGrad    func(x []float32, scale, shift, c0, c1 float32)
	expAdd     func(y, x []float32, scale, shift, a float32)
	divergence func(x, r []float32, scale, shift, rshift float32) float32
	axpy       func(y, x []float32, a float32)
	scaleTo    func(y, x []float32, a float32)
	mulTo      func(y, x, w []float32, a float32)
	mulAdd     func(y, x, w []float32, a float32)
	normGrad   func(dx, dy, w, x []float32, a, b float32)
	scoreGrad  func(ds, p, dp []float32, d float32)
	rotate     func(y1, y2, x1, x2, cos, sin []float32)
	rotateGrad func(dx1, dx2, dy1, dy2, cos, sin []float32)
	swiglu     func(y, g, u []float32)
	swigluGrad func(dg, du, dy, g, u []float32)
	adamw      func(w, g, m, v []float32, c *[9]float32)
}

// What a product does with C.
const (
	set    = iota // C = the sum
	add           // C += the sum
	extend        // the sum begins with C, so that cutting it changes no bit
)

// onto is add if there is something to add to.
func onto(something bool) int {
	if something {
		return add
	}
	return set
}

// panel is the number of columns of C that one call of a multiplier makes, and of rows of a weight in one packed panel.
const panel = 32

// columns is the mask of the first n columns of a panel.
func columns(n int) uint32 {
	if n >= panel {
		return 1<<panel - 1
	}
	return 1<<n - 1
}
