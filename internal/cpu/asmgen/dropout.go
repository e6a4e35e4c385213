package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The multipliers of Philox4x32.
const (
	philox0 = 0xD2511F53
	philox1 = 0xCD9E8D57
)

// drop computes a Philox counter in each lane, the four words of it in as many registers. The lanes have the counters in
// an order in which turning the words around within 128 bits puts them into the order of the elements.
func (s isa) drop() {
	k, v := s.text("drop", "(y, x *float32, blocks int, keys *[20]uint32, seg, pos uint32, above int32, scale float32)",
		"adds scale·x to y for the elements that dropout keeps, in blocks of four vectors."), s.v
	load := func(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }
	y, x, blocks, keys := load("y"), load("x"), load("blocks"), load("keys")
	counter, above, scale := v[12], v[13], v[14]
	k.scalar("above", above)
	k.scalar("scale", scale)
	VMOVUPS(s.firstCounters(), counter)
	if k.lanes == 16 {
		mask := GP32()
		MOVL(U32(0xaaaa), mask)
		KMOVW(mask, reg.K1)
	}
	k.at("block")
	TESTQ(blocks, blocks)
	JZ(k.ref("end"))
	c, d := v[0:4], v[4:8]
	k.scalar("seg", c[0])
	k.scalar("pos", c[1])
	VMOVAPS(counter, c[2])
	k.zero(c[3])
	for round := range 10 {
		k.philoxRound(c, d, Mem{Base: keys, Disp: 8 * round})
		c, d = d, c
	}
	k.turnWords(c, d)
	for i, w := range c {
		k.addKept(w, above, scale, d[0], d[1], at(y).Offset(4*k.lanes*i), at(x).Offset(4*k.lanes*i))
	}
	VPADDD(vconst(uint32(k.lanes)), counter, counter)
	for _, p := range []reg.GPVirtual{y, x} {
		ADDQ(U32(uint32(16*k.lanes)), p)
	}
	DECQ(blocks)
	JMP(k.ref("block"))
	k.at("end")
	ret()
}

// firstCounters are the counters of the first block: place i of 128 bits L has number i·(registers of 128 bits)+L.
func (s isa) firstCounters() Mem {
	m := GLOBL("counters"+s.suffix, RODATA|NOPTR)
	for lane := range s.lanes {
		DATA(4*lane, U32(uint32(lane%4*(s.lanes/4)+lane/4)))
	}
	return m
}

// philoxRound makes the counters d of c and of the two words of the key at key. It uses v[8] to v[11].
func (k *kernel) philoxRound(c, d []reg.VecPhysical, key Mem) {
	k.mulWide(c[0], philox0, k.v[8], d[3])
	k.mulWide(c[2], philox1, k.v[9], d[1])
	for i, part := range [][2]reg.VecPhysical{{k.v[9], c[1]}, {k.v[8], c[3]}} {
		VPBROADCASTD(key.Offset(4*i), k.v[10])
		k.xor(part[0], part[1], d[2*i])
		k.xor(k.v[10], d[2*i], d[2*i])
	}
}

// mulWide sets hi and lo to the upper and lower words of c times m. It uses v[10] and v[11].
func (k *kernel) mulWide(c reg.VecPhysical, m uint32, hi, lo reg.VecPhysical) {
	t, odd := k.v[10], k.v[11]
	VPSRLQ(Imm(32), c, t)
	VPMULUDQ(vconst(m), c, lo)
	VPMULUDQ(vconst(m), t, odd)
	VPSRLQ(Imm(32), lo, t)
	k.blendOdd(odd, t, hi)
	VPSLLQ(Imm(32), odd, t)
	k.blendOdd(t, lo, lo)
}

// blendOdd takes the odd words from a, the even ones from b.
func (k *kernel) blendOdd(a, b, d reg.VecPhysical) {
	if k.lanes == 16 {
		VPBLENDMD(a, b, reg.K1, d)
	} else {
		VPBLENDD(Imm(0xaa), a, b, d)
	}
}

func (k *kernel) xor(a, b, d reg.VecPhysical) {
	if k.lanes == 16 {
		VPXORD(a, b, d)
	} else {
		VPXOR(a, b, d)
	}
}

// turnWords transposes the 4 x 4 words of each 128 bits of c; it uses t.
func (k *kernel) turnWords(c, t []reg.VecPhysical) {
	VPUNPCKLDQ(c[1], c[0], t[0])
	VPUNPCKHDQ(c[1], c[0], t[1])
	VPUNPCKLDQ(c[3], c[2], t[2])
	VPUNPCKHDQ(c[3], c[2], t[3])
	VPUNPCKLQDQ(t[2], t[0], c[0])
	VPUNPCKHQDQ(t[2], t[0], c[1])
	VPUNPCKLQDQ(t[3], t[1], c[2])
	VPUNPCKHQDQ(t[3], t[1], c[3])
}

// addKept adds scale·x to y where the upper 23 bits of w are more than above; it uses t and u.
func (k *kernel) addKept(w, above, scale, t, u reg.VecPhysical, y, x Mem) {
	VPSRLD(Imm(9), w, w)
	if k.lanes == 16 {
		VPCMPGTD(above, w, reg.K3)
		VMOVUPS_Z(x, reg.K3, t)
	} else {
		VPCMPGTD(above, w, w)
		VANDPS(x, w, t)
	}
	VMOVUPS(y, u)
	VFMADD231PS(scale, t, u)
	VMOVUPS(u, y)
}
