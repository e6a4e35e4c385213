package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Instructions that neither avo nor Go's assembler knows, as bytes. Their registers are physical ones, which avo
// leaves alone.

// raw emits one instruction.
func raw(code ...byte) {
	for len(code) >= 4 {
		emit("LONG", U32(uint32(code[0])|uint32(code[1])<<8|uint32(code[2])<<16|uint32(code[3])<<24))
		code = code[4:]
	}
	for _, b := range code {
		emit("BYTE", U8(b))
	}
}

func emit(opcode string, value Op) {
	Instruction(&ir.Instruction{Opcode: opcode, Operands: []Op{value}})
}

// The prefix that selects an instruction of the 0F38 map.
const (
	ppNone = iota
	pp66
	ppF3
	ppF2
)

// vex emits a tile instruction: VEX.128.0F38.W0 with vvvv = v.
func vex(pp, v byte, code ...byte) {
	raw(append([]byte{0xc4, 0xe2, ^v&15<<3 | pp}, code...)...)
}

// mem is base + index + disp, for tiles, whose index is the distance of their rows in bytes. Both are among the
// first eight registers.
type mem struct {
	base, index reg.GPPhysical
	disp        int32
}

// plus is m, disp bytes further on.
func (m mem) plus(disp int32) mem {
	m.disp += disp
	return m
}

// number is a register's number in an instruction.
func number(r reg.Physical) byte { return byte(r.PhysicalIndex()) }

// code is the ModRM byte, the SIB byte and the displacement of m, with tile t.
func (m mem) code(t byte) []byte {
	d := uint32(m.disp)
	return []byte{0x84 | t<<3, number(m.index)<<3 | number(m.base), byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)}
}

// ldtilecfg loads the configuration at RAX.
func ldtilecfg()             { vex(ppNone, 0, 0x49, 0x00) }
func tilerelease()           { vex(ppNone, 0, 0x49, 0xc0) }
func tilezero(t byte)        { vex(ppF2, 0, 0x49, 0xc0|t<<3) }
func tileload(t byte, m mem) { vex(ppF2, 0, append([]byte{0x4b}, m.code(t)...)...) }
func tilestore(t byte, m mem) {
	vex(ppF3, 0, append([]byte{0x4b}, m.code(t)...)...)
}

// tdpbf16ps adds to tile c the product of the bfloat16 pairs of tiles a and b.
func tdpbf16ps(a, b, c byte) { vex(ppF3, b, 0x5c, 0xc0|c<<3|a) }

// vdpbf16ps: d[i] += x[i]·y[i] over the two bfloat16 of each dword.
func vdpbf16ps(x, y, d reg.VecPhysical) {
	r, v, m := number(d), number(y), number(x)
	p0 := byte(0x02) | (^r>>3&1)<<7 | (^m>>4&1)<<6 | (^m>>3&1)<<5 | (^r>>4&1)<<4
	p1 := ^v&15<<3 | 1<<2 | ppF3
	p2 := byte(0x40) | (^v>>4&1)<<3
	raw(0x62, p0, p1, p2, 0x52, 0xc0|r&7<<3|m&7)
}
