package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// strided addresses 16 rows of a matrix through four pointers, four rows apart.
type strided struct {
	p     []reg.GPVirtual
	s, s3 reg.GPVirtual
}

func newStrided(base, stride reg.GPVirtual, rows int) strided {
	t := strided{p: []reg.GPVirtual{base}, s: stride, s3: GP64()}
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, t.s3)
	for g := 1; 4*g < rows; g++ {
		p := GP64()
		LEAQ(Mem{Base: t.p[g-1], Index: stride, Scale: 4}, p)
		t.p = append(t.p, p)
	}
	return t
}

func (t strided) row(i int) Mem {
	b := t.p[i/4]
	switch i % 4 {
	case 0:
		return Mem{Base: b}
	case 1:
		return Mem{Base: b, Index: t.s, Scale: 1}
	case 2:
		return Mem{Base: b, Index: t.s, Scale: 2}
	}
	return Mem{Base: b, Index: t.s3, Scale: 1}
}

// shuffle16 transposes the 16 dword rows in Z0..Z15 and returns the registers of the result, in order.
func shuffle16() []reg.VecPhysical {
	for i := 0; i < 16; i += 2 {
		VUNPCKLPS(zs[i+1], zs[i], zs[16+i])
		VUNPCKHPS(zs[i+1], zs[i], zs[17+i])
	}
	for g := range 4 {
		t := 16 + 4*g
		VUNPCKLPD(zs[t+2], zs[t], zs[4*g])
		VUNPCKHPD(zs[t+2], zs[t], zs[4*g+1])
		VUNPCKLPD(zs[t+3], zs[t+1], zs[4*g+2])
		VUNPCKHPD(zs[t+3], zs[t+1], zs[4*g+3])
	}
	out := make([]reg.VecPhysical, 16)
	for j := range 4 {
		s0, s1, s2, s3 := zs[16+4*j], zs[17+4*j], zs[18+4*j], zs[19+4*j]
		g0, g1, g2, g3 := zs[j], zs[4+j], zs[8+j], zs[12+j]
		VSHUFF32X4(Imm(0x88), g1, g0, s0)
		VSHUFF32X4(Imm(0x88), g3, g2, s1)
		VSHUFF32X4(Imm(0xdd), g1, g0, s2)
		VSHUFF32X4(Imm(0xdd), g3, g2, s3)
		VSHUFF32X4(Imm(0x88), s1, s0, g0)
		VSHUFF32X4(Imm(0xdd), s1, s0, g2)
		VSHUFF32X4(Imm(0x88), s3, s2, g1)
		VSHUFF32X4(Imm(0xdd), s3, s2, g3)
		out[j], out[8+j], out[4+j], out[12+j] = g0, g2, g1, g3
	}
	return out
}

// transposeAVX512: dst[k*ldd+i] = src[i*lds+k] for i < rows <= 16, k < cols; nothing else is written or read.
func transposeAVX512() {
	const name = "transposeAVX512"
	l := labels(name)
	TEXT(name, NOSPLIT, "func(dst *float32, ldd int, src *float32, lds int, rows, cols int)")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	src := Load(Param("src"), GP64()).(reg.GPVirtual)
	lds := Load(Param("lds"), GP64()).(reg.GPVirtual)
	rows := Load(Param("rows"), GP64()).(reg.GPVirtual)
	n := Load(Param("cols"), GP64()).(reg.GPVirtual)
	SHLQ(Imm(2), ldd)
	SHLQ(Imm(2), lds)
	in := newStrided(src, lds, 16)
	ones, tmp := GP32(), GP32()
	MOVL(U32(0xffff), ones)
	BZHIL(rows.As32(), ones, tmp)
	KMOVW(tmp, reg.K1) // rows: columns of dst that are written
	KMOVW(ones, reg.K2)
	l.at("loop")
	CMPQ(n, Imm(16))
	JGE(l.ref("load"))
	TESTQ(n, n)
	JZ(l.ref("done"))
	BZHIL(n.As32(), ones, tmp)
	KMOVW(tmp, reg.K2) // columns of src that are read
	l.at("load")
	for i := range 16 {
		if i > 0 {
			CMPQ(rows, Imm(uint64(i)))
			JLE(l.ref("loaded"))
		}
		VMOVUPS_Z(in.row(i), reg.K2, zs[i])
	}
	l.at("loaded")
	out := shuffle16()
	for k := range 16 {
		VMOVUPS(out[k], reg.K1, Mem{Base: dst})
		ADDQ(ldd, dst)
		if k < 15 {
			CMPQ(n, Imm(uint64(k+1)))
			JE(l.ref("done"))
		}
	}
	for _, p := range in.p {
		ADDQ(Imm(64), p)
	}
	SUBQ(Imm(16), n)
	JMP(l.ref("loop"))
	l.at("done")
	VZEROUPPER()
	RET()
}

// widenTransposeAVX512: from rows of bfloat16 pairs src[kp][.][2] (32 pairs a row) to dst[i*ldd+k] for the 16
// columns i at src and 16 values of k (8 pairs).
func widenTransposeAVX512() {
	TEXT("widenTransposeAVX512", NOSPLIT, "func(dst *float32, ldd int, src *uint32)")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	src := Load(Param("src"), GP64())
	SHLQ(Imm(2), ldd)
	VMOVUPS(vconst(0xffff0000), zs[16])
	for i := range 8 {
		m := Mem{Base: src, Disp: i * 128}
		VPSLLD(Imm(16), m, zs[2*i])
		VPANDD(m, zs[16], zs[2*i+1])
	}
	for _, r := range shuffle16() {
		VMOVUPS(r, Mem{Base: dst})
		ADDQ(ldd, dst)
	}
	VZEROUPPER()
	RET()
}

