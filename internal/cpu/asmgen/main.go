// Command asmgen writes the amd64 kernels of package cpu. It is a module of its own, so that its
// assembler library is no dependency of rubicon; scripts/asmgen.sh runs it.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func main() {
	ConstraintExpr("amd64,!purego")
	for mr := 1; mr <= 14; mr++ {
		mulF32AVX512(mr)
		mulBF16AVX512(mr)
	}
	for mr := 1; mr <= 6; mr++ {
		mulF32AVX2(mr)
		mulBF16AVX2(mr)
	}
	transposeAVX512()
	widenTransposeAVX512()
	copyRowsAVX512()
	for r := 1; r <= 8; r++ {
		transposeAVX2(r)
	}
	widenTransposeAVX2()
	for _, s := range []isa{avx512, avx2} {
		s.maxOf()
		s.dot()
		s.dot3()
		s.sumSquares()
		s.expSum()
		s.expSums()
		s.expGrad()
		s.expAdd()
		s.divergence()
		s.axpy()
		s.scaleTo()
		s.mulTo()
		s.mulAdd()
		s.normGrad()
		s.softmax()
		s.scoreGrad()
		s.rotate()
		s.rotateGrad()
		s.swiglu()
		s.swigluGrad()
		s.adamw()
		s.drop()
		s.sumBelow()
		s.atLeast()
		s.cutBelow()
		s.divBy()
	}
	for mr := 1; mr <= 12; mr++ {
		mulDP512(mr)
	}
	split(1)
	split(3)
	pairUp(1)
	pairUp(3)
	turnPairs()
	mulAMXFew()
	mulAMX(1)
	mulAMX(2)
	for _, q := range quants() {
		avx512.unpack(q, false)
		avx512.unpack(q, true)
		avx2.unpack(q, false)
	}
	pause()
	Generate()
}

// pause spins for n PAUSE instructions.
func pause() {
	TEXT("pause", NOSPLIT, "func(n int)")
	Doc("pause executes n PAUSE instructions.")
	n := Load(Param("n"), GP64())
	Label("pause_loop")
	PAUSE()
	DECQ(n)
	JNZ(LabelRef("pause_loop"))
	RET()
}
