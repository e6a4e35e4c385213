package ptxsim

import "testing"

// Results by hand, of two's complement. A missing cut to the width, or a sign where there is none, shows.
func TestIntegerArithmetic(t *testing.T) {
	run(t, []check{
		{"add.s32 %r, %ra, %rb;", 0x7fffffff, 1, 0, 0x80000000},
		{"add.u32 %r, %ra, %rb;", 0xffffffff, 2, 0, 1},
		{"add.s64 %d, %da, %db;", 0xffffffffffffffff, 2, 0, 1},
		{"add.s16 %h, %ha, %hb;", 0xffff, 2, 0, 1},
		{"add.s32 %r, %ra, -1;", 0, 0, 0, 0xffffffff},
		{"sub.s32 %r, %ra, %rb;", 0, 1, 0, 0xffffffff},
		{"sub.u16 %h, %ha, %hb;", 1, 2, 0, 0xffff},
		{"sub.s64 %d, %da, %db;", 0, 1, 0, 0xffffffffffffffff},
		{"mul.lo.s32 %r, %ra, %rb;", 0x10001, 0x10001, 0, 0x20001},
		{"mul.lo.s64 %d, %da, %db;", 1 << 40, 1<<40 + 1, 0, 1 << 40},
		{"mul.lo.u16 %h, %ha, %hb;", 0x101, 0x101, 0, 0x0201},
		{"mul.hi.u32 %r, %ra, %rb;", 0xffffffff, 0xffffffff, 0, 0xfffffffe},
		{"mul.hi.s32 %r, %ra, %rb;", 0xffffffff, 0xffffffff, 0, 0}, // -1 · -1
		{"mul.hi.s32 %r, %ra, %rb;", 0x80000000, 2, 0, 0xffffffff},
		{"mul.hi.u64 %d, %da, %db;", 1 << 63, 6, 0, 3},
		{"mul.hi.s64 %d, %da, %db;", 1 << 63, 6, 0, 0xfffffffffffffffd},
		{"mul.hi.s64 %d, %da, %db;", 6, 1 << 63, 0, 0xfffffffffffffffd},
		{"mul.wide.s32 %d, %ra, %rb;", 0xffffffff, 3, 0, 0xfffffffffffffffd},
		{"mul.wide.u32 %d, %ra, %rb;", 0xffffffff, 3, 0, 0x2fffffffd},
		{"mul.wide.s16 %r, %ha, %hb;", 0xffff, 3, 0, 0xfffffffd},
		{"mul.wide.u16 %r, %ha, %hb;", 0xffff, 3, 0, 0x2fffd},
		{"mad.lo.s32 %r, %ra, %rb, %rc;", 5, 7, 0xffffffff, 34},
		{"mad.hi.u32 %r, %ra, %rb, %rc;", 1 << 31, 6, 0xffffffff, 2},
		{"mad.wide.s32 %d, %ra, %rb, %dc;", 0xfffffffe, 3, 5, 0xffffffffffffffff},
		{"mad.wide.u32 %d, %ra, -4, %dc;", 2, 0, 1, 0x1fffffff9},
	})
}

func TestIntegerDivisionAndOrder(t *testing.T) {
	run(t, []check{
		{"div.s32 %r, %ra, %rb;", 0xfffffff9, 2, 0, 0xfffffffd}, // -7 / 2 = -3
		{"div.u32 %r, %ra, %rb;", 0xfffffff9, 2, 0, 0x7ffffffc},
		{"div.s32 %r, %ra, %rb;", 0x80000000, 0xffffffff, 0, 0x80000000},
		{"div.u64 %d, %da, %db;", 1 << 40, 3, 0, 0x5555555555},
		{"rem.s32 %r, %ra, %rb;", 0xfffffff9, 2, 0, 0xffffffff}, // -7 % 2 = -1
		{"rem.u32 %r, %ra, %rb;", 0xfffffff9, 2, 0, 1},
		{"rem.s64 %d, %da, %db;", 7, 0xfffffffffffffffe, 0, 1},
		{"min.s32 %r, %ra, %rb;", 0xffffffff, 1, 0, 0xffffffff},
		{"min.u32 %r, %ra, %rb;", 0xffffffff, 1, 0, 1},
		{"max.s64 %d, %da, %db;", 1 << 63, 1, 0, 1},
		{"max.u64 %d, %da, %db;", 1 << 63, 1, 0, 1 << 63},
		{"max.s16 %h, %ha, %hb;", 0x8000, 1, 0, 1},
		{"neg.s32 %r, %ra;", 0x80000000, 0, 0, 0x80000000},
		{"neg.s64 %d, %da;", 1, 0, 0, 0xffffffffffffffff},
		{"abs.s32 %r, %ra;", 0xffffffff, 0, 0, 1},
		{"abs.s16 %h, %ha;", 0x8000, 0, 0, 0x8000},
	})
}

