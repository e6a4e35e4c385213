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
		if x86.X86.HasAMXTile && x86.X86.HasAMXBF16 && tilesAllowed() {
			list = append([]tier{{"amx", amx}}, list...)
		}
	}
	return list
}

// amx is avx512 with a matrix unit.
func amx(bf16 bool) *kernels {
	k := avx512(false)
	k.name, k.pieces, k.round = "AMX", 3, false
	k.mulTiles, k.mulFew, k.turnPairs, k.split, k.pairUp = mulAMX, mulFewAMX, turnPairsAVX512, splitAVX512, pairSplitAVX512
	if bf16 {
		k.pieces, k.split, k.pairUp = 1, roundAVX512, pairRoundAVX512
	}
	return k
}

// A tileConfig says how many rows each of the unit's eight tiles has; a row has 64 bytes.
type tileConfig [64]byte

func newTileConfig(rows ...int) *tileConfig {
	c := &tileConfig{1}
	for t, n := range rows {
		if n > 0 {
			c[16+2*t], c[48+t] = 64, byte(n)
		}
	}
	return c
}

// Configurations by the number of rows: of mulAMX, whose tiles are four of C, two of A and two of B, and of
// mulAMXFew, with four of C, three of A and one of B.
var tileConfigs, fewConfigs = func() (tiles [unitRows + 1]*tileConfig, few [unitRows/2 + 1]*tileConfig) {
	const most = unitRows / 2
	for rows := range tiles {
		low, high := min(rows, most), rows-most
		tiles[rows] = newTileConfig(low, low, high, high, low, high, most, most)
	}
	for rows := range few {
		few[rows] = newTileConfig(rows, rows, rows, rows, rows, rows, rows, most)
	}
	return tiles, few
}()

// mulDP is mulTiles with the dot products of vector registers, for one piece.
func mulDP(rows, panels, blocks, _ int, a *uint16, _, _, next int, b *uint32, c *float32, ldc int, spill *float32) {
	step, mode := 2*unitDepth*rows, onto(spill != nil)
	for p := range panels {
		if p > 0 { // no pointer may leave its memory, not even unused
			a, c = (*uint16)(unsafe.Add(unsafe.Pointer(a), next)), offset(c, rows*ldc)
		}
		for i := 0; i < rows; {
			n := min(rows-i, 12)
			if left := rows - i - n; left > 0 && left < 8 {
				n = (rows - i + 1) / 2 // two even shares
			}
			mulDPRows(n, blocks, (*uint16)(unsafe.Add(unsafe.Pointer(a), 2*unitDepth*i)), step, b, offset(c, i*ldc), ldc, mode)
			i += n
		}
	}
}

func mulDPRows(n, blocks int, a *uint16, step int, b *uint32, c *float32, ldc, onto int) {
	switch n {
	case 1:
		mulDP512x1(blocks, a, step, b, c, ldc, onto)
	case 2:
		mulDP512x2(blocks, a, step, b, c, ldc, onto)
	case 3:
		mulDP512x3(blocks, a, step, b, c, ldc, onto)
	case 4:
		mulDP512x4(blocks, a, step, b, c, ldc, onto)
	case 5:
		mulDP512x5(blocks, a, step, b, c, ldc, onto)
	case 6:
		mulDP512x6(blocks, a, step, b, c, ldc, onto)
	case 7:
		mulDP512x7(blocks, a, step, b, c, ldc, onto)
	case 8:
		mulDP512x8(blocks, a, step, b, c, ldc, onto)
	case 9:
		mulDP512x9(blocks, a, step, b, c, ldc, onto)
	case 10:
		mulDP512x10(blocks, a, step, b, c, ldc, onto)
	case 11:
		mulDP512x11(blocks, a, step, b, c, ldc, onto)
	default:
		mulDP512x12(blocks, a, step, b, c, ldc, onto)
	}
}

func mulAMX(rows, panels, blocks, take int, a *uint16, size, skip, next int, b *uint32, c *float32, ldc int, spill *float32) {
	config := (*[64]byte)(tileConfigs[rows])
	if rows <= unitRows/2 {
		mulAMXx1(config, rows, panels, blocks, take, a, size, skip, next, b, c, ldc, spill)
	} else {
		mulAMXx2(config, rows, panels, blocks, take, a, size, skip, next, b, c, ldc, spill)
	}
}

func mulFewAMX(rows, blocks, pieces int, a *uint16, size int, b *uint32, next int, c *float32, ldc int, spill *float32) {
	mulAMXFew((*[64]byte)(fewConfigs[rows]), rows, blocks, pieces, a, size, b, next, c, ldc, spill)
}

func avx512(bf16 bool) *kernels {
	k := &kernels{
		name: "AVX-512", mr: 14, round: bf16,
		mulF32: mulF32AVX512, mulBF16: mulBF16AVX512,
		transpose: transposeAVX512, widenTranspose: widenTransposeAVX512,
		copyRows: func(dst *float32, ldd int, src *float32, lds int, rows, cols int) {
			copyRowsAVX512(dst, ldd, src, lds, rows, columns(cols))
		},
		unpack: unpackersAVX512(x86.X86.HasAVX512BF16),
		maxOf:  maxOfAVX512, dot: dotAVX512, dot3: dot3AVX512, sumSquares: sumSquaresAVX512,
		expSum: expSumAVX512, expSums: expSumsAVX512, expGrad: expGradAVX512, expAdd: expAddAVX512, divergence: divergenceAVX512,
		axpy: axpyAVX512, scaleTo: scaleToAVX512, mulTo: mulToAVX512, mulAdd: mulAddAVX512, normGrad: normGradAVX512, softmax: softmaxAVX512, scoreGrad: scoreGradAVX512,
		rotate: rotateAVX512, rotateGrad: rotateGradAVX512, swiglu: swigluAVX512, swigluGrad: swigluGradAVX512, adamw: adamwAVX512,
		drop: dropAVX512, dropBlock: 64, sumBelow: sumBelowAVX512, atLeast: atLeastAVX512, cutBelow: cutBelowAVX512, divBy: divByAVX512,
	}
	if bf16 && x86.X86.HasAVX512BF16 {
		k.pieces, k.mulTiles, k.turnPairs, k.split, k.pairUp = 1, mulDP, turnPairsAVX512, roundAVX512, pairRoundAVX512
	}
	return k
}

func avx2(bf16 bool) *kernels {
	return &kernels{
		name: "AVX2", mr: 6, round: bf16,
		mulF32: mulF32AVX2, mulBF16: mulBF16AVX2,
		transpose: transposeAVX2, widenTranspose: widenTranspose16AVX2, copyRows: copyRowsGo, unpack: unpackersAVX2(),
		maxOf: maxOfAVX2, dot: dotAVX2, dot3: dot3AVX2, sumSquares: sumSquaresAVX2,
		expSum: expSumAVX2, expSums: expSumsAVX2, expGrad: expGradAVX2, expAdd: expAddAVX2, divergence: divergenceAVX2,
		axpy: axpyAVX2, scaleTo: scaleToAVX2, mulTo: mulToAVX2, mulAdd: mulAddAVX2, normGrad: normGradAVX2, softmax: softmaxAVX2, scoreGrad: scoreGradAVX2,
		rotate: rotateAVX2, rotateGrad: rotateGradAVX2, swiglu: swigluAVX2, swigluGrad: swigluGradAVX2, adamw: adamwAVX2,
		drop: dropAVX2, dropBlock: 32, sumBelow: sumBelowAVX2, atLeast: atLeastAVX2, cutBelow: cutBelowAVX2, divBy: divByAVX2,
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
