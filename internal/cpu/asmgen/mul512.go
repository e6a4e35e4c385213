package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// What a product does with C.
const (
	add    = 1 // C += the sum; 0: C = the sum
	extend = 2 // the sum begins with C
)

// tile512 is what the two AVX-512 multipliers share: rows 0..mr of C in Z0..Z27 (two vectors of 16 columns
// a row), the column mask in K1 and K2.
type tile512 struct {
	labels
	mr      int
	a, b, c reg.GPVirtual
	lda     reg.GPVirtual // bytes
	ldc     reg.GPVirtual // bytes
	onto    reg.GPVirtual // set, add or extend
}

func newTile512(name string, mr int) *tile512 {
	t := &tile512{labels: labels(name), mr: mr}
	t.a = Load(Param("a"), GP64()).(reg.GPVirtual)
	t.lda = Load(Param("lda"), GP64()).(reg.GPVirtual)
	t.b = Load(Param("b"), GP64()).(reg.GPVirtual)
	t.c = Load(Param("c"), GP64()).(reg.GPVirtual)
	t.ldc = Load(Param("ldc"), GP64()).(reg.GPVirtual)
	SHLQ(Imm(2), t.lda)
	SHLQ(Imm(2), t.ldc)
	mask := Load(Param("mask"), GP32())
	KMOVW(mask, reg.K1)
	SHRL(Imm(16), mask)
	KMOVW(mask, reg.K2)
	cp := GP64()
	MOVQ(t.c, cp)
	for i := range mr {
		PREFETCHT0(Mem{Base: cp})
		PREFETCHT0(Mem{Base: cp, Disp: 64})
		if i < mr-1 {
			ADDQ(t.ldc, cp)
		}
	}
	for i := range 2 * mr {
		if i < 16 { // the short encoding clears the whole register
			VXORPS(ys[i], ys[i], ys[i])
		} else {
			VPXORD(zs[i], zs[i], zs[i])
		}
	}
	t.onto = Load(Param("onto"), GP64()).(reg.GPVirtual)
	return t
}

// row multiplies the B vectors in Z28 and Z29 by row k of A, and steps to the next one.
func (t *tile512) row() {
	for i := range t.mr {
		x := zs[31]
		VBROADCASTSS(Mem{Base: t.a, Disp: 4 * i}, x)
		VFMADD231PS(zs[28], x, zs[2*i])
		VFMADD231PS(zs[29], x, zs[2*i+1])
	}
	ADDQ(t.lda, t.a)
}

// extend begins the sums with C if that is wanted.
func (t *tile512) extend() {
	CMPQ(t.onto, Imm(extend))
	JNE(t.ref("begin"))
	cp := GP64()
	MOVQ(t.c, cp)
	for i := range t.mr {
		VMOVUPS_Z(Mem{Base: cp}, reg.K1, zs[2*i])
		VMOVUPS_Z(Mem{Base: cp, Disp: 64}, reg.K2, zs[2*i+1])
		if i < t.mr-1 {
			ADDQ(t.ldc, cp)
		}
	}
	t.at("begin")
}

func (t *tile512) prefetchA() {
	for d := 0; d == 0 || d < t.mr*4*4; d += 64 {
		PREFETCHT0(Mem{Base: t.a, Index: t.lda, Scale: 8, Disp: d})
	}
}