func TestShiftsAndLogic(t *testing.T) {
	run(t, []check{
		{"shl.b32 %r, %ra, %rb;", 3, 31, 0, 0x80000000},
		{"shl.b32 %r, %ra, %rb;", 3, 32, 0, 0}, // a processor would take the amount modulo 32
		{"shl.b32 %r, %ra, %rb;", 3, 0xffffffff, 0, 0},
		{"shl.b64 %d, %da, %rb;", 3, 63, 0, 1 << 63},
		{"shl.b16 %h, %ha, %rb;", 3, 15, 0, 0x8000},
		{"shr.u32 %r, %ra, %rb;", 0x80000000, 32, 0, 0},
		{"shr.s32 %r, %ra, %rb;", 0x80000000, 4, 0, 0xf8000000},
		{"shr.s32 %r, %ra, %rb;", 0x80000000, 99, 0, 0xffffffff},
		{"shr.s64 %d, %da, %rb;", 1 << 63, 64, 0, 0xffffffffffffffff},
		{"shr.b64 %d, %da, %rb;", 1 << 63, 63, 0, 1},
		{"shr.s16 %h, %ha, 15;", 0x8000, 0, 0, 0xffff},
		{"shf.l.wrap.b32 %r, %ra, %rb, %rc;", 0x80000000, 1, 33, 3},
		{"shf.l.clamp.b32 %r, %ra, %rb, %rc;", 0x80000001, 1, 33, 0x80000001},
		{"shf.r.wrap.b32 %r, %ra, %rb, %rc;", 0x12345678, 0x9abcdef0, 8, 0xf0123456},
		{"shf.r.clamp.b32 %r, %ra, %rb, %rc;", 0x12345678, 0x9abcdef0, 40, 0x9abcdef0},
		{"and.b32 %r, %ra, %rb;", 12, 10, 0, 8},
		{"or.b16 %h, %ha, %hb;", 12, 10, 0, 14},
		{"xor.b64 %d, %da, %db;", 12, 10, 0, 6},
		{"not.b32 %r, %ra;", 1, 0, 0, 0xfffffffe},
		{"not.b16 %h, %ha;", 1, 0, 0, 0xfffe},
		{"and.pred %p, %pa, %pb;", 1, 0, 0, 0},
		{"or.pred %p, %pa, %pb;", 1, 0, 0, 1},
		{"xor.pred %p, %pa, %pb;", 1, 1, 0, 0},
		{"not.pred %p, %pa;", 0, 0, 0, 1},
		{"mov.pred %p, %pa;", 1, 0, 0, 1},
		{"popc.b32 %r, %ra;", 0xf00f0001, 0, 0, 9},
		{"popc.b64 %r, %da;", 0xf00000000000000f, 0, 0, 8},
		{"clz.b32 %r, %ra;", 1, 0, 0, 31},
		{"clz.b32 %r, %ra;", 0, 0, 0, 32},
		{"clz.b64 %r, %da;", 1, 0, 0, 63},
		{"brev.b32 %r, %ra;", 0x80000002, 0, 0, 0x40000001},
		{"brev.b64 %d, %da;", 1, 0, 0, 1 << 63},
	})
}

// The table of f(a, b, c) is what f gives for 0xF0, 0xCC and 0xAA, which is how the instruction is defined.
func TestLop3(t *testing.T) {
	const a, b, c = 0x0123456789abcdef & 0xffffffff, 0xdeadbeef, 0x0f0f3355
	run(t, []check{
		{"lop3.b32 %r, %ra, %rb, %rc, 0x80;", a, b, c, a & b & c},
		{"lop3.b32 %r, %ra, %rb, %rc, 0xfe;", a, b, c, a | b | c},
		{"lop3.b32 %r, %ra, %rb, %rc, 0x96;", a, b, c, a ^ b ^ c},
		{"lop3.b32 %r, %ra, %rb, %rc, 0xca;", a, b, c, a&b | ^a&c&0xffffffff},
		{"lop3.b32 %r, %ra, %rb, %rc, 0xf8;", a, b, c, a | b&c},
		{"lop3.b32 %r, %ra, %rb, %rc, 0x0f;", a, b, c, ^a & 0xffffffff},
		{"lop3.b32 %r, %ra, %rb, %rc, 0x33;", a, b, c, ^uint64(b) & 0xffffffff},
		{"lop3.b32 %r, %ra, %rb, %rc, 0x55;", a, b, c, ^uint64(c) & 0xffffffff},
		{"lop3.b32 %r, %ra, %rb, %rc, 0;", a, b, c, 0},
	})
}

