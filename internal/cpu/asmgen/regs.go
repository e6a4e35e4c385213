package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var zs = []reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

var ys = []reg.VecPhysical{
	reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
}

// consts are the read-only vectors made so far, by bit pattern.
var consts = map[uint32]Mem{}

// vconst returns 64 bytes of memory that repeat one dword.
func vconst(bits uint32) Mem {
	if m, ok := consts[bits]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("v%08x", bits), RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(bits))
	}
	consts[bits] = m
	return m
}

// labels makes label names of one function.
type labels string

func (l labels) at(s string)              { Label(string(l) + "_" + s) }
func (l labels) ref(s string) LabelRef    { return LabelRef(string(l) + "_" + s) }
func bytesOf(r reg.Register) reg.Register { SHLQ(Imm(2), r); return r }