// store writes or adds the tile to C.
func (t *tile512) store() {
	CMPQ(t.onto, Imm(add))
	JNE(t.ref("set"))
	for i := range t.mr {
		VMOVUPS_Z(Mem{Base: t.c}, reg.K1, zs[30])
		VADDPS(zs[30], zs[2*i], zs[2*i])
		VMOVUPS(zs[2*i], reg.K1, Mem{Base: t.c})
		VMOVUPS_Z(Mem{Base: t.c, Disp: 64}, reg.K2, zs[31])
		VADDPS(zs[31], zs[2*i+1], zs[2*i+1])
		VMOVUPS(zs[2*i+1], reg.K2, Mem{Base: t.c, Disp: 64})
		if i < t.mr-1 {
			ADDQ(t.ldc, t.c)
		}
	}
	VZEROUPPER()
	RET()
	t.at("set")
	for i := range t.mr {
		VMOVUPS(zs[2*i], reg.K1, Mem{Base: t.c})
		VMOVUPS(zs[2*i+1], reg.K2, Mem{Base: t.c, Disp: 64})
		if i < t.mr-1 {
			ADDQ(t.ldc, t.c)
		}
	}
	VZEROUPPER()
	RET()
}

// mulF32AVX512: C[mr,32] = A·B, C + A·B or a sum that goes on from C, with A[k,i] at a[k*lda+i] and B[k,j] at b[k*ldb+j].
func mulF32AVX512(mr int) {
	name := fmt.Sprintf("mulF32AVX512x%d", mr)
	TEXT(name, NOSPLIT, "func(kc int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, mask uint32, onto int)")
	Pragma("noescape")
	n := Load(Param("kc"), GP64())
	ldb := Load(Param("ldb"), GP64())
	SHLQ(Imm(2), ldb)
	t := newTile512(name, mr)
	t.extend()
	step := func() {
		VMOVUPS(Mem{Base: t.b}, zs[28])
		VMOVUPS(Mem{Base: t.b, Disp: 64}, zs[29])
		ADDQ(ldb, t.b)
		t.row()
	}
	n4 := GP64()
	MOVQ(n, n4)
	SHRQ(Imm(2), n4)
	JZ(t.ref("tail"))
	t.at("loop")
	t.prefetchA()
	for range 4 {
		PREFETCHT0(Mem{Base: t.b, Index: ldb, Scale: 8})
		PREFETCHT0(Mem{Base: t.b, Index: ldb, Scale: 8, Disp: 64})
		step()
	}
	DECQ(n4)
	JNZ(t.ref("loop"))
	t.at("tail")
	ANDQ(Imm(3), n)
	JZ(t.ref("store"))
	t.at("one")
	step()
	DECQ(n)
	JNZ(t.ref("one"))
	t.at("store")
	t.store()
}

// mulBF16AVX512 is mulF32AVX512 on a panel of bfloat16 pairs [kp][32][2], widened in registers: the even
// rows are the low halves of the dwords shifted up, the odd rows the high halves masked.
func mulBF16AVX512(mr int) {
	name := fmt.Sprintf("mulBF16AVX512x%d", mr)
	TEXT(name, NOSPLIT, "func(kp int, a *float32, lda int, b *uint32, c *float32, ldc int, mask uint32, onto int)")
	Pragma("noescape")
	n := Load(Param("kp"), GP64())
	t := newTile512(name, mr)
	VMOVUPS(vconst(0xffff0000), zs[30])
	step := func(u int) {
		lo, hi := Mem{Base: t.b, Disp: 128 * u}, Mem{Base: t.b, Disp: 128*u + 64}
		VPSLLD(Imm(16), lo, zs[28])
		VPSLLD(Imm(16), hi, zs[29])
		t.row()
		VPANDD(lo, zs[30], zs[28])
		VPANDD(hi, zs[30], zs[29])
		t.row()
	}
	n2 := GP64()
	MOVQ(n, n2)
	SHRQ(Imm(1), n2)
	JZ(t.ref("tail"))
	t.at("loop")
	t.prefetchA()
	for u := range 4 { // far enough ahead to hide memory when a weight streams past few rows
		PREFETCHT0(Mem{Base: t.b, Disp: 4096 + 64*u})
	}
	step(0)
	step(1)
	ADDQ(U32(256), t.b)
	DECQ(n2)
	JNZ(t.ref("loop"))
	t.at("tail")
	ANDQ(Imm(1), n)
	JZ(t.ref("store"))
	step(0)
	t.at("store")
	t.store()
}