// copyRowsAVX512: dst[k*ldd+j] = src[k*lds+j] for the columns j < 32 in mask.
func copyRowsAVX512() {
	const name = "copyRowsAVX512"
	l := labels(name)
	TEXT(name, NOSPLIT, "func(dst *float32, ldd int, src *float32, lds int, rows int, mask uint32)")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	src := Load(Param("src"), GP64())
	lds := Load(Param("lds"), GP64())
	n := Load(Param("rows"), GP64())
	mask := Load(Param("mask"), GP32())
	SHLQ(Imm(2), ldd)
	SHLQ(Imm(2), lds)
	KMOVW(mask, reg.K1)
	SHRL(Imm(16), mask)
	KMOVW(mask, reg.K2)
	TESTQ(n, n)
	JZ(l.ref("done"))
	l.at("loop")
	VMOVUPS_Z(Mem{Base: src}, reg.K1, zs[0])
	VMOVUPS_Z(Mem{Base: src, Disp: 64}, reg.K2, zs[1])
	PREFETCHT0(Mem{Base: src, Index: lds, Scale: 8})
	PREFETCHT0(Mem{Base: src, Index: lds, Scale: 8, Disp: 64})
	VMOVUPS(zs[0], reg.K1, Mem{Base: dst})
	VMOVUPS(zs[1], reg.K2, Mem{Base: dst, Disp: 64})
	ADDQ(lds, src)
	ADDQ(ldd, dst)
	DECQ(n)
	JNZ(l.ref("loop"))
	l.at("done")
	VZEROUPPER()
	RET()
}

// shuffle8 transposes the 8 dword rows in Y0..Y7 into Y8..Y15.
func shuffle8() {
	for i := 0; i < 8; i += 2 {
		VUNPCKLPS(ys[i+1], ys[i], ys[8+i])
		VUNPCKHPS(ys[i+1], ys[i], ys[9+i])
	}
	for g := range 2 {
		t := 8 + 4*g
		VUNPCKLPD(ys[t+2], ys[t], ys[4*g])
		VUNPCKHPD(ys[t+2], ys[t], ys[4*g+1])
		VUNPCKLPD(ys[t+3], ys[t+1], ys[4*g+2])
		VUNPCKHPD(ys[t+3], ys[t+1], ys[4*g+3])
	}
	for j := range 4 {
		VINSERTF128(Imm(1), ys[4+j].AsX(), ys[j], ys[8+j])
		VPERM2F128(Imm(0x31), ys[4+j], ys[j], ys[12+j])
	}
}

// transposeAVX2 is transposeAVX512 for a fixed number of rows and blocks of 8 columns.
func transposeAVX2(rows int) {
	name := fmt.Sprintf("transposeAVX2x%d", rows)
	l := labels(name)
	TEXT(name, NOSPLIT, "func(dst *float32, ldd int, src *float32, lds int, blocks int)")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	src := Load(Param("src"), GP64()).(reg.GPVirtual)
	lds := Load(Param("lds"), GP64()).(reg.GPVirtual)
	n := Load(Param("blocks"), GP64())
	SHLQ(Imm(2), ldd)
	SHLQ(Imm(2), lds)
	in := newStrided(src, lds, 8)
	TESTQ(n, n)
	JZ(l.ref("done"))
	l.at("loop")
	for i := range 8 {
		if i < rows {
			VMOVUPS(in.row(i), ys[i])
		} else {
			VXORPS(ys[i], ys[i], ys[i])
		}
	}
	shuffle8()
	if rows < 8 {
		VMOVUPS(tailMasks().Offset(4*(8-rows)), ys[0])
	}
	for k := range 8 {
		if rows == 8 {
			VMOVUPS(ys[8+k], Mem{Base: dst})
		} else {
			VMASKMOVPS(ys[8+k], ys[0], Mem{Base: dst})
		}
		ADDQ(ldd, dst)
	}
	for _, p := range in.p {
		ADDQ(Imm(32), p)
	}
	DECQ(n)
	JNZ(l.ref("loop"))
	l.at("done")
	VZEROUPPER()
	RET()
}

// widenTransposeAVX2 is widenTransposeAVX512 for 8 columns and 8 values of k.
func widenTransposeAVX2() {
	TEXT("widenTransposeAVX2", NOSPLIT, "func(dst *float32, ldd int, src *uint32)")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	src := Load(Param("src"), GP64())
	SHLQ(Imm(2), ldd)
	VMOVUPS(vconst(0xffff0000), ys[8])
	for i := range 4 {
		VMOVUPS(Mem{Base: src, Disp: i * 128}, ys[2*i+1])
		VPSLLD(Imm(16), ys[2*i+1], ys[2*i])
		VPAND(ys[8], ys[2*i+1], ys[2*i+1])
	}
	shuffle8()
	for k := range 8 {
		VMOVUPS(ys[8+k], Mem{Base: dst})
		ADDQ(ldd, dst)
	}
	VZEROUPPER()
	RET()
}