// Results by the pseudo code of the manual.
func TestBitFields(t *testing.T) {
	run(t, []check{
		{"bfe.u32 %r, %ra, %rb, %rc;", 0x12345678, 8, 12, 0x456},
		{"bfe.s32 %r, %ra, %rb, %rc;", 0x00000800, 8, 4, 0xfffffff8},
		{"bfe.u32 %r, %ra, %rb, %rc;", 0xffffffff, 4, 0, 0},
		{"bfe.s32 %r, %ra, %rb, %rc;", 0xffffffff, 4, 0, 0},
		{"bfe.u32 %r, %ra, %rb, %rc;", 0xf2345678, 28, 8, 0xf},        // the field ends outside: zeros
		{"bfe.s32 %r, %ra, %rb, %rc;", 0x80000000, 28, 8, 0xfffffff8}, // the sign of a
		{"bfe.s32 %r, %ra, %rb, %rc;", 0x80000000, 40, 8, 0xffffffff},
		{"bfe.u32 %r, %ra, %rb, %rc;", 0x80000000, 40, 8, 0},
		{"bfe.u32 %r, %ra, %rb, %rc;", 0x12345678, 0x108, 0x104, 6}, // only 8 bits of the operands count
		{"bfe.u64 %d, %da, %rb, %rc;", 0x123456789abcdef0, 4, 60, 0x0123456789abcdef},
		{"bfe.s64 %d, %da, %rb, %rc;", 0xf000000000000000, 60, 2, 0xffffffffffffffff},
		{"bfi.b32 %r, %ra, %rb, %rc, 8;", 0xab, 0x11111111, 4, 0x11111ab1},
		{"bfi.b32 %r, %ra, %rb, %rc, 0;", 0xab, 0x11111111, 4, 0x11111111},
		{"bfi.b32 %r, %ra, %rb, %rc, 8;", 0xab, 0x11111111, 28, 0xb1111111},
		{"bfi.b32 %r, %ra, %rb, %rc, 8;", 0xab, 0x11111111, 32, 0x11111111},
		{"bfi.b32 %r, %ra, %rb, %rc, 255;", 0xab, 0x11111111, 0, 0xab},
		{"bfi.b64 %d, %da, %db, %rc, 32;", 0xffffffffdeadbeef, 0x11, 32, 0xdeadbeef00000011},
		{"prmt.b32 %r, %ra, %rb, 0x7610;", 0x33221100, 0x77665544, 0, 0x77661100},
		{"prmt.b32 %r, %ra, %rb, 0x0123;", 0x33221100, 0x77665544, 0, 0x00112233},
		{"prmt.b32 %r, %ra, %rb, 0xb4c8;", 0x80221100, 0x77665581, 0, 0xff81ff00}, // 8 more: the sign of the byte
		{"mov.b32 %r, {%ha, %hb};", 0x1234, 0x5678, 0, 0x56781234},
		{"mov.b64 %d, {%ra, %rb};", 0x1234, 0x5678, 0, 0x0000567800001234},
		{"mov.b64 %d, {%ha, %hb, %hc, %ha};", 1, 2, 3, 0x0001000300020001},
		{"mov.b32 {%h1, %h}, %ra;", 0x56781234, 0, 0, 0x5678},
		{"mov.b64 {_, %r}, %da;", 0x0000567800001234, 0, 0, 0x5678},
	})
}

func TestCompareIntegers(t *testing.T) {
	run(t, []check{
		{"setp.lt.s32 %p, %ra, %rb;", 0xffffffff, 1, 0, 1},
		{"setp.lt.u32 %p, %ra, %rb;", 0xffffffff, 1, 0, 0},
		{"setp.hi.u32 %p, %ra, %rb;", 0xffffffff, 1, 0, 1},
		{"setp.ls.u32 %p, %ra, %rb;", 1, 1, 0, 1},
		{"setp.ge.s64 %p, %da, %db;", 1 << 63, 0, 0, 0},
		{"setp.gt.u64 %p, %da, %db;", 1 << 63, 0, 0, 1},
		{"setp.le.s16 %p, %ha, %hb;", 0x8000, 0, 0, 1},
		{"setp.ne.b16 %p, %ha, %hb;", 0x8000, 0, 0, 1},
		{"setp.eq.s32 %p, %ra, -1;", 0xffffffff, 0, 0, 1},
		{"setp.eq.and.s32 %p, %ra, 1, %pb;", 1, 0, 0, 0},
		{"setp.eq.and.s32 %p, %ra, 1, !%pb;", 1, 0, 0, 1},
		{"setp.eq.or.s32 %p, %ra, 2, %pb;", 1, 1, 0, 1},
		{"setp.eq.xor.s32 %p, %ra, 1, %pb;", 1, 1, 0, 0},
		{"setp.eq.s32 %q|%p, %ra, 1;", 1, 0, 0, 0},
		{"setp.eq.and.s32 %q|%p, %ra, 2, %pb;", 1, 1, 0, 1}, // not(a = 2) and b
		{"setp.eq.and.s32 %q|%p, %ra, 2, %pb;", 1, 0, 0, 0},
		{"selp.b32 %r, %ra, %rb, %pa;", 7, 9, 0, 7},
		{"selp.b64 %d, %da, %db, %pa;", 0, 9, 0, 9},
	})
}
