package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tile256 is what the two AVX2 multipliers share. With up to three rows the tile is 32 columns wide (enough
// independent sums to hide the latency of an FMA), else 16; it lies in Y0..Y11, B in Y12, A in Y13..Y15.
type tile256 struct {
	labels
	mr, nv  int // rows, vectors of 8 columns
	a, b, c reg.GPVirtual
	lda     reg.GPVirtual // bytes
	ldc     reg.GPVirtual // bytes
	onto    reg.GPVirtual
}

func width256(mr int) int {
	if mr <= 3 {
		return 4
	}
	return 2
}

func newTile256(name string, mr int) *tile256 {
	t := &tile256{labels: labels(name), mr: mr, nv: width256(mr)}
	t.a = Load(Param("a"), GP64()).(reg.GPVirtual)
	t.lda = Load(Param("lda"), GP64()).(reg.GPVirtual)
	t.b = Load(Param("b"), GP64()).(reg.GPVirtual)
	t.c = Load(Param("c"), GP64()).(reg.GPVirtual)
	t.ldc = Load(Param("ldc"), GP64()).(reg.GPVirtual)
	SHLQ(Imm(2), t.lda)
	SHLQ(Imm(2), t.ldc)
	for i := range mr * t.nv {
		VXORPS(ys[i], ys[i], ys[i])
	}
	t.onto = Load(Param("onto"), GP64()).(reg.GPVirtual)
	return t
}

// extend begins the sums with C if that is wanted.
func (t *tile256) extend() {
	CMPQ(t.onto, Imm(extend))
	JNE(t.ref("begin"))
	cp := GP64()
	MOVQ(t.c, cp)
	for i := range t.mr {
		for v := range t.nv {
			VMOVUPS(Mem{Base: cp, Disp: 32 * v}, ys[i*t.nv+v])
		}
		if i < t.mr-1 {
			ADDQ(t.ldc, cp)
		}
	}
	t.at("begin")
}

// row adds row k of A times row k of B; load puts vector v of that row into a register.
func (t *tile256) row(load func(v int, d reg.VecPhysical)) {
	if t.nv == 4 {
		for i := range t.mr {
			VBROADCASTSS(Mem{Base: t.a, Disp: 4 * i}, ys[13+i])
		}
		for v := range t.nv {
			load(v, ys[12])
			for i := range t.mr {
				VFMADD231PS(ys[12], ys[13+i], ys[i*t.nv+v])
			}
		}
	} else {
		load(0, ys[12])
		load(1, ys[13])
		for i := range t.mr {
			x := ys[14+i%2]
			VBROADCASTSS(Mem{Base: t.a, Disp: 4 * i}, x)
			VFMADD231PS(ys[12], x, ys[2*i])
			VFMADD231PS(ys[13], x, ys[2*i+1])
		}
	}
	ADDQ(t.lda, t.a)
}

// store writes or adds the tile to C.
func (t *tile256) store() {
	CMPQ(t.onto, Imm(add))
	JNE(t.ref("set"))
	for i := range t.mr {
		for v := range t.nv {
			r := ys[i*t.nv+v]
			VADDPS(Mem{Base: t.c, Disp: 32 * v}, r, r)
			VMOVUPS(r, Mem{Base: t.c, Disp: 32 * v})
		}
		if i < t.mr-1 {
			ADDQ(t.ldc, t.c)
		}
	}
	VZEROUPPER()
	RET()
	t.at("set")
	for i := range t.mr {
		for v := range t.nv {
			VMOVUPS(ys[i*t.nv+v], Mem{Base: t.c, Disp: 32 * v})
		}
		if i < t.mr-1 {
			ADDQ(t.ldc, t.c)
		}
	}
	VZEROUPPER()
	RET()
}

// mulF32AVX2 is mulF32AVX512 for 32 or 16 columns, with A[k,i] at a[k*lda+i] and B[k,j] at b[k*ldb+j]; all columns are written.
func mulF32AVX2(mr int) {
	name := fmt.Sprintf("mulF32AVX2x%d", mr)
	TEXT(name, NOSPLIT, "func(kc int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, onto int)")
	Pragma("noescape")
	n := Load(Param("kc"), GP64())
	ldb := Load(Param("ldb"), GP64())
	SHLQ(Imm(2), ldb)
	t := newTile256(name, mr)
	t.extend()
	step := func() {
		t.row(func(v int, d reg.VecPhysical) { VMOVUPS(Mem{Base: t.b, Disp: 32 * v}, d) })
		ADDQ(ldb, t.b)
	}
	n4 := GP64()
	MOVQ(n, n4)
	SHRQ(Imm(2), n4)
	JZ(t.ref("tail"))
	t.at("loop")
	PREFETCHT0(Mem{Base: t.a, Index: t.lda, Scale: 8})
	for range 4 {
		PREFETCHT0(Mem{Base: t.b, Index: ldb, Scale: 8})
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

// mulBF16AVX2 is mulF32AVX2 on a panel of bfloat16 pairs [kp][32][2], widened in registers.
func mulBF16AVX2(mr int) {
	name := fmt.Sprintf("mulBF16AVX2x%d", mr)
	TEXT(name, NOSPLIT, "func(kp int, a *float32, lda int, b *uint32, c *float32, ldc int, onto int)")
	Pragma("noescape")
	n := Load(Param("kp"), GP64())
	t := newTile256(name, mr)
	odd := vconst(0xffff0000)
	step := func(u int) {
		t.row(func(v int, d reg.VecPhysical) {
			VMOVUPS(Mem{Base: t.b, Disp: 128*u + 32*v}, d)
			VPSLLD(Imm(16), d, d)
		})
		t.row(func(v int, d reg.VecPhysical) {
			VMOVUPS(odd, d)
			VPAND(Mem{Base: t.b, Disp: 128*u + 32*v}, d, d)
		})
	}
	n2 := GP64()
	MOVQ(n, n2)
	SHRQ(Imm(1), n2)
	JZ(t.ref("tail"))
	t.at("loop")
	PREFETCHT0(Mem{Base: t.a, Index: t.lda, Scale: 8})
	for u := range 2 * t.nv / 2 {
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
