package cpu

import (
	"math"
	"math/bits"
	"unsafe"
)

// portable is the tier in plain Go. It runs everywhere and is the specification of the others.
func portable(bf16 bool) *kernels {
	return &kernels{
		round: bf16, name: "portable", mr: 4,
		mulF32: mulF32Go, mulBF16: mulBF16Go,
		transpose: transposeGo, widenTranspose: widenTransposeGo, copyRows: copyRowsGo, unpack: unpackersGo(),
		maxOf: maxOfGo, dot: dotGo, dot3: dot3Go, sumSquares: sumSquaresGo,
		expSum: expSumGo, expSums: expSumsGo, expGrad: expGradGo, expAdd: expAddGo, divergence: divergenceGo,
		axpy: axpyGo, scaleTo: scaleToGo, mulTo: mulToGo, mulAdd: mulAddGo, normGrad: normGradGo, softmax: softmaxGo, scoreGrad: scoreGradGo,
		rotate: rotateGo, rotateGrad: rotateGradGo, swiglu: swigluGo, swigluGrad: swigluGradGo, adamw: adamwGo,
		dropBlock: math.MaxInt, sumBelow: sumBelowGo, atLeast: atLeastGo, cutBelow: cutBelowGo, divBy: divByGo,
	}
}

// mulF32Go computes tiles of 4 rows by 4 columns, or of one row by 4.
func mulF32Go(mr, kc int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, mask uint32, onto int) {
	as := unsafe.Slice(a, (kc-1)*lda+mr)
	bs := unsafe.Slice(b, (kc-1)*ldb+bits.Len32(mask))
	cs := unsafe.Slice(c, (mr-1)*ldc+bits.Len32(mask))
	for j := 0; mask>>j != 0; j += 4 {
		if mask>>j&15 != 0 {
			mulTileGo(mr, kc, as, lda, bs[j:], ldb, cs[j:], ldc, mask>>j, onto)
		}
	}
}

// mulBF16Go widens four columns of the panel and multiplies by them.
func mulBF16Go(mr, kp int, a *float32, lda int, b *uint32, c *float32, ldc int, mask uint32, onto int) {
	as := unsafe.Slice(a, (2*kp-1)*lda+mr)
	bs := unsafe.Slice(b, kp*panel)
	cs := unsafe.Slice(c, (mr-1)*ldc+bits.Len32(mask))
	var wide [4 * maxK]float32
	for j := 0; mask>>j != 0; j += 4 {
		if mask>>j&15 == 0 {
			continue
		}
		w := wide[:8*kp]
		for k := range kp {
			for i, v := range bs[k*panel+j : k*panel+j+4] {
				w[8*k+i], w[8*k+4+i] = math.Float32frombits(v<<16), math.Float32frombits(v&0xffff0000)
			}
		}
		mulTileGo(mr, 2*kp, as, lda, w, 4, cs[j:], ldc, mask>>j, onto)
	}
}

// mulTileGo makes the first four columns of c, those that are in mask. Columns that the last rows
// of b lack are taken as zero.
func mulTileGo(mr, kc int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, mask uint32, onto int) {
	var t [4][4]float32
	if onto == extend {
		for i := range mr {
			copy(t[i][:], c[i*ldc:])
		}
	}
	whole := 0 // rows of b that have four columns
	if len(b) >= 4 {
		whole = min(kc, (len(b)-4)/ldb+1)
	}
	tileGo(&t, mr, whole, a, lda, b, ldb)
	for k := whole; k < kc; k++ {
		var row [4]float32
		copy(row[:], b[k*ldb:])
		tileGo(&t, mr, 1, a[k*lda:], lda, row[:], 4)
	}
	for i := range mr {
		for q, x := range t[i] {
			if mask>>q&1 == 0 {
				continue
			}
			if onto == add {
				x += c[i*ldc+q]
			}
			c[i*ldc+q] = x
		}
	}
}

// tileGo goes on with the sums of mr rows by four columns.
func tileGo(t *[4][4]float32, mr, kc int, a []float32, lda int, b []float32, ldb int) {
	if mr == 1 {
		tile1Go(t, kc, a, lda, b, ldb)
	} else {
		tile4Go(t, mr, kc, a, lda, b, ldb)
	}
}

// tile1Go is tileGo for one row.
func tile1Go(t *[4][4]float32, kc int, a []float32, lda int, b []float32, ldb int) {
	c0, c1, c2, c3 := t[0][0], t[0][1], t[0][2], t[0][3]
	for k := range kc {
		x, y := a[k*lda], b[k*ldb:k*ldb+4]
		c0 += x * y[0]
		c1 += x * y[1]
		c2 += x * y[2]
		c3 += x * y[3]
	}
	t[0] = [4]float32{c0, c1, c2, c3}
}

// tile4Go is tileGo for up to four rows; rows past mr repeat the last one.
func tile4Go(t *[4][4]float32, mr, kc int, a []float32, lda int, b []float32, ldb int) {
	r1, r2, r3 := min(1, mr-1), min(2, mr-1), min(3, mr-1)
	c00, c01, c02, c03 := t[0][0], t[0][1], t[0][2], t[0][3]
	c10, c11, c12, c13 := t[1][0], t[1][1], t[1][2], t[1][3]
	c20, c21, c22, c23 := t[2][0], t[2][1], t[2][2], t[2][3]
	c30, c31, c32, c33 := t[3][0], t[3][1], t[3][2], t[3][3]
	for k := range kc {
		x, y := a[k*lda:], b[k*ldb:k*ldb+4]
		a0, a1, a2, a3 := x[0], x[r1], x[r2], x[r3]
		b0, b1, b2, b3 := y[0], y[1], y[2], y[3]
		c00 += a0 * b0
		c01 += a0 * b1
		c02 += a0 * b2
		c03 += a0 * b3
		c10 += a1 * b0
		c11 += a1 * b1
		c12 += a1 * b2
		c13 += a1 * b3
		c20 += a2 * b0
		c21 += a2 * b1
		c22 += a2 * b2
		c23 += a2 * b3
		c30 += a3 * b0
		c31 += a3 * b1
		c32 += a3 * b2
		c33 += a3 * b3
	}
	*t = [4][4]float32{{c00, c01, c02, c03}, {c10, c11, c12, c13}, {c20, c21, c22, c23}, {c30, c31, c32, c33}}
}

func transposeGo(dst *float32, ldd int, src *float32, lds int, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	d := unsafe.Slice(dst, (cols-1)*ldd+rows)
	s := unsafe.Slice(src, (rows-1)*lds+cols)
	for i := range rows {
		for k, v := range s[i*lds : i*lds+cols] {
			d[k*ldd+i] = v
		}
	}
}

func widenTransposeGo(dst *float32, ldd int, src *uint32) {
	d := unsafe.Slice(dst, 15*ldd+16)
	s := unsafe.Slice(src, 7*panel+16)
	for i := range 16 {
		for k := range 8 {
			v := s[k*panel+i]
			d[i*ldd+2*k] = math.Float32frombits(v << 16)
			d[i*ldd+2*k+1] = math.Float32frombits(v & 0xffff0000)
		}
	}
}

func copyRowsGo(dst *float32, ldd int, src *float32, lds int, rows, cols int) {
	if rows == 0 {
		return
	}
	d := unsafe.Slice(dst, (rows-1)*ldd+cols)
	s := unsafe.Slice(src, (rows-1)*lds+cols)
	for k := range rows {
		copy(d[k*ldd:k*ldd+cols], s[k*lds:k*lds+cols])
	}
}
