package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// mulDP512: C [mr,32] = A·B or C + A·B in bfloat16 with float32 sums. A is [blocks][16][.][2] with mr rows of 16 pairs
// (64 bytes) in a block and step bytes to the next block; B is in pairs, [16][32] dwords to a block.
func mulDP512(mr int) {
	name := fmt.Sprintf("mulDP512x%d", mr)
	TEXT(name, NOSPLIT, "func(blocks int, a *uint16, step int, b *uint32, c *float32, ldc int, onto int)")
	Pragma("noescape")
	l := labels(name)
	blocks := Load(Param("blocks"), GP64())
	a := Load(Param("a"), GP64()).(reg.GPVirtual)
	step := Load(Param("step"), GP64())
	b := Load(Param("b"), GP64()).(reg.GPVirtual)
	c := Load(Param("c"), GP64()).(reg.GPVirtual)
	ldc := Load(Param("ldc"), GP64())
	SHLQ(Imm(2), ldc)
	onto := Load(Param("onto"), GP64())
	for i := range 2 * mr {
		VPXORD(zs[i], zs[i], zs[i])
	}
	rows := func(f func(i int, m Mem)) { // calls f for the rows of C
		p := GP64()
		MOVQ(c, p)
		for i := range mr {
			f(i, Mem{Base: p})
			if i < mr-1 {
				ADDQ(ldc, p)
			}
		}
	}
	l.at("block")
	const unroll = 4
	n := GP64()
	MOVQ(U32(16/unroll), n)
	l.at("pairs")
	for u := range unroll {
		VMOVUPS(Mem{Base: b, Disp: 128 * u}, zs[28])
		VMOVUPS(Mem{Base: b, Disp: 128*u + 64}, zs[29])
		PREFETCHT0(Mem{Base: b, Disp: 4096 + 128*u})
		PREFETCHT0(Mem{Base: b, Disp: 4096 + 128*u + 64})
		for i := range mr {
			VBROADCASTSS(Mem{Base: a, Disp: 64*i + 4*u}, zs[31])
			vdpbf16ps(zs[28], zs[31], zs[2*i])
			vdpbf16ps(zs[29], zs[31], zs[2*i+1])
		}
	}
	ADDQ(U8(4*unroll), a)
	ADDQ(U32(128*unroll), b)
	DECQ(n)
	JNZ(l.ref("pairs"))
	SUBQ(U8(64), a)
	ADDQ(step, a)
	DECQ(blocks)
	JNZ(l.ref("block"))
	TESTQ(onto, onto)
	JZ(l.ref("set"))
	rows(func(i int, m Mem) {
		VADDPS(m, zs[2*i], zs[2*i])
		VADDPS(m.Offset(64), zs[2*i+1], zs[2*i+1])
	})
	l.at("set")
	rows(func(i int, m Mem) {
		VMOVUPS(zs[2*i], m)
		VMOVUPS(zs[2*i+1], m.Offset(64))
	})
	ret()
}
