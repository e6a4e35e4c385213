package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func at(p reg.GPVirtual) Mem { return Mem{Base: p} }

func (s isa) maxOf() {
	k, v := s.text("maxOf", "(x []float32) float32", "returns the largest element, -Inf for none."), s.v
	x, n := slice("x"), length("x")
	VMOVUPS(vconst(0xff800000), v[0])
	k.loop(n, func() {
		k.load(at(x), v[1])
		switch {
		case !k.masked:
			VMAXPS(v[1], v[0], v[0])
		case k.lanes == 16:
			VMAXPS(v[1], v[0], reg.K1, v[0])
		default:
			VBLENDVPS(v[15], v[1], v[0], v[1])
			VMAXPS(v[1], v[0], v[0])
		}
	}, x)
	k.fold(v[0], v[1], maxOp)
	VMOVSS(v[0].AsX(), address(ReturnIndex(0)))
	ret()
}

func (s isa) dot() {
	k, v := s.text("dot", "(x, y []float32) float32", "returns the sum of x·y."), s.v
	x, y, n := slice("x"), slice("y"), length("x")
	const unroll = 4
	step := U32(uint32(unroll * k.lanes))
	for i := range unroll {
		k.zero(v[i])
	}
	k.at("wide")
	CMPQ(n, step)
	JL(k.ref("loop"))
	for i := range unroll {
		VMOVUPS(at(x).Offset(4*k.lanes*i), v[4+i])
		VFMADD231PS(at(y).Offset(4*k.lanes*i), v[4+i], v[i])
	}
	ADDQ(4*step, x)
	ADDQ(4*step, y)
	SUBQ(step, n)
	JMP(k.ref("wide"))
	k.loop(n, func() {
		k.load(at(x), v[4])
		k.load(at(y), v[5])
		VFMADD231PS(v[4], v[5], v[0])
	}, x, y)
	VADDPS(v[1], v[0], v[0])
	VADDPS(v[3], v[2], v[2])
	VADDPS(v[2], v[0], v[0])
	k.sum(0, v[0], v[1])
	ret()
}

func (s isa) dot3() {
	k, v := s.text("dot3", "(x, y, w []float32) float32", "returns the sum of x·y·w."), s.v
	x, y, w, n := slice("x"), slice("y"), slice("w"), length("x")
	k.zero(v[0])
	k.loop(n, func() {
		k.load(at(x), v[1])
		k.load(at(y), v[2])
		k.load(at(w), v[3])
		VMULPS(v[1], v[2], v[2])
		VFMADD231PS(v[2], v[3], v[0])
	}, x, y, w)
	k.sum(0, v[0], v[1])
	ret()
}

func (s isa) sumSquares() {
	k, v := s.text("sumSquares", "(x []float32) float64", "returns the sum of x², accumulated in float64."), s.v
	x, n := slice("x"), length("x")
	k.zero(v[0])
	k.zero(v[1])
	k.loop(n, func() {
		k.load(at(x), v[2])
		if k.lanes == 16 {
			VEXTRACTF64X4(Imm(1), v[2], v[3].AsY())
			VCVTPS2PD(v[2].AsY(), v[2])
			VCVTPS2PD(v[3].AsY(), v[3])
		} else {
			VEXTRACTF128(Imm(1), v[2], v[3].AsX())
			VCVTPS2PD(v[2].AsX(), v[2])
			VCVTPS2PD(v[3].AsX(), v[3])
		}
		VFMADD231PD(v[2], v[2], v[0])
		VFMADD231PD(v[3], v[3], v[1])
	}, x)
	VADDPD(v[1], v[0], v[0])
	if k.lanes == 16 {
		VEXTRACTF64X4(Imm(1), v[0], v[1].AsY())
		VADDPD(v[1].AsY(), v[0].AsY(), v[0].AsY())
	}
	VEXTRACTF128(Imm(1), v[0].AsY(), v[1].AsX())
	VADDPD(v[1].AsX(), v[0].AsX(), v[0].AsX())
	VPERMILPD(Imm(1), v[0].AsX(), v[1].AsX())
	VADDPD(v[1].AsX(), v[0].AsX(), v[0].AsX())
	VMOVSD(v[0].AsX(), address(ReturnIndex(0)))
	ret()
}
