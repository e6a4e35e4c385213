package main

import (
	. "github.com/mmcloughlin/avo/build"
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

func (s isa) scoreGrad() {
	k, v := s.text("scoreGrad", "(ds, p, dp []float32, d float32)", "sets ds to p·(dp-d)."), s.v
	ds, p, dp, n := slice("ds"), slice("p"), slice("dp"), length("ds")
	k.scalar("d", v[0])
	k.loop(n, func() {
		k.load(at(p), v[1])
		k.load(at(dp), v[2])
		VSUBPS(v[0], v[2], v[2])
		VMULPS(v[1], v[2], v[2])
		k.store(v[2], at(ds))
	}, ds, p, dp)
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
		"adds dy1, dy2 turned back to dx1, dx2."), s.v
	d1, d2, y1, y2 := slice("dx1"), slice("dx2"), slice("dy1"), slice("dy2")
	cos, sin, n := slice("cos"), slice("sin"), length("dx1")
	k.loop(n, func() {
		k.load(at(y1), v[1])
		k.load(at(y2), v[2])
		k.load(at(cos), v[3])
		k.load(at(sin), v[4])
		k.load(at(d1), v[5])
		k.load(at(d2), v[6])
		VFMADD231PS(v[1], v[3], v[5])
		VFMADD231PS(v[2], v[4], v[5])
		VFMADD231PS(v[2], v[3], v[6])
		VFNMADD231PS(v[1], v[4], v[6])
		k.store(v[5], at(d1))
		k.store(v[6], at(d2))
	}, d1, d2, y1, y2, cos, sin)
	ret()
}
