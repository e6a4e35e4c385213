package ptxsim

import "testing"

// Some float32.
const (
	one, minus, nan, inf = 0x3f800000, 0xbf800000, 0x7fc00000, 0x7f800000
	after                = 0x3f800001 // 1 + 2^-23
	half24               = 0x33800000 // 2^-24
)

// Rounded by hand; a sum of two roundings, or a product that is rounded before it is added, shows.
func TestFloatArithmetic(t *testing.T) {
	run(t, []check{
		{"add.f32 %r, %ra, %rb;", one, half24, 0, one},          // a tie to even
		{"add.f32 %r, %ra, %rb;", after, half24, 0, 0x3f800002}, // a tie to even
		{"add.f32 %r, %ra, %rb;", one, half24 + 1, 0, after},    // above the tie
		{"add.rp.f32 %r, %ra, %rb;", one, 1, 0, after},          // 1 + 2^-149
		{"add.rm.f32 %r, %ra, %rb;", minus, 0x80000001, 0, 0xbf800001},
		{"add.rz.f32 %r, %ra, %rb;", one, 0x33ffffff, 0, one},
		{"sub.rn.f32 %r, %ra, %rb;", one, after, 0, 0xb4000000}, // -2^-23
		{"sub.rz.f32 %r, %ra, %rb;", one, 1, 0, 0x3f7fffff},
		{"mul.f32 %r, %ra, %rb;", after, after, 0, 0x3f800002},
		{"mul.rp.f32 %r, %ra, %rb;", after, after, 0, 0x3f800003},
		{"mul.f32 %r, %ra, %rb;", 0x0d800000, 0x26c00000, 0, 1}, // 0.75 of the least subnormal
		{"mul.ftz.f32 %r, %ra, %rb;", 0x0d800000, 0x26c00000, 0, 0},
		{"add.ftz.f32 %r, %ra, %rb;", 0x80000005, 0x80000005, 0, 0x80000000},
		{"add.sat.f32 %r, %ra, %rb;", one, one, 0, one},
		{"mul.sat.f32 %r, %ra, %rb;", one, nan, 0, 0},
		{"div.rn.f32 %r, %ra, %rb;", one, 0x40400000, 0, 0x3eaaaaab},
		{"div.approx.f32 %r, %ra, %rb;", one, 0, 0, inf},
		{"fma.rn.f32 %r, %ra, %rb, %rc;", 0x3f800800, 0x3f800800, 0xbf801000, half24}, // (1+2^-12)^2 - (1+2^-11)
		{"fma.rn.f32 %r, %ra, %rb, %rc;", after, 0x337ffffe, after, after},            // 2^-70 below a tie
		{"fma.rn.f32 %r, %ra, %rb, %rc;", 0xbf800001, 0x337ffffe, 0xbf800001, 0xbf800001},
		{"fma.rn.f32 %r, %ra, %rb, %rc;", 0x0d800000, 0x26800000, 0, 0}, // half of the least subnormal
		{"fma.rn.f32 %r, %ra, %rb, %rc;", 0x0d800000, 0x26c00000, 0, 1},
		{"fma.rn.f32 %r, %ra, %rb, %rc;", 0x1a000001, 0x19fffffe, 0x00400001, 0x00400001}, // 2^-196 below a tie of subnormals
		{"fma.rn.f32 %r, %ra, %rb, %rc;", inf, one, minus, inf},
		{"fma.rm.f32 %r, %ra, %rb, %rc;", one, one, half24, one},
		{"fma.rp.f32 %r, %ra, %rb, %rc;", one, one, half24, after},
		{"fma.rp.f32 %r, %ra, %rb, %rc;", after, 0x337ffffe, one, after},
		{"fma.rz.f32 %r, %ra, %rb, %rc;", minus, one, 0xb3800000, minus},
		{"mad.rn.f32 %r, %ra, %rb, %rc;", one, one, one, 0x40000000},
		{"add.f64 %d, %da, %db;", 0x3fb999999999999a, 0x3fc999999999999a, 0, 0x3fd3333333333334}, // 0.1 + 0.2
		{"fma.rn.f64 %d, %da, %db, %dc;", 0x3ff0000000000001, 0x3ff0000000000001, 0xbff0000000000002, 0x3970000000000000},
		{"div.rn.f64 %d, %da, %db;", 0x3ff0000000000000, 0x4008000000000000, 0, 0x3fd5555555555555},
		{"neg.f32 %r, %ra;", nan, 0, 0, 0xffc00000},
		{"abs.f32 %r, %ra;", 0x80000000, 0, 0, 0},
		{"abs.f64 %d, %da;", 1 << 63, 0, 0, 0},
		{"copysign.f32 %r, %ra, %rb;", minus, 0x40000000, 0, 0xc0000000},
	})
}

