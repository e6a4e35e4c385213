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

	// pieces is how many bfloat16 pieces the left operand of a product with a bfloat16 weight is cut into. 0: none, the
	// product is mulBF16's; otherwise mulTiles, split, pairUp and turnPairs are there (tile.go).
	pieces int
	// round: without pieces, the left operand of such a product is rounded to bfloat16.
	round bool
	// mulTiles makes C [rows,32] = A·B for several panels of rows <= 32 whose A is next bytes apart, and take of the pieces of
	// A in each of blocks blocks of 32 k: pieces are size bytes apart, skip more to the next block. B is in pairs, [16][32]
	// dwords to a block. With spill, room for 1024 values, it adds to C.
	mulTiles func(rows, panels, blocks, take int, a *uint16, size, skip, next int, b *uint32, c *float32, ldc int, spill *float32)
	// mulFew, which a tier may lack, is mulTiles for one panel of rows <= 16 and two panels of B, nextB bytes apart.
	mulFew func(rows, blocks, pieces int, a *uint16, size int, b *uint32, nextB int, c *float32, ldc int, spill *float32)
	// split cuts n times 32 values into pieces, plane bytes apart; what it writes and reads moves on by to and from bytes.
	split func(dst *uint16, plane, to int, src *float32, from, n int)
	// pairUp cuts rows src [2n][32] into pieces and pairs them up, dst [pieces][n][32], pieces plane bytes apart.
	pairUp func(dst *uint32, plane int, src *float32, n int)
	// turnPairs turns pairs along k, src [16][32] for 32 k and 32 n, into pairs along n, dst [16][32].
	turnPairs func(dst, src *uint32)

	// transpose: dst[k*ldd+i] = src[i*lds+k] for i < rows <= 16 and k < cols.
	transpose func(dst *float32, ldd int, src *float32, lds int, rows, cols int)
	// widenTranspose: dst[i*ldd+k] from the pairs [8][.][2] (32 pairs a row) of the 16 columns i at src, k < 16.
	widenTranspose func(dst *float32, ldd int, src *uint32)
	// copyRows: dst[k*ldd+j] = src[k*lds+j] for j < cols <= 32 and k < rows.
	copyRows func(dst *float32, ldd int, src *float32, lds int, rows, cols int)

	// unpack: the pairs [8·units][32][2] of units of 16 columns, from the given one on, of a quantised panel at src.
	unpack unpackers

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
	rotate     func(y1, y2, x1, x2, cos, sin []float32)
	rotateGrad func(dx1, dx2, dy1, dy2, cos, sin []float32)
	swiglu     func(y, g, u []float32)
	swigluGrad func(dg, du, dy, g, u []float32)
	adamw      func(w, g, m, v []float32, c *[9]float32)
	sumBelow   func(w, x []float32, t float32) float32
	atLeast    func(ids []int32, x []float32, t float32) int // over x; ids are at least as many
	cutBelow   func(x []float32, t float32)
	divBy      func(x []float32, a float32)

	// drop adds scale·x to y for the elements that dropout keeps (see dropTask), in blocks of dropBlock from column 0 on.
	drop      func(y, x *float32, blocks int, keys *[20]uint32, seg, pos uint32, above int32, scale float32)
	dropBlock int

	// Loops over rows of a block of attention scores, stride apart and width long, of which the first sees[r]-from of row r
	// count. Whole vectors past the width may be read and written.
	softmax   func(x *float32, stride, rows, width int, sees *int32, from int, top, sum, scale *float32)
	scoreGrad func(ds, p *float32, stride, rows, width int, sees *int32, from int, lse, delta *float32)
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
