package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// scores is a kernel over rows of a block of attention scores. Row r has a number of leading elements that count,
// sees[r]-from; the others become zero. Whole vectors are read and written up to the width, rounded up.
type scores struct {
	*kernel
	blocks             []reg.GPVirtual // pointers to the current row
	vectors, size      reg.GPVirtual   // of a row
	stride, rows, sees reg.GPVirtual
	from               reg.GPVirtual
	perRow             []reg.GPVirtual // pointers to one number a row
}

// Registers of the masks.
const (
	lane = 8 // 0, 1, 2, ...
	left = 9 // how many elements from the current vector on count
)

// scoreRows begins a kernel with the parameters that all of them have; blocks and perRow name the others.
func (k *kernel) scoreRows(blocks, perRow []string) *scores {
	s := &scores{kernel: k}
	load := func(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }
	for _, name := range blocks {
		s.blocks = append(s.blocks, load(name))
	}
	s.stride, s.rows, s.vectors, s.sees, s.from = load("stride"), load("rows"), load("width"), load("sees"), load("from")
	for _, name := range perRow {
		s.perRow = append(s.perRow, load(name))
	}
	SHLQ(Imm(2), s.stride)
	ADDQ(Imm(uint64(k.lanes-1)), s.vectors)
	SHRQ(Imm(shiftOf(k.lanes)), s.vectors)
	k.holdConsts()
	VMOVUPS(laneNumbers(), k.v[lane])
	return s
}

func shiftOf(lanes int) uint64 {
	if lanes == 16 {
		return 4
	}
	return 3
}

// each runs body for each row and moves on to the next.
func (s *scores) each(body func()) {
	s.at("row")
	TESTQ(s.rows, s.rows)
	JZ(s.ref("end"))
	body()
	for _, p := range s.blocks {
		ADDQ(s.stride, p)
	}
	for _, p := range append(s.perRow, s.sees) {
		ADDQ(Imm(4), p)
	}
	DECQ(s.rows)
	JMP(s.ref("row"))
	s.at("end")
}

// vectorLoop runs body for each vector of the row, with copies of the pointers to it; mask has what the body needs.
func (s *scores) vectorLoop(label string, body func(at []Mem)) {
	n, count := GP32(), GP64()
	MOVL(Mem{Base: s.sees}, n)
	SUBL(s.from.As32(), n)
	if s.lanes == 16 {
		VPBROADCASTD(n, s.v[left])
	} else {
		VMOVD(n, s.v[left].AsX())
		VPBROADCASTD(s.v[left].AsX(), s.v[left])
	}
	MOVQ(s.vectors, count)
	var at []Mem
	var pointers []reg.GPVirtual
	for _, p := range s.blocks {
		q := GP64()
		MOVQ(p, q)
		pointers, at = append(pointers, q), append(at, Mem{Base: q})
	}
	s.kernel.at(label)
	if s.lanes == 16 {
		VPCMPGTD(s.v[lane], s.v[left], reg.K3)
	} else {
		VPCMPGTD(s.v[lane], s.v[left], s.v[15])
	}
	body(at)
	if s.lanes == 16 {
		VPSUBD(vconst(16), s.v[left], s.v[left])
	} else {
		VPSUBD(vconst(8), s.v[left], s.v[left])
	}
	for _, q := range pointers {
		ADDQ(Imm(uint64(4*s.lanes)), q)
	}
	DECQ(count)
	JNZ(s.ref(label))
}

// keep zeroes the elements that do not count.
func (s *scores) keep(x reg.VecPhysical) {
	if s.lanes == 16 {
		VMOVAPS_Z(x, reg.K3, x)
	} else {
		VANDPS(s.v[15], x, x)
	}
}

var lanes *Mem

// laneNumbers is 0, 1, 2, ... in memory.
func laneNumbers() Mem {
	if lanes == nil {
		m := GLOBL("lanes", RODATA|NOPTR)
		for i := range 16 {
			DATA(4*i, U32(uint32(i)))
		}
		lanes = &m
	}
	return *lanes
}

func (s isa) softmax() {
	k, v := s.text("softmax", "(x *float32, stride, rows, width int, sees *int32, from int, top, sum, scale *float32)",
		"takes a block of scores into an online softmax."), s.v
	r := k.scoreRows([]string{"x"}, []string{"top", "sum", "scale"})
	top, sum, scale := Mem{Base: r.perRow[0]}, Mem{Base: r.perRow[1]}, Mem{Base: r.perRow[2]}
	r.each(func() {
		VMOVUPS(vconst(0xff800000), v[0])
		r.vectorLoop("max", func(at []Mem) {
			if k.lanes == 16 {
				VMAXPS(at[0], v[0], reg.K3, v[0])
				return
			}
			VMOVUPS(at[0], v[1])
			VBLENDVPS(v[15], v[1], v[0], v[1])
			VMAXPS(v[1], v[0], v[0])
		})
		k.fold(v[0], v[1], maxOp)
		VBROADCASTSS(v[0].AsX(), v[shift])
		VBROADCASTSS(top, v[6])
		VMAXPS(v[6], v[shift], v[shift])
		VSUBPS(v[shift], v[6], v[1])
		k.exp(v[1], v[2], v[3])
		VMOVAPS(v[1], v[7])
		k.zero(v[0])
		r.vectorLoop("exp", func(at []Mem) {
			VMOVUPS(at[0], v[1])
			VSUBPS(v[shift], v[1], v[1])
			k.exp(v[1], v[2], v[3])
			r.keep(v[1])
			VMOVUPS(v[1], at[0])
			VADDPS(v[1], v[0], v[0])
		})
		k.fold(v[0], v[1], addOp)
		VMOVSS(sum, v[6].AsX())
		VFMADD231SS(v[6].AsX(), v[7].AsX(), v[0].AsX())
		VMOVSS(v[shift].AsX(), top)
		VMOVSS(v[0].AsX(), sum)
		VMOVSS(v[7].AsX(), scale)
	})
	ret()
}

func (s isa) scoreGrad() {
	k, v := s.text("scoreGrad", "(ds, p *float32, stride, rows, width int, sees *int32, from int, lse, delta *float32)",
		"turns a block of scores into probabilities and the gradients of the scores."), s.v
	r := k.scoreRows([]string{"ds", "p"}, []string{"lse", "delta"})
	r.each(func() {
		VBROADCASTSS(Mem{Base: r.perRow[0]}, v[shift])
		VBROADCASTSS(Mem{Base: r.perRow[1]}, v[12])
		r.vectorLoop("vector", func(at []Mem) {
			VMOVUPS(at[1], v[1])
			VSUBPS(v[shift], v[1], v[1])
			k.exp(v[1], v[2], v[3])
			r.keep(v[1])
			VMOVUPS(v[1], at[1])
			VMOVUPS(at[0], v[4])
			VSUBPS(v[12], v[4], v[4])
			VMULPS(v[1], v[4], v[4])
			r.keep(v[4])
			VMOVUPS(v[4], at[0])
		})
	})
	ret()
}