func TestFloatMinMaxCompare(t *testing.T) {
	run(t, []check{
		{"min.f32 %r, %ra, %rb;", nan, one, 0, one},
		{"max.f32 %r, %ra, %rb;", one, nan, 0, one},
		{"min.NaN.f32 %r, %ra, %rb;", nan, one, 0, 0x7fffffff},
		{"max.NaN.f32 %r, %ra, %rb;", minus, one, 0, one},
		{"min.f32 %r, %ra, %rb;", 0, 0x80000000, 0, 0x80000000},
		{"max.f32 %r, %ra, %rb;", 0x80000000, 0, 0, 0},
		{"min.f64 %d, %da, %db;", 0x7ff8000000000000, 0x3ff0000000000000, 0, 0x3ff0000000000000},
		{"max.f64 %d, %da, %db;", 1 << 63, 0, 0, 0},
		{"max.f64 %d, %da, %db;", 0x3ff0000000000000, 0xbff0000000000000, 0, 0x3ff0000000000000},
		{"min.f64 %d, %da, %db;", 0x3ff0000000000000, 0xbff0000000000000, 0, 0xbff0000000000000},
		{"setp.lt.f32 %p, %ra, %rb;", minus, one, 0, 1},
		{"setp.lt.f32 %p, %ra, %rb;", nan, one, 0, 0},
		{"setp.ge.f32 %p, %ra, %rb;", nan, one, 0, 0},
		{"setp.geu.f32 %p, %ra, %rb;", nan, one, 0, 1},
		{"setp.ltu.f32 %p, %ra, %rb;", one, one, 0, 0},
		{"setp.ltu.f32 %p, %ra, %rb;", nan, one, 0, 1},
		{"setp.ne.f32 %p, %ra, %rb;", nan, one, 0, 0},
		{"setp.neu.f32 %p, %ra, %rb;", nan, one, 0, 1},
		{"setp.equ.f32 %p, %ra, %rb;", nan, one, 0, 1},
		{"setp.eq.f32 %p, %ra, %rb;", 0x80000000, 0, 0, 1},
		{"setp.num.f32 %p, %ra, %rb;", one, nan, 0, 0},
		{"setp.nan.f32 %p, %ra, %rb;", one, nan, 0, 1},
		{"setp.gtu.f64 %p, %da, %db;", 0x7ff8000000000000, 0, 0, 1},
		{"setp.leu.f64 %p, %da, %db;", 0x3ff0000000000000, 0, 0, 0},
	})
}

// Results by Python's math, rounded to float32.
func TestFunctions(t *testing.T) {
	const three = 0x40400000
	run(t, []check{
		{"rcp.rn.f32 %r, %ra;", three, 0, 0, 0x3eaaaaab},
		{"rcp.approx.f32 %r, %ra;", 0x80000000, 0, 0, 0xff800000},
		{"rcp.approx.ftz.f64 %d, %da;", 0x4008000000000000, 0, 0, 0x3fd5555500000000}, // the upper half
		{"sqrt.rn.f32 %r, %ra;", 0x40000000, 0, 0, 0x3fb504f3},
		{"sqrt.rn.f64 %d, %da;", 0x4000000000000000, 0, 0, 0x3ff6a09e667f3bcd},
		{"rsqrt.approx.f32 %r, %ra;", three, 0, 0, 0x3f13cd3a},
		{"ex2.approx.f32 %r, %ra;", 0x3f000000, 0, 0, 0x3fb504f3},
		{"ex2.approx.f32 %r, %ra;", 0xc2fe0000, 0, 0, 0x00400000}, // 2^-127
		{"ex2.approx.ftz.f32 %r, %ra;", 0xc2fe0000, 0, 0, 0},
		{"ex2.approx.ftz.f32 %r, %ra;", 0xff800000, 0, 0, 0},
		{"lg2.approx.f32 %r, %ra;", three, 0, 0, 0x3fcae00d},
		{"lg2.approx.f32 %r, %ra;", 0, 0, 0, 0xff800000},
		{"sin.approx.f32 %r, %ra;", one, 0, 0, 0x3f576aa4},
		{"cos.approx.f32 %r, %ra;", one, 0, 0, 0x3f0a5140},
		{"tanh.approx.f32 %r, %ra;", one, 0, 0, 0x3f42f7d6},
	})
}

// bfloat16 1 is 3f80, float16 1 is 3c00.
func TestHalves(t *testing.T) {
	run(t, []check{
		{"add.bf16 %h, %ha, %hb;", 0x3f80, 0x3b80, 0, 0x3f80}, // 1 + 2^-8: a tie
		{"add.bf16x2 %r, %ra, %rb;", 0x3f813f80, 0x3b803b80, 0, 0x3f823f80},
		{"mul.f16 %h, %ha, %hb;", 0x3c01, 0x3c01, 0, 0x3c02},
		{"fma.rn.f16 %h, %ha, %hb, %hc;", 0x3c01, 0x3c01, 0xbc02, 0x0010},  // 2^-20 is 16 · 2^-24
		{"fma.rn.bf16 %h, %ha, %hb, %hc;", 0x3f81, 0x3f81, 0xbf82, 0x3880}, // 2^-14
		{"fma.rn.bf16x2 %r, %ra, %rb, %rc;", 0x3f813f80, 0x3f813f80, 0xbf823f80, 0x38804000},
		{"fma.rn.bf16 %h, %ha, %hb, %hc;", 0x3f81, 0x3b80, 0x3f80, 0x3f81}, // 1 + 2^-8 + 2^-15: above a tie
		{"max.bf16x2 %r, %ra, %rb;", 0x7fc03f80, 0x3f80bf80, 0, 0x3f803f80},
		{"min.f16 %h, %ha, %hb;", 0xbc00, 0x3c00, 0, 0xbc00},
		{"neg.bf16x2 %r, %ra;", 0x3f80bf80, 0, 0, 0xbf803f80},
		{"abs.f16x2 %r, %ra;", 0xbc003c00, 0, 0, 0x3c003c00},
		{"setp.lt.bf16 %p, %ha, %hb;", 0xbf80, 0x3f80, 0, 1},
		{"ex2.approx.f16 %h, %ha;", 0x4200, 0, 0, 0x4800}, // 2^3
	})
}
