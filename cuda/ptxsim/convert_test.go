package ptxsim

import "testing"

func TestConvertFloatToInt(t *testing.T) {
	run(t, []check{
		{"cvt.rni.s32.f32 %r, %ra;", 0x40200000, 0, 0, 2}, // 2.5
		{"cvt.rni.s32.f32 %r, %ra;", 0x40600000, 0, 0, 4}, // 3.5
		{"cvt.rni.s32.f32 %r, %ra;", 0xc0200000, 0, 0, 0xfffffffe},
		{"cvt.rzi.s32.f32 %r, %ra;", 0xc0e80000, 0, 0, 0xfffffff9}, // -7.25
		{"cvt.rmi.s32.f32 %r, %ra;", 0xc0e80000, 0, 0, 0xfffffff8},
		{"cvt.rpi.s32.f32 %r, %ra;", 0xc0e80000, 0, 0, 0xfffffff9},
		{"cvt.rpi.s32.f32 %r, %ra;", 0x40e80000, 0, 0, 8},
		{"cvt.rzi.s32.f32 %r, %ra;", 0x4f32d05e, 0, 0, 0x7fffffff}, // 3e9
		{"cvt.rzi.s32.f32 %r, %ra;", 0xcf32d05e, 0, 0, 0x80000000},
		{"cvt.rzi.u32.f32 %r, %ra;", 0x4f32d05e, 0, 0, 3000000000 - 3000000000%256},
		{"cvt.rzi.u32.f32 %r, %ra;", minus, 0, 0, 0},
		{"cvt.rzi.u32.f32 %r, %ra;", inf, 0, 0, 0xffffffff},
		{"cvt.rzi.s32.f32 %r, %ra;", nan, 0, 0, 0},
		{"cvt.rzi.s64.f32 %d, %ra;", nan, 0, 0, 1 << 63},
		{"cvt.rzi.s32.f64 %r, %da;", 0x7ff8000000000000, 0, 0, 0x80000000},
		{"cvt.rni.u64.f32 %d, %ra;", 0x5f800000, 0, 0, 0xffffffffffffffff}, // 2^64
		{"cvt.rni.s64.f64 %d, %da;", 0x4004000000000000, 0, 0, 2},
		{"cvt.rzi.u16.f32 %h, %ra;", 0x4788b800, 0, 0, 0xffff},    // 70000
		{"cvt.rzi.u8.f32 %r, %ra;", 0x43960000, 0, 0, 255},        // 300
		{"cvt.rni.s8.f32 %r, %ra;", 0xc3480000, 0, 0, 0xffffff80}, // -200
		{"cvt.rni.f32.f32 %r, %ra;", 0x40200000, 0, 0, 0x40000000},
		{"cvt.rmi.f32.f32 %r, %ra;", 0xc0e80000, 0, 0, 0xc1000000},
		{"cvt.rzi.s32.bf16 %r, %ha;", 0xc0e8, 0, 0, 0xfffffff9},
	})
}

func TestConvertIntToInt(t *testing.T) {
	run(t, []check{
		{"cvt.s32.s8 %r, %ra;", 0x180, 0, 0, 0xffffff80},
		{"cvt.u32.u8 %r, %ra;", 0x1ff, 0, 0, 0xff},
		{"cvt.s32.u8 %r, %ra;", 0x80, 0, 0, 0x80},
		{"cvt.s16.s32 %h, %ra;", 0x18000, 0, 0, 0x8000},
		{"cvt.s8.s32 %r, %ra;", 0x180, 0, 0, 0xffffff80},
		{"cvt.u8.s32 %r, %ra;", 0xffffffff, 0, 0, 0xff},
		{"cvt.s64.s32 %d, %ra;", 0x80000000, 0, 0, 0xffffffff80000000},
		{"cvt.u64.u32 %d, %ra;", 0x80000000, 0, 0, 0x80000000},
		{"cvt.u64.u32 %d, %da;", 0x123456789, 0, 0, 0x23456789}, // a register that is wider than the type
		{"cvt.u32.u64 %r, %da;", 0x123456789, 0, 0, 0x23456789},
		{"cvt.u64.s32 %d, %ra;", 0xffffffff, 0, 0, 0xffffffffffffffff},
		{"cvt.sat.u8.s32 %r, %ra;", 0xfffffffb, 0, 0, 0},
		{"cvt.sat.u8.s32 %r, %ra;", 300, 0, 0, 255},
		{"cvt.sat.s8.s32 %r, %ra;", 300, 0, 0, 127},
		{"cvt.sat.s8.s32 %r, %ra;", 0xfffffed4, 0, 0, 0xffffff80}, // -300
		{"cvt.sat.s32.u32 %r, %ra;", 0xffffffff, 0, 0, 0x7fffffff},
		{"cvt.sat.u32.s64 %r, %da;", 0xffffffffffffffff, 0, 0, 0},
		{"cvt.sat.s32.s64 %r, %da;", 1 << 40, 0, 0, 0x7fffffff},
	})
}

