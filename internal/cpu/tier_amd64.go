//go:build amd64 && !purego

package cpu

import (
	"math/bits"
	"unsafe"

	x86 "golang.org/x/sys/cpu"
)

// tiers are the kernels that this machine can run, best first.
func tiers() []tier {
	list := []tier{{"portable", portable}}
	if x86.X86.HasAVX2 && x86.X86.HasFMA && x86.X86.HasBMI2 {
		list = append([]tier{{"avx2", avx2}}, list...)
	}
	if x86.X86.HasAVX512F && x86.X86.HasAVX512BW && x86.X86.HasAVX512DQ && x86.X86.HasAVX512VL && x86.X86.HasBMI2 {
		list = append([]tier{{"avx512", avx512}}, list...)
	}
	return list
}

func avx512() *kernels {
	return &kernels{
		name: "AVX-512", mr: 14,
		mulF32: mulF32AVX512, mulBF16: mulBF16AVX512,
		transpose: transposeAVX512, widenTranspose: widenTransposeAVX512,
		copyRows: func(dst *float32, ldd int, src *float32, lds int, rows, cols int) {
			copyRowsAVX512(dst, ldd, src, lds, rows, columns(cols))
		},
		maxOf: maxOfAVX512, dot: dotAVX512, dot3: dot3AVX512, sumSquares: sumSquaresAVX512,
		expSum: expSumAVX512, expSums: expSumsAVX512, expGrad: expGradAVX512, expAdd: expAddAVX512, divergence: divergenceAVX512,
		axpy: axpyAVX512, scaleTo: scaleToAVX512, mulTo: mulToAVX512, mulAdd: mulAddAVX512, normGrad: normGradAVX512, scoreGrad: scoreGradAVX512,
		rotate: rotateAVX512, rotateGrad: rotateGradAVX512, swiglu: swigluAVX512, swigluGrad: swigluGradAVX512, adamw: adamwAVX512,
	}
}

func avx2() *kernels {
	return &kernels{
		name: "AVX2", mr: 6,
		mulF32: mulF32AVX2, mulBF16: mulBF16AVX2,
		transpose: transposeAVX2, widenTranspose: widenTranspose16AVX2, copyRows: copyRowsGo,
		maxOf: maxOfAVX2, dot: dotAVX2, dot3: dot3AVX2, sumSquares: sumSquaresAVX2,
		expSum: expSumAVX2, expSums: expSumsAVX2, expGrad: expGradAVX2, expAdd: expAddAVX2, divergence: divergenceAVX2,
		axpy: axpyAVX2, scaleTo: scaleToAVX2, mulTo: mulToAVX2, mulAdd: mulAddAVX2, normGrad: normGradAVX2, scoreGrad: scoreGradAVX2,
		rotate: rotateAVX2, rotateGrad: rotateGradAVX2, swiglu: swigluAVX2, swigluGrad: swigluGradAVX2, adamw: adamwAVX2,
	}
}

