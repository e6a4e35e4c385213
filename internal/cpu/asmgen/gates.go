package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func (s isa) swiglu() {
	k, v := s.text("swiglu", "(y, g, u []float32)", "sets y to g·u/(1+exp(-g))."), s.v
	y, g, u, n := slice("y"), slice("g"), slice("u"), length("y")
	k.holdConsts()
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

func (s isa) swigluGrad() {
	k, v := s.text("swigluGrad", "(dg, du, dy, g, u []float32)",
		"sets dg to dy·u·σ(g)·(1+g·(1-σ(g))) and du to dy·g·σ(g)."), s.v
	dg, du, dy, g, u, n := slice("dg"), slice("du"), slice("dy"), slice("g"), slice("u"), length("dg")
	k.holdConsts()
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
		VMULPS(v[7], v[8], v[8])
		k.store(v[8], at(dg))
		VMULPS(v[4], v[1], v[1])
		k.store(v[1], at(du))
	}, dg, du, dy, g, u)
	ret()
}

// adamw has the constants (grad scale, beta1, 1-beta1, beta2, 1-beta2, 1-lr·wd, lr/(1-beta1^t), 1/sqrt(1-beta2^t),
// eps) in v[6] to v[14].
func (s isa) adamw() {
	k, v := s.text("adamw", "(w, g, m, v []float32, c *[9]float32)",
		"updates w, m and v; the constants are those of adamConsts."), s.v
	w, g, m, moment, n := slice("w"), slice("g"), slice("m"), slice("v"), length("w")
	c := Load(Param("c"), GP64())
	for i := range 9 {
		VBROADCASTSS(Mem{Base: c, Disp: 4 * i}, v[6+i])
	}
	grad, b1, a1, b2, a2, decay, step, corr, eps := v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13], v[14]
	k.loop(n, func() {
		k.load(at(g), v[0])
		VMULPS(grad, v[0], v[0])
		k.load(at(m), v[1])
		VMULPS(b1, v[1], v[1])
		VFMADD231PS(a1, v[0], v[1])
		k.store(v[1], at(m))
		k.load(at(moment), v[2])
		VMULPS(b2, v[2], v[2])
		VMULPS(v[0], v[0], v[0])
		VFMADD231PS(a2, v[0], v[2])
		k.store(v[2], at(moment))
		VSQRTPS(v[2], v[2])
		VFMADD213PS(eps, corr, v[2])
		VMULPS(step, v[1], v[1])
		VDIVPS(v[2], v[1], v[1])
		k.load(at(w), v[3])
		VMULPS(decay, v[3], v[3])
		VSUBPS(v[1], v[3], v[3])
		k.store(v[3], at(w))
	}, w, g, m, moment)
	ret()
}