func TestConvertToFloat(t *testing.T) {
	run(t, []check{
		{"cvt.rn.f32.s32 %r, %ra;", 0x01000001, 0, 0, 0x4b800000}, // 2^24 + 1: a tie
		{"cvt.rp.f32.s32 %r, %ra;", 0x01000001, 0, 0, 0x4b800001},
		{"cvt.rn.f32.u32 %r, %ra;", 0xffffffff, 0, 0, 0x4f800000},
		{"cvt.rz.f32.u32 %r, %ra;", 0xffffffff, 0, 0, 0x4f7fffff},
		{"cvt.rm.f32.s32 %r, %ra;", 0xfeffffff, 0, 0, 0xcb800001}, // -2^24 - 1
		{"cvt.rn.f32.s32 %r, %ra;", 0xffffffff, 0, 0, minus},
		{"cvt.rn.f32.s64 %r, %da;", 1<<60 + 1<<36 + 1, 0, 0, 0x5d800001}, // 1 above a tie; float64 drops it
		{"cvt.rn.f32.s64 %r, %da;", 1<<60 + 1<<36, 0, 0, 0x5d800000},
		{"cvt.rn.f32.u64 %r, %da;", 0xffffffffffffffff, 0, 0, 0x5f800000},
		{"cvt.rn.f64.s64 %d, %da;", 1<<53 + 1, 0, 0, 0x4340000000000000},
		{"cvt.rn.f64.u64 %d, %da;", 0xffffffffffffffff, 0, 0, 0x43f0000000000000},
		{"cvt.rn.f64.s32 %d, %ra;", 0xffffffff, 0, 0, 0xbff0000000000000},
		{"cvt.rn.f16.s32 %h, %ra;", 2049, 0, 0, 0x6800},
		{"cvt.f64.f32 %d, %ra;", minus, 0, 0, 0xbff0000000000000},
		{"cvt.rn.f32.f64 %r, %da;", 0x3ff0000010000000, 0, 0, one},   // 1 + 2^-24
		{"cvt.rn.f32.f64 %r, %da;", 0x3ff0000010000004, 0, 0, after}, // and 2^-50
		{"cvt.rz.f32.f64 %r, %da;", 0x3ff000001fffffff, 0, 0, one},
		{"cvt.rm.f32.f64 %r, %da;", 0xbff0000000000001, 0, 0, 0xbf800001},
		{"cvt.rp.f32.f64 %r, %da;", 0xbff0000010000000, 0, 0, minus},
		{"cvt.rp.f32.f64 %r, %da;", 0x3ff0000000000001, 0, 0, after},
		{"cvt.rn.f32.f64 %r, %da;", 0x7fefffffffffffff, 0, 0, inf},
		{"cvt.sat.f32.f32 %r, %ra;", 0xc0e80000, 0, 0, 0},
		{"cvt.sat.f32.f32 %r, %ra;", 0x40e80000, 0, 0, one},
		{"cvt.sat.f32.f32 %r, %ra;", nan, 0, 0, 0},
	})
}

func TestConvertHalves(t *testing.T) {
	run(t, []check{
		{"cvt.rn.bf16.f32 %h, %ra;", 0x3f808000, 0, 0, 0x3f80}, // ties
		{"cvt.rn.bf16.f32 %h, %ra;", 0x3f818000, 0, 0, 0x3f82},
		{"cvt.rn.bf16.f32 %h, %ra;", 0x3f808001, 0, 0, 0x3f81},
		{"cvt.rz.bf16.f32 %h, %ra;", 0x3f81ffff, 0, 0, 0x3f81},
		{"cvt.rz.bf16.f32 %h, %ra;", 0xbf81ffff, 0, 0, 0xbf81},
		{"cvt.rn.bf16.f32 %h, %ra;", nan, 0, 0, 0x7fff},
		{"cvt.rn.relu.bf16.f32 %h, %ra;", minus, 0, 0, 0},
		{"cvt.rn.bf16x2.f32 %r, %ra, %rb;", one, 0xc0000000, 0, 0x3f80c000}, // the first is the upper half
		{"cvt.rn.relu.bf16x2.f32 %r, %ra, %rb;", minus, one, 0, 0x3f80},
		{"cvt.rn.f16x2.f32 %r, %ra, %rb;", one, 0xc0000000, 0, 0x3c00c000},
		{"cvt.rn.f16.f32 %h, %ra;", 0x477ff000, 0, 0, 0x7c00}, // 65520
		{"cvt.rz.f16.f32 %h, %ra;", 0x477ff000, 0, 0, 0x7bff},
		{"cvt.rz.f16.f32 %h, %ra;", inf, 0, 0, 0x7c00},
		{"cvt.rn.f16.f64 %h, %da;", 0x3ff0020000001000, 0, 0, 0x3c01}, // 1 + 2^-11 + 2^-40; float32 drops the last
		{"cvt.rn.f16.f64 %h, %da;", 0x3ff001fffffff000, 0, 0, 0x3c00}, // 2^-40 below the tie
		{"cvt.f32.f16 %r, %ha;", 0x0001, 0, 0, 0x33800000},
		{"cvt.f32.bf16 %r, %ha;", 0xbf80, 0, 0, minus},
		{"cvt.rna.tf32.f32 %r, %ra;", 0x3f801000, 0, 0, 0x3f802000}, // ties away from zero
		{"cvt.rna.tf32.f32 %r, %ra;", 0xbf801000, 0, 0, 0xbf802000},
		{"cvt.rna.tf32.f32 %r, %ra;", 0x3f800fff, 0, 0, one},
	})
}