func mulF32AVX512(mr, kc int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, mask uint32, onto int) {
	switch mr {
	case 1:
		mulF32AVX512x1(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 2:
		mulF32AVX512x2(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 3:
		mulF32AVX512x3(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 4:
		mulF32AVX512x4(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 5:
		mulF32AVX512x5(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 6:
		mulF32AVX512x6(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 7:
		mulF32AVX512x7(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 8:
		mulF32AVX512x8(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 9:
		mulF32AVX512x9(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 10:
		mulF32AVX512x10(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 11:
		mulF32AVX512x11(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 12:
		mulF32AVX512x12(kc, a, lda, b, ldb, c, ldc, mask, onto)
	case 13:
		mulF32AVX512x13(kc, a, lda, b, ldb, c, ldc, mask, onto)
	default:
		mulF32AVX512x14(kc, a, lda, b, ldb, c, ldc, mask, onto)
	}
}

func mulBF16AVX512(mr, kp int, a *float32, lda int, b *uint32, c *float32, ldc int, mask uint32, onto int) {
	switch mr {
	case 1:
		mulBF16AVX512x1(kp, a, lda, b, c, ldc, mask, onto)
	case 2:
		mulBF16AVX512x2(kp, a, lda, b, c, ldc, mask, onto)
	case 3:
		mulBF16AVX512x3(kp, a, lda, b, c, ldc, mask, onto)
	case 4:
		mulBF16AVX512x4(kp, a, lda, b, c, ldc, mask, onto)
	case 5:
		mulBF16AVX512x5(kp, a, lda, b, c, ldc, mask, onto)
	case 6:
		mulBF16AVX512x6(kp, a, lda, b, c, ldc, mask, onto)
	case 7:
		mulBF16AVX512x7(kp, a, lda, b, c, ldc, mask, onto)
	case 8:
		mulBF16AVX512x8(kp, a, lda, b, c, ldc, mask, onto)
	case 9:
		mulBF16AVX512x9(kp, a, lda, b, c, ldc, mask, onto)
	case 10:
		mulBF16AVX512x10(kp, a, lda, b, c, ldc, mask, onto)
	case 11:
		mulBF16AVX512x11(kp, a, lda, b, c, ldc, mask, onto)
	case 12:
		mulBF16AVX512x12(kp, a, lda, b, c, ldc, mask, onto)
	case 13:
		mulBF16AVX512x13(kp, a, lda, b, c, ldc, mask, onto)
	default:
		mulBF16AVX512x14(kp, a, lda, b, c, ldc, mask, onto)
	}
}

// offset is the address n elements after p.
func offset[T float32 | uint32](p *T, n int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), 4*n))
}

// mulF32AVX2 makes up to three rows in one tile of 32 columns, more in two tiles of 16. A tile that is not whole
// goes through memory of its own.
func mulF32AVX2(mr, kc int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, mask uint32, onto int) {
	width := tileColumns(mr)
	for j := 0; j < panel; j += width {
		switch m := mask >> j & columns(width); m {
		case 0:
		case columns(width):
			mulF32AVX2Tile(mr, kc, a, lda, offset(b, j), ldb, offset(c, j), ldc, onto)
		default:
			var t [6 * 16]float32
			if onto == extend {
				merge(&t[0], width, offset(c, j), ldc, mr, m, set)
				mulF32AVX2Tile(mr, kc, a, lda, offset(b, j), ldb, &t[0], width, extend)
				merge(offset(c, j), ldc, &t[0], width, mr, m, set)
				continue
			}
			mulF32AVX2Tile(mr, kc, a, lda, offset(b, j), ldb, &t[0], width, set)
			merge(offset(c, j), ldc, &t[0], width, mr, m, onto)
		}
	}
}

func mulBF16AVX2(mr, kp int, a *float32, lda int, b *uint32, c *float32, ldc int, mask uint32, onto int) {
	width := tileColumns(mr)
	for j := 0; j < panel; j += width {
		switch m := mask >> j & columns(width); m {
		case 0:
		case columns(width):
			mulBF16AVX2Tile(mr, kp, a, lda, offset(b, j), offset(c, j), ldc, onto)
		default:
			var t [6 * 16]float32
			mulBF16AVX2Tile(mr, kp, a, lda, offset(b, j), &t[0], width, set)
			merge(offset(c, j), ldc, &t[0], width, mr, m, onto)
		}
	}
}

func tileColumns(mr int) int {
	if mr <= 3 {
		return panel
	}
	return panel / 2
}

func mulF32AVX2Tile(mr, kc int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, onto int) {
	switch mr {
	case 1:
		mulF32AVX2x1(kc, a, lda, b, ldb, c, ldc, onto)
	case 2:
		mulF32AVX2x2(kc, a, lda, b, ldb, c, ldc, onto)
	case 3:
		mulF32AVX2x3(kc, a, lda, b, ldb, c, ldc, onto)
	case 4:
		mulF32AVX2x4(kc, a, lda, b, ldb, c, ldc, onto)
	case 5:
		mulF32AVX2x5(kc, a, lda, b, ldb, c, ldc, onto)
	default:
		mulF32AVX2x6(kc, a, lda, b, ldb, c, ldc, onto)
	}
}

func mulBF16AVX2Tile(mr, kp int, a *float32, lda int, b *uint32, c *float32, ldc int, onto int) {
	switch mr {
	case 1:
		mulBF16AVX2x1(kp, a, lda, b, c, ldc, onto)
	case 2:
		mulBF16AVX2x2(kp, a, lda, b, c, ldc, onto)
	case 3:
		mulBF16AVX2x3(kp, a, lda, b, c, ldc, onto)
	case 4:
		mulBF16AVX2x4(kp, a, lda, b, c, ldc, onto)
	case 5:
		mulBF16AVX2x5(kp, a, lda, b, c, ldc, onto)
	default:
		mulBF16AVX2x6(kp, a, lda, b, c, ldc, onto)
	}
}

// merge stores or adds the columns of src that are in mask.
func merge(dst *float32, ldd int, src *float32, lds, rows int, mask uint32, onto int) {
	width := bits.Len32(mask)
	d, s := unsafe.Slice(dst, (rows-1)*ldd+width), unsafe.Slice(src, (rows-1)*lds+width)
	for i := range rows {
		for j := range width {
			if mask>>j&1 == 0 {
				continue
			}
			if onto == add {
				d[i*ldd+j] += s[i*lds+j]
			} else {
				d[i*ldd+j] = s[i*lds+j]
			}
		}
	}
}

// transposeAVX2 takes 8 rows at a time; the columns past the last 8 are done one by one.
func transposeAVX2(dst *float32, ldd int, src *float32, lds int, rows, cols int) {
	for i := 0; i < rows; i += 8 {
		n, d, s := min(8, rows-i), offset(dst, i), offset(src, i*lds)
		transposeRowsAVX2(d, ldd, s, lds, n, cols/8)
		if whole := cols &^ 7; whole < cols {
			transposeGo(offset(d, whole*ldd), ldd, offset(s, whole), lds, n, cols-whole)
		}
	}
}

func transposeRowsAVX2(dst *float32, ldd int, src *float32, lds int, rows, blocks int) {
	switch rows {
	case 1:
		transposeAVX2x1(dst, ldd, src, lds, blocks)
	case 2:
		transposeAVX2x2(dst, ldd, src, lds, blocks)
	case 3:
		transposeAVX2x3(dst, ldd, src, lds, blocks)
	case 4:
		transposeAVX2x4(dst, ldd, src, lds, blocks)
	case 5:
		transposeAVX2x5(dst, ldd, src, lds, blocks)
	case 6:
		transposeAVX2x6(dst, ldd, src, lds, blocks)
	case 7:
		transposeAVX2x7(dst, ldd, src, lds, blocks)
	default:
		transposeAVX2x8(dst, ldd, src, lds, blocks)
	}
}

func widenTranspose16AVX2(dst *float32, ldd int, src *uint32) {
	for i := 0; i < 16; i += 8 {
		for k := 0; k < 16; k += 8 {
			widenTransposeAVX2(offset(dst, i*ldd+k), ldd, offset(src, k/2*panel+i))
		}
	}
}
