package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func (s isa) axpy() {
	k, v := s.text("axpy", "(y, x []float32, a float32)", "adds a·x to y."), s.v
	y, x, n := slice("y"), slice("x"), length("y")
	k.scalar("a", v[0])
	k.loop(n, func() {
		k.load(at(y), v[1])
		k.load(at(x), v[2])
		VFMADD231PS(v[2], v[0], v[1])
		k.store(v[1], at(y))
	}, y, x)
	ret()
}

func (s isa) scaleTo() {
	k, v := s.text("scaleTo", "(y, x []float32, a float32)", "sets y to a·x."), s.v
	y, x, n := slice("y"), slice("x"), length("y")
	k.scalar("a", v[0])
	k.loop(n, func() {
		k.load(at(x), v[1])
		VMULPS(v[0], v[1], v[1])
		k.store(v[1], at(y))
	}, y, x)
	ret()
}

func (s isa) mulTo() {
	k, v := s.text("mulTo", "(y, x, w []float32, a float32)", "sets y to (a·x)·w."), s.v
	y, x, w, n := slice("y"), slice("x"), slice("w"), length("y")
	k.scalar("a", v[0])
	k.loop(n, func() {
		k.load(at(x), v[1])
		k.load(at(w), v[2])
		VMULPS(v[0], v[1], v[1])
		VMULPS(v[2], v[1], v[1])
		k.store(v[1], at(y))
	}, y, x, w)
	ret()
}

func (s isa) mulAdd() {
	k, v := s.text("mulAdd", "(y, x, w []float32, a float32)", "adds (a·x)·w to y."), s.v
	y, x, w, n := slice("y"), slice("x"), slice("w"), length("y")
	k.scalar("a", v[0])
	k.loop(n, func() {
		k.load(at(x), v[1])
		k.load(at(w), v[2])
		k.load(at(y), v[3])
		VMULPS(v[0], v[1], v[1])
		VFMADD231PS(v[2], v[1], v[3])
		k.store(v[3], at(y))
	}, y, x, w)
	ret()
}

func (s isa) normGrad() {
	k, v := s.text("normGrad", "(dx, dy, w, x []float32, a, b float32)", "adds a·dy·w+b·x to dx."), s.v
	dx, dy, w, x, n := slice("dx"), slice("dy"), slice("w"), slice("x"), length("dx")
	k.scalar("a", v[0])
	k.scalar("b", v[1])
	k.loop(n, func() {
		k.load(at(dx), v[2])
		k.load(at(dy), v[3])
		k.load(at(w), v[4])
		k.load(at(x), v[5])
		VMULPS(v[0], v[3], v[3])
		VFMADD231PS(v[4], v[3], v[2])
		VFMADD231PS(v[5], v[1], v[2])
		k.store(v[2], at(dx))
	}, dx, dy, w, x)
	ret()
}

func (s isa) rotate() {
	k, v := s.text("rotate", "(y1, y2, x1, x2, cos, sin []float32)", "sets y1, y2 to x1, x2 turned forward."), s.v
	y1, y2, x1, x2 := slice("y1"), slice("y2"), slice("x1"), slice("x2")
	cos, sin, n := slice("cos"), slice("sin"), length("y1")
	k.loop(n, func() {
		k.load(at(x1), v[1])
		k.load(at(x2), v[2])
		k.load(at(cos), v[3])
		k.load(at(sin), v[4])
		VMULPS(v[2], v[4], v[5])
		VFMSUB231PS(v[1], v[3], v[5]) // x1·cos - x2·sin
		VMULPS(v[1], v[4], v[6])
		VFMADD231PS(v[2], v[3], v[6]) // x2·cos + x1·sin
		k.store(v[5], at(y1))
		k.store(v[6], at(y2))
	}, y1, y2, x1, x2, cos, sin)
	ret()
}

func (s isa) rotateGrad() {
	k, v := s.text("rotateGrad", "(dx1, dx2, dy1, dy2, cos, sin []float32)",
		"sets dx1, dx2 to dy1, dy2 turned back."), s.v
	d1, d2, y1, y2 := slice("dx1"), slice("dx2"), slice("dy1"), slice("dy2")
	cos, sin, n := slice("cos"), slice("sin"), length("dx1")
	k.loop(n, func() {
		k.load(at(y1), v[1])
		k.load(at(y2), v[2])
		k.load(at(cos), v[3])
		k.load(at(sin), v[4])
		VMULPS(v[2], v[4], v[5])
		VFMADD231PS(v[1], v[3], v[5]) // dy1·cos + dy2·sin
		VMULPS(v[1], v[4], v[6])
		VFMSUB231PS(v[2], v[3], v[6]) // dy2·cos - dy1·sin
		k.store(v[5], at(d1))
		k.store(v[6], at(d2))
	}, d1, d2, y1, y2, cos, sin)
	ret()
}

func (s isa) divBy() {
	k, v := s.text("divBy", "(x []float32, a float32)", "divides x by a."), s.v
	x, n := slice("x"), length("x")
	k.scalar("a", v[0])
	k.loop(n, func() {
		k.load(at(x), v[1])
		VDIVPS(v[0], v[1], v[1])
		k.store(v[1], at(x))
	}, x)
	ret()
}

func (s isa) cutBelow() {
	k, v := s.text("cutBelow", "(x []float32, t float32)", "replaces what is less than t by -Inf."), s.v
	x, n := slice("x"), length("x")
	k.scalar("t", v[0])
	VMOVUPS(vconst(0xff800000), v[3])
	k.loop(n, func() {
		const less = 17
		k.load(at(x), v[1])
		if k.lanes == 16 {
			VCMPPS(Imm(less), v[0], v[1], reg.K2)
			VMOVAPS(v[3], reg.K2, v[1])
		} else {
			VCMPPS(Imm(less), v[0], v[1], v[2])
			VBLENDVPS(v[2], v[3], v[1], v[1])
		}
		k.store(v[1], at(x))
	}, x)
	ret()
}
