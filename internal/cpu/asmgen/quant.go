package main

import (
	"math"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quant is a quantised type: its device.Form, and package cpu's blockLayout of it.
type quant struct {
	name                      string
	bits, group, super        int
	signed, min               bool
	minimum, factors, codes   int // where they begin in a block
	minFactors, size, columns int // columns: units of 16 in a block
}

func quants() []quant {
	list := []quant{
		{name: "Int8", bits: 8, group: 32, signed: true},
		{name: "Int4", bits: 4, group: 32, min: true},
		{name: "Int4Sym", bits: 4, group: 32, signed: true},
		{name: "Int8K", bits: 8, group: 16, super: 256, signed: true},
		{name: "Int4K", bits: 4, group: 32, super: 256, min: true},
	}
	for i := range list {
		q := &list[i]
		span, at := max(q.group, q.super), 64
		if q.min {
			q.minimum, at = at, at+64
		}
		if q.super > 0 {
			q.factors, at = at, at+span/q.group*32
			if q.min {
				q.minFactors, at = at, at+span/q.group*32
			}
		}
		q.codes, q.size, q.columns = at, at+span*32*q.bits/8, span/16
	}
	return list
}

// unpack writes the function that turns units of 16 columns of a quantised panel, from unit first on, into bfloat16
// pairs [8·units][32][2]. native rounds with the CPU's own instruction.
type unpack struct {
	*kernel
	quant
	native             bool
	dst, block, codes  reg.GPVirtual
	factors            reg.GPVirtual
	scale, min         reg.VecPhysical
	one, half, mask, t reg.VecPhysical // constants
}

func (s isa) unpack(q quant, native bool) {
	name := "unpack" + q.name
	if native {
		name += "Native"
	}
	u := unpack{quant: q, native: native}
	u.kernel = s.text(name, "(dst, src *uint32, first, units int)", "unpacks units of a panel of an "+q.name+" weight.")
	n := len(s.v)
	u.scale, u.min, u.one, u.half, u.mask, u.t = s.v[n-1], s.v[n-2], s.v[n-3], s.v[n-4], s.v[n-5], s.v[n-6]
	u.dst = Load(Param("dst"), GP64()).(reg.GPVirtual)
	src, at, left := Load(Param("src"), GP64()), Load(Param("first"), GP64()), Load(Param("units"), GP64())
	u.constants()
	u.block, u.codes, u.factors = GP64(), GP64(), GP64()
	u.at("loop")
	MOVQ(at, u.block)
	SHRQ(Imm(log2(q.columns)), u.block)
	IMUL3Q(U32(uint32(q.size)), u.block, u.block)
	ADDQ(src, u.block)
	MOVQ(at, u.codes)
	ANDQ(Imm(uint64(q.columns-1)), u.codes)
	if q.super > 0 {
		MOVQ(u.codes, u.factors)
		SHRQ(Imm(log2(q.group/16)), u.factors)
		SHLQ(Imm(5), u.factors)
		ADDQ(u.block, u.factors)
	}
	SHLQ(Imm(log2(64*q.bits)), u.codes)
	ADDQ(u.block, u.codes)
	for line := 0; line < 64*q.bits; line += 64 {
		PREFETCHT0(Mem{Base: u.codes, Disp: q.codes + 4096 + line})
	}
	for c := 0; c < 32; c += s.lanes {
		u.column(c)
	}
	ADDQ(U32(1024), u.dst)
	INCQ(at)
	DECQ(left)
	JNZ(u.ref("loop"))
	ret()
}

func log2(n int) uint64 { return uint64(bits.TrailingZeros(uint(n))) }

// constants loads what the loop needs.
func (u *unpack) constants() {
	switch {
	case u.native:
		VMOVUPS(interleave(), u.mask)
	case u.lanes == 16:
		VMOVUPS(vconst(0x00010001), u.one)
		VMOVUPS(vconst(0x80008000), u.half)
		VMOVUPS(vconst(0xffff0000), u.mask)
	default:
		VMOVUPS(vconst(1), u.one)
		VMOVUPS(vconst(0x7fff), u.half)
	}
	if u.bits == 4 {
		if u.lanes == 16 {
			VMOVUPS(codeTable(u.signed), u.t)
		} else {
			VMOVUPS(vconst(15), u.t)
		}
	}
}

// column does the columns of the panel (rows of the weight) from c on, as many as a vector has lanes.
func (u *unpack) column(c int) {
	u.number(u.scale, 0, u.quant.factors, c)
	if u.quant.min {
		u.number(u.min, u.minimum, u.minFactors, c)
	}
	x, y := u.v[0], u.v[1]
	for pair := range 8 {
		if u.bits == 8 {
			u.byteCode(2*pair, c, x)
			u.byteCode(2*pair+1, c, y)
		} else {
			if pair%4 == 0 {
				VMOVUPS(Mem{Base: u.codes, Disp: u.quant.codes + pair/4*128 + 4*c}, u.v[2])
			}
			u.nibble(2*pair%8, x)
			u.nibble(2*pair%8+1, y)
		}
		for _, v := range []reg.VecPhysical{x, y} {
			if u.quant.min {
				VFMADD132PS(u.scale, u.min, v)
			} else {
				VMULPS(u.scale, v, v)
			}
		}
		VMOVUPS(u.round(x, y), Mem{Base: u.dst, Disp: 128*pair + 4*c})
	}
}

// number loads the scales or minima of a vector.
func (u *unpack) number(d reg.VecPhysical, at, factors, c int) {
	VCVTPH2PS(Mem{Base: u.block, Disp: at + 2*c}, d)
	if u.super > 0 {
		VPMOVSXBD(Mem{Base: u.factors, Disp: factors + c}, u.v[3])
		VCVTDQ2PS(u.v[3], u.v[3])
		VMULPS(u.v[3], d, d)
	}
}

func (u *unpack) byteCode(k, c int, d reg.VecPhysical) {
	VPMOVSXBD(Mem{Base: u.codes, Disp: u.quant.codes + 32*k + c}, d)
	VCVTDQ2PS(d, d)
}

// nibble is code k of the dwords in v[2].
func (u *unpack) nibble(k int, d reg.VecPhysical) {
	codes := u.v[2]
	switch {
	case u.lanes == 16: // VPERMPS looks at the low four bits
		if k > 0 {
			VPSRLD(Imm(uint64(4*k)), codes, d)
			codes = d
		}
		VPERMPS(u.t, codes, d)
		return
	case u.signed:
		VPSLLD(Imm(uint64(28-4*k)), codes, d)
		VPSRAD(Imm(28), d, d)
	default:
		VPSRLD(Imm(uint64(4*k)), codes, d)
		VPAND(u.t, d, d)
	}
	VCVTDQ2PS(d, d)
}

// round returns the pairs of x and y rounded to bfloat16, to nearest even; neither holds a NaN.
func (u *unpack) round(x, y reg.VecPhysical) reg.VecPhysical {
	a, b := u.v[3], u.v[4]
	switch {
	case u.native:
		vcvtne2ps2bf16(y, x, x)
		VPERMW(x, u.mask, x)
		return x
	case u.lanes == 16: // on words: high halves in a, low halves in b; one up where b > 0x8000, or = and a is odd
		VPSRLD(Imm(16), x, a)
		VPSLLD(Imm(16), y, b)
		VPTERNLOGD(Imm(0xf8), u.mask, y, a) // a | y&mask
		VPTERNLOGD(Imm(0xf4), u.mask, x, b) // b | x&^mask
		VPANDD(a, u.one, x)
		VPADDUSW(x, b, b)
		VPCMPUW(Imm(6), u.half, b, reg.K1) // greater
		VPADDW(u.one, a, reg.K1, a)
		return a
	default:
		for _, v := range []reg.VecPhysical{x, y} {
			VPSRLD(Imm(16), v, a)
			VPAND(u.one, a, a)
			VPADDD(u.half, a, a)
			VPADDD(a, v, v)
		}
		VPSRLD(Imm(16), x, x)
		VPBLENDW(Imm(0xaa), y, x, x)
		return x
	}
}

// codeTable is the value of each 4-bit code.
func codeTable(signed bool) Mem {
	name := "codes"
	if signed {
		name = "codesSigned"
	}
	return global(name, func(i int) uint32 {
		x := i
		if signed && i >= 8 {
			x = i - 16
		}
		return math.Float32bits(float32(x))
	})
}

// interleave are the places of words 0, 16, 1, 17, ...
func interleave() Mem {
	return global("interleave", func(i int) uint32 { return uint32(i | (i+16)<<16) })
}

var globals = map[string]Mem{}

// global is 64 bytes of dwords.
func global(name string, dword func(i int) uint32) Mem {
	if m, ok := globals[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(dword(i)))
	}
	globals[name] = m
	return m
}

// vcvtne2ps2bf16 rounds high and low, two vectors of float32, to the halves of d.
func vcvtne2ps2bf16(high, low, d reg.VecPhysical) {
	r, v, m := number(d), number(high), number(low)
	p0 := byte(0x02) | (^r>>3&1)<<7 | (^m>>4&1)<<6 | (^m>>3&1)<<5 | (^r>>4&1)<<4
	p1 := ^v&15<<3 | 1<<2 | ppF2
	p2 := byte(0x40) | (^v>>4&1)<<3
	raw(0x62, p0, p1, p2, 0x72, 0xc0|r&7<<3|m&7)
}
