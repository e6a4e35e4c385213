package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The registers of the parameters scale and shift.
const scale, shift = 13, 14

func (k *kernel) scaleShift() {
	k.scalar("scale", k.v[scale])
	k.scalar("shift", k.v[shift])
}

// argument loads scale·x - shift.
func (k *kernel) argument(x reg.GPVirtual, d reg.VecPhysical) {
	k.load(at(x), d)
	VFMSUB213PS(k.v[shift], k.v[scale], d)
}

// normal is the least x whose exponential is a normal number.
const normal = -87.33654

// expConsts are the constants of exp, in the order in which holdConsts puts them into registers.
var expConsts = []float32{
	normal, 89, 1.44269504088896341, 0.693359375, -2.12194440e-4, 1.9875691500e-4,
	1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1,
}

// holdConsts loads the constants of exp into the registers from Z20 on, where there are so many.
func (k *kernel) holdConsts() {
	if k.lanes == 16 {
		for i, c := range expConsts {
			VMOVUPS(f32(c), zs[20+i])
		}
	}
}

// expConst is constant i of exp.
func (k *kernel) expConst(i int) Op {
	if k.lanes == 16 {
		return zs[20+i]
	}
	return f32(expConsts[i])
}

// exp replaces x by its exponential; it uses n, t, and either K2 or v[10], and what holdConsts has loaded. The reduction
// by ln 2 in two parts and the polynomial of degree 6 are Cephes' expf. What would be below the normal numbers is 0: it
// makes no difference to a sum of exponentials, and subnormal results cost ten times as much. NaN stays NaN.
func (k *kernel) exp(x, n, t reg.VecPhysical) {
	const notLess = 5 // true for NaN
	c := k.expConst
	if k.lanes == 16 {
		VCMPPS(Imm(notLess), c(0), x, reg.K2)
	} else {
		VCMPPS(Imm(notLess), c(0), x, k.v[10])
		VMOVUPS(c(0), t)
		VMAXPS(x, t, x) // the second source is what a NaN comparison returns
	}
	VMOVAPS(c(1), t)
	VMINPS(x, t, x)
	VMULPS(c(2), x, n)
	if k.lanes == 16 {
		VRNDSCALEPS(Imm(0), n, n)
	} else {
		VROUNDPS(Imm(0), n, n)
	}
	VFNMADD231PS(c(3), n, x)
	VFNMADD231PS(c(4), n, x)
	VMOVAPS(c(5), t)
	for i := range 5 {
		VFMADD213PS(c(6+i), x, t)
	}
	VMULPS(x, t, t)
	VFMADD213PS(x, x, t) // x + x²·poly
	VADDPS(c(11), t, t)
	k.scaleByPower(x, n, t)
}

// scaleByPower sets x to t·2^n where exp's comparison holds, elsewhere to 0.
func (k *kernel) scaleByPower(x, n, t reg.VecPhysical) {
	if k.lanes == 16 {
		VSCALEFPS_Z(n, t, reg.K2, x)
		return
	}
	// two factors, each a normal number
	VCVTPS2DQ(n, n)
	VPSRAD(Imm(1), n, x)
	VPSUBD(x, n, n)
	for _, e := range []reg.VecPhysical{x, n} {
		VPADDD(vconst(127), e, e)
		VPSLLD(Imm(23), e, e)
		VMULPS(e, t, t)
	}
	VANDPS(k.v[10], t, x)
}

func (s isa) expSum() {
	k, v := s.text("expSum", "(dst, x []float32, scale, shift float32) float32",
		"writes exp(scale·x-shift) and returns its sum; lane and order of an element depend on its index alone."), s.v
	dst, x, n := slice("dst"), slice("x"), length("dst")
	k.scaleShift()
	k.zero(v[0])
	k.holdConsts()
	k.loop(n, func() {
		k.argument(x, v[1])
		k.exp(v[1], v[2], v[3])
		k.clip(v[1])
		k.store(v[1], at(dst))
		VADDPS(v[1], v[0], v[0])
	}, dst, x)
	k.sum(0, v[0], v[1])
	ret()
}

func (s isa) expSums() {
	k, v := s.text("expSums", "(x []float32, scale, shift float32) (sum, dot float32)",
		"returns the sums of exp(t) and exp(t)·t, t = scale·x-shift."), s.v
	x, n := slice("x"), length("x")
	k.scaleShift()
	k.zero(v[0])
	k.zero(v[4])
	k.holdConsts()
	k.loop(n, func() {
		k.argument(x, v[1])
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

func (s isa) expGrad() {
	k, v := s.text("expGrad", "(x []float32, scale, shift, c0, c1 float32)",
		"replaces x by exp(t)·(c0+c1·t), t = scale·x-shift."), s.v
	x, n := slice("x"), length("x")
	k.scaleShift()
	k.scalar("c0", v[11])
	k.scalar("c1", v[12])
	k.holdConsts()
	k.loop(n, func() {
		k.argument(x, v[1])
		VMOVAPS(v[1], v[5])
		k.exp(v[1], v[2], v[3])
		VFMADD213PS(v[11], v[12], v[5])
		VMULPS(v[5], v[1], v[1])
		k.store(v[1], at(x))
	}, x)
	ret()
}

func (s isa) expAdd() {
	k, v := s.text("expAdd", "(y, x []float32, scale, shift, a float32)", "adds a·exp(scale·x-shift) to y."), s.v
	y, x, n := slice("y"), slice("x"), length("y")
	k.scaleShift()
	k.scalar("a", v[12])
	k.holdConsts()
	k.loop(n, func() {
		k.argument(x, v[1])
		k.exp(v[1], v[2], v[3])
		k.load(at(y), v[4])
		VFMADD231PS(v[1], v[12], v[4])
		k.store(v[4], at(y))
	}, y, x)
	ret()
}

func (s isa) divergence() {
	k, v := s.text("divergence", "(x, r []float32, scale, shift, rshift float32) float32",
		"returns the sum of exp(u)·(u-t), t = scale·x-shift, u = scale·r-rshift."), s.v
	x, r, n := slice("x"), slice("r"), length("x")
	k.scaleShift()
	k.scalar("rshift", v[12])
	k.zero(v[0])
	k.holdConsts()
	k.loop(n, func() {
		k.argument(x, v[5])
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
