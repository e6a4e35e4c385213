package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func at(p reg.GPVirtual) Mem { return Mem{Base: p} }

// reductions: maximum and dot products.
func (s isa) reductions() {
	v := s.v
	{
		k := s.text("maxOf", "(x []float32) float32", "returns the largest element, -Inf for none.")
		x, n := slice("x"), length("x")
		VMOVUPS(vconst(0xff800000), v[0])
		k.loop(n, func() {
			k.load(at(x), v[1])
			switch {
			case !k.masked:
				VMAXPS(v[1], v[0], v[0])
			case k.lanes == 16:
				VMAXPS(v[1], v[0], reg.K1, v[0])
			default:
				VBLENDVPS(v[15], v[1], v[0], v[1])
				VMAXPS(v[1], v[0], v[0])
			}
		}, x)
		k.fold(v[0], v[1], maxOp)
		VMOVSS(v[0].AsX(), address(ReturnIndex(0)))
		ret()
	}
	{
		k := s.text("dot", "(x, y []float32) float32", "returns the sum of x·y.")
		x, y, n := slice("x"), slice("y"), length("x")
		const unroll = 4
		for i := range unroll {
			k.zero(v[i])
		}
		k.at("wide")
		CMPQ(n, U32(uint32(unroll*k.lanes)))
		JL(k.ref("loop"))
		for i := range unroll {
			VMOVUPS(at(x).Offset(4*k.lanes*i), v[4+i])
			VFMADD231PS(at(y).Offset(4*k.lanes*i), v[4+i], v[i])
		}
		ADDQ(U32(uint32(4*unroll*k.lanes)), x)
		ADDQ(U32(uint32(4*unroll*k.lanes)), y)
		SUBQ(U32(uint32(unroll*k.lanes)), n)
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
	{
		k := s.text("dot3", "(x, y, w []float32) float32", "returns the sum of x·y·w.")
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
	s.sumSquares()
}

// sumSquares accumulates in float64.
func (s isa) sumSquares() {
	v := s.v
	k := s.text("sumSquares", "(x []float32) float64", "returns the sum of x², accumulated in float64.")
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

// exponentials: everything over t = scale·x - shift.
func (s isa) exponentials() {
	v := s.v
	const scale, shift = 13, 14
	t := func(k *kernel, x reg.GPVirtual, d reg.VecPhysical) {
		k.load(at(x), d)
		VFMSUB213PS(v[shift], v[scale], d)
	}
	{
		k := s.text("expSum", "(dst, x []float32, scale, shift float32) float32",
			"writes exp(scale·x-shift) and returns its sum; lane and order of an element depend on its index alone.")
		dst, x, n := slice("dst"), slice("x"), length("x")
		k.scalar("scale", v[scale])
		k.scalar("shift", v[shift])
		k.zero(v[0])
		k.loop(n, func() {
			t(k, x, v[1])
			k.exp(v[1], v[2], v[3])
			k.clip(v[1])
			k.store(v[1], at(dst))
			VADDPS(v[1], v[0], v[0])
		}, dst, x)
		k.sum(0, v[0], v[1])
		ret()
	}
	{
		k := s.text("expSums", "(x []float32, scale, shift float32) (sum, dot float32)",
			"returns the sums of exp(t) and exp(t)·t, t = scale·x-shift.")
		x, n := slice("x"), length("x")
		k.scalar("scale", v[scale])
		k.scalar("shift", v[shift])
		k.zero(v[0])
		k.zero(v[4])
		k.loop(n, func() {
			t(k, x, v[1])
			VMOVAPS(v[1], v[5])
			k.exp(v[1], v[2], v[3])
			k.clip(v[1])
			VADDPS(v[1], v[0], v[0])
			VFMADD231PS(v[1], v[5], v[4])
		}, x)
		k.sum(0, v[0], v[1])
		k.sum(1, v[4], v[1])
		ret()
	}
	{
		k := s.text("expGrad", "(x []float32, scale, shift, c0, c1 float32)",
			"replaces x by exp(t)·(c0+c1·t), t = scale·x-shift.")
		x, n := slice("x"), length("x")
		k.scalar("scale", v[scale])
		k.scalar("shift", v[shift])
		k.scalar("c0", v[11])
		k.scalar("c1", v[12])
		k.loop(n, func() {
			t(k, x, v[1])
			VMOVAPS(v[1], v[5])
			k.exp(v[1], v[2], v[3])
			VFMADD213PS(v[11], v[12], v[5])
			VMULPS(v[5], v[1], v[1])
			k.store(v[1], at(x))
		}, x)
		ret()
	}
	{
		k := s.text("expAdd", "(y, x []float32, scale, shift, a float32)", "adds a·exp(scale·x-shift) to y.")
		y, x, n := slice("y"), slice("x"), length("x")
		k.scalar("scale", v[scale])
		k.scalar("shift", v[shift])
		k.scalar("a", v[12])
		k.loop(n, func() {
			t(k, x, v[1])
			k.exp(v[1], v[2], v[3])
			k.load(at(y), v[4])
			VFMADD231PS(v[1], v[12], v[4])
			k.store(v[4], at(y))
		}, y, x)
		ret()
	}
	{
		k := s.text("divergence", "(x, r []float32, scale, shift, rshift float32) float32",
			"returns the sum of exp(u)·(u-t), t = scale·x-shift, u = scale·r-rshift.")
		x, r, n := slice("x"), slice("r"), length("x")
		k.scalar("scale", v[scale])
		k.scalar("shift", v[shift])
		k.scalar("rshift", v[12])
		k.zero(v[0])
		k.loop(n, func() {
			t(k, x, v[5])
			k.load(at(r), v[1])
			VFMSUB213PS(v[12], v[scale], v[1])
			VSUBPS(v[5], v[1], v[5])
			k.exp(v[1], v[2], v[3])
			k.clip(v[1])
			VFMADD231PS(v[1], v[5], v[0])
		}, x, r)
		k.sum(0, v[0], v[1])
		ret()
	}
}

// rows: linear operations on rows.
func (s isa) rows() {
	v := s.v
	{
		k := s.text("axpy", "(y, x []float32, a float32)", "adds a·x to y.")
		y, x, n := slice("y"), slice("x"), length("x")
		k.scalar("a", v[0])
		k.loop(n, func() {
			k.load(at(y), v[1])
			k.load(at(x), v[2])
			VFMADD231PS(v[2], v[0], v[1])
			k.store(v[1], at(y))
		}, y, x)
		ret()
	}
	{
		k := s.text("scaleTo", "(y, x []float32, a float32)", "sets y to a·x.")
		y, x, n := slice("y"), slice("x"), length("x")
		k.scalar("a", v[0])
		k.loop(n, func() {
			k.load(at(x), v[1])
			VMULPS(v[0], v[1], v[1])
			k.store(v[1], at(y))
		}, y, x)
		ret()
	}
	{
		k := s.text("mulTo", "(y, x, w []float32, a float32)", "sets y to (a·x)·w.")
		y, x, w, n := slice("y"), slice("x"), slice("w"), length("x")
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
	{
		k := s.text("mulAdd", "(y, x, w []float32, a float32)", "adds (a·x)·w to y.")
		y, x, w, n := slice("y"), slice("x"), slice("w"), length("x")
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
	{
		k := s.text("normGrad", "(dx, dy, w, x []float32, a, b float32)", "adds a·dy·w+b·x to dx.")
		dx, dy, w, x, n := slice("dx"), slice("dy"), slice("w"), slice("x"), length("x")
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
	{
		k := s.text("scoreGrad", "(ds, p, dp []float32, d float32)", "sets ds to p·(dp-d).")
		ds, p, dp, n := slice("ds"), slice("p"), slice("dp"), length("p")
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
	s.rotations()
}

// rotations turn the pairs (x1[i], x2[i]).
func (s isa) rotations() {
	v := s.v
	{
		k := s.text("rotate", "(y1, y2, x1, x2, cos, sin []float32)", "sets y1, y2 to x1, x2 turned forward.")
		y1, y2, x1, x2, c, sn, n := slice("y1"), slice("y2"), slice("x1"), slice("x2"), slice("cos"), slice("sin"), length("x1")
		k.loop(n, func() {
			k.load(at(x1), v[1])
			k.load(at(x2), v[2])
			k.load(at(c), v[3])
			k.load(at(sn), v[4])
			VMULPS(v[2], v[4], v[5])
			VFMSUB231PS(v[1], v[3], v[5]) // x1·cos - x2·sin
			VMULPS(v[1], v[4], v[6])
			VFMADD231PS(v[2], v[3], v[6]) // x2·cos + x1·sin
			k.store(v[5], at(y1))
			k.store(v[6], at(y2))
		}, y1, y2, x1, x2, c, sn)
		ret()
	}
	{
		k := s.text("rotateGrad", "(dx1, dx2, dy1, dy2, cos, sin []float32)", "adds dy1, dy2 turned back to dx1, dx2.")
		d1, d2, y1, y2, c, sn, n := slice("dx1"), slice("dx2"), slice("dy1"), slice("dy2"), slice("cos"), slice("sin"), length("dy1")
		k.loop(n, func() {
			k.load(at(y1), v[1])
			k.load(at(y2), v[2])
			k.load(at(c), v[3])
			k.load(at(sn), v[4])
			k.load(at(d1), v[5])
			k.load(at(d2), v[6])
			VFMADD231PS(v[1], v[3], v[5])
			VFMADD231PS(v[2], v[4], v[5])
			VFMADD231PS(v[2], v[3], v[6])
			VFNMADD231PS(v[1], v[4], v[6])
			k.store(v[5], at(d1))
			k.store(v[6], at(d2))
		}, d1, d2, y1, y2, c, sn)
		ret()
	}
}

// gates: SwiGLU and its gradient.
func (s isa) gates() {
	v := s.v
	{
		k := s.text("swiglu", "(y, g, u []float32)", "sets y to g·u/(1+exp(-g)).")
		y, g, u, n := slice("y"), slice("g"), slice("u"), length("y")
		k.loop(n, func() {
			k.load(at(g), v[4])
			k.zero(v[1])
			VSUBPS(v[4], v[1], v[1])
			k.exp(v[1], v[2], v[3])
			VADDPS(f32(1), v[1], v[1])
			VDIVPS(v[1], v[4], v[4])
			k.load(at(u), v[5])
			VMULPS(v[5], v[4], v[4])
			k.store(v[4], at(y))
		}, y, g, u)
		ret()
	}
	{
		k := s.text("swigluGrad", "(dg, du, dy, g, u []float32)",
			"adds dy·u·σ(g)·(1+g·(1-σ(g))) to dg and dy·g·σ(g) to du.")
		dg, du, dy, g, u, n := slice("dg"), slice("du"), slice("dy"), slice("g"), slice("u"), length("dy")
		k.loop(n, func() {
			k.load(at(g), v[4])
			k.zero(v[1])
			VSUBPS(v[4], v[1], v[1])
			VMOVUPS(f32(88), v[6])
			VMINPS(v[1], v[6], v[1]) // keeps exp(-g) finite, and a NaN
			k.exp(v[1], v[2], v[3])
			VMOVUPS(f32(1), v[6])
			VADDPS(v[6], v[1], v[2])
			VMOVAPS(v[1], v[7])
			VDIVPS(v[2], v[6], v[1]) // σ
			VMULPS(v[1], v[7], v[7]) // 1-σ = exp(-g)·σ
			VFMADD213PS(v[6], v[4], v[7])
			k.load(at(dy), v[5])
			VMULPS(v[5], v[1], v[1]) // dy·σ
			k.load(at(u), v[8])
			VMULPS(v[1], v[8], v[8])
			k.load(at(dg), v[9])
			VFMADD231PS(v[7], v[8], v[9])
			k.store(v[9], at(dg))
			k.load(at(du), v[10])
			VFMADD231PS(v[4], v[1], v[10])
			k.store(v[10], at(du))
		}, dg, du, dy, g, u)
		ret()
	}
}

// optimiser: AdamW with the constants (grad scale, beta1, 1-beta1, beta2, 1-beta2, 1-lr·wd, lr/(1-beta1^t),
// 1/sqrt(1-beta2^t), eps).
func (s isa) optimiser() {
	v := s.v
	k := s.text("adamw", "(w, g, m, v []float32, c *[9]float32)", "updates w, m and v; the constants are those of adamConsts.")
	w, g, m, vv, n := slice("w"), slice("g"), slice("m"), slice("v"), length("w")
	c := Load(Param("c"), GP64())
	consts := 6
	for i := range 9 {
		VBROADCASTSS(Mem{Base: c, Disp: 4 * i}, v[consts+i])
	}
	scale, b1, a1, b2, a2, decay, step, corr, eps := v[consts], v[consts+1], v[consts+2], v[consts+3], v[consts+4], v[consts+5], v[consts+6], v[consts+7], v[consts+8]
	k.loop(n, func() {
		k.load(at(g), v[0])
		VMULPS(scale, v[0], v[0])
		k.load(at(m), v[1])
		VMULPS(b1, v[1], v[1])
		VFMADD231PS(a1, v[0], v[1])
		k.store(v[1], at(m))
		k.load(at(vv), v[2])
		VMULPS(b2, v[2], v[2])
		VMULPS(v[0], v[0], v[0])
		VFMADD231PS(a2, v[0], v[2])
		k.store(v[2], at(vv))
		VSQRTPS(v[2], v[2])
		VFMADD213PS(eps, corr, v[2])
		VMULPS(step, v[1], v[1])
		VDIVPS(v[2], v[1], v[1])
		k.load(at(w), v[3])
		VMULPS(decay, v[3], v[3])
		VSUBPS(v[1], v[3], v[3])
		k.store(v[3], at(w))
	}, w, g, m, vv)
	ret()
}
