package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func at(p reg.GPVirtual) Mem { return Mem{Base: p} }

func (s isa) maxOf() {
	k, v := s.text("maxOf", "(x []float32) float32", "returns the largest element, -Inf for none."), s.v
	x, n := slice("x"), length("x")
	VMOVUPS(vconst(0xff800000), v[0])
	k.largest(n, x, v[0], v[1])
	k.fold(v[0], v[1], maxOp)
	VMOVSS(v[0].AsX(), address(ReturnIndex(0)))
	ret()
}

func (s isa) sumBelow() {
	k, v := s.text("sumBelow", "(w, x []float32, t float32) float32", "returns the sum of the w whose x is less than t."), s.v
	w, x, n := slice("w"), slice("x"), length("w")
	k.scalar("t", v[0])
	k.zero(v[1])
	k.loop(n, func() {
		const less = 17
		k.load(at(x), v[2])
		k.load(at(w), v[3])
		if k.lanes == 16 {
			VCMPPS(Imm(less), v[0], v[2], reg.K2)
			VADDPS(v[3], v[1], reg.K2, v[1])
		} else {
			VCMPPS(Imm(less), v[0], v[2], v[2])
			VANDPS(v[3], v[2], v[3])
			VADDPS(v[3], v[1], v[1])
		}
	}, w, x)
	k.sum(0, v[1], v[2])
	ret()
}

// atLeast looks at a vector's comparison as bits: few elements pass it.
func (s isa) atLeast() {
	k, v := s.text("atLeast", "(ids []int32, x []float32, t float32) int",
		"writes the indices of the elements that are t or more, ascending, and returns how many there are."), s.v
	ids, x, n := slice("ids"), slice("x"), length("x")
	k.scalar("t", v[0])
	count, at0, bits, bit := GP64(), GP32(), GP32(), GP32()
	XORQ(count, count)
	XORL(at0, at0)
	k.loop(n, func() {
		const greaterOrEqual = 29
		k.load(at(x), v[1])
		if k.lanes == 16 {
			VCMPPS(Imm(greaterOrEqual), v[0], v[1], reg.K2)
			if k.masked {
				KANDW(reg.K1, reg.K2, reg.K2)
			}
			KMOVW(reg.K2, bits)
		} else {
			VCMPPS(Imm(greaterOrEqual), v[0], v[1], v[2])
			k.clip(v[2])
			VMOVMSKPS(v[2], bits)
		}
		suffix := fmt.Sprintf("_%v", k.masked)
		k.at("bits" + suffix)
		TESTL(bits, bits)
		JZ(k.ref("none" + suffix))
		TZCNTL(bits, bit)
		ADDL(at0, bit)
		MOVL(bit, Mem{Base: ids, Index: count, Scale: 4})
		INCQ(count)
		BLSRL(bits, bits)
		JMP(k.ref("bits" + suffix))
		k.at("none" + suffix)
		ADDL(Imm(uint64(k.lanes)), at0)
	}, x)
	Store(count, ReturnIndex(0))
	ret()
}

// largest takes the maximum of the n elements at x into the lanes of top.
func (k *kernel) largest(n, x reg.GPVirtual, top, t reg.VecPhysical) {
	k.loop(n, func() {
		k.load(at(x), t)
		switch {
		case !k.masked:
			VMAXPS(t, top, top)
		case k.lanes == 16:
			VMAXPS(t, top, reg.K1, top)
		default:
			VBLENDVPS(k.v[15], t, top, t)
			VMAXPS(t, top, top)
		}
	}, x)
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
