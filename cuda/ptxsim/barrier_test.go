package ptxsim

import (
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

func launchShape(grid, block [3]int, shared int) driver.Launch {
	return driver.Launch{Grid: grid, Block: block, Shared: shared}
}

func args(p ...driver.Ptr) *driver.Args {
	a := new(driver.Args)
	for _, x := range p {
		a.Ptr(x)
	}
	return a
}

// exchange: each thread writes its number to shared memory and reads that of the thread which %r2 says; between is what
// the test puts there.
func exchange(t *testing.T, partner, between string, n int) ([]uint64, error) {
	t.Helper()
	return try(t, `.shared .align 4 .b8 room[4096];
		mov.u32 %r1, %tid.x;
		`+partner+`
		mov.u32 %r3, room;
		mad.lo.s32 %r4, %r1, 4, %r3;
		mad.lo.s32 %r5, %r2, 4, %r3;
		st.shared.u32 [%r4], %r1;
		`+between+`
		ld.shared.u32 %r, [%r5];`, none(n))
}

const (
	nextWarp = "xor.b32 %r2, %r1, 32;"
	nextLane = "xor.b32 %r2, %r1, 1;"
)

func TestBarrierOrdersSharedMemory(t *testing.T) {
	got, err := exchange(t, nextWarp, "bar.sync 0;", 64)
	if err != nil {
		t.Fatal(err)
	}
	lanesAre(t, "warps", got, func(i int) int { return i ^ 32 })
	if got, err = exchange(t, nextLane, "bar.warp.sync -1;", 32); err != nil {
		t.Fatal(err)
	}
	lanesAre(t, "lanes", got, func(i int) int { return i ^ 1 })
	if _, err = exchange(t, "mov.u32 %r2, %r1;", "", 64); err != nil {
		t.Errorf("a thread reads what it wrote: %v", err)
	}
}

func TestMissingBarrierIsARace(t *testing.T) {
	_, err := exchange(t, nextWarp, "", 64)
	fails(t, err, "kernel k", "race in shared memory", "st.shared.u32", "warp 1", "lane 0", "0x80", "thread 0", "read")
	_, err = exchange(t, nextLane, "", 32)
	fails(t, err, "race in shared memory", "lane 0", "thread 1", "wrote")
	_, err = exchange(t, nextWarp, "bar.warp.sync -1;", 64) // orders lanes, not warps
	fails(t, err, "race in shared memory")
	_, err = exchange(t, nextWarp, "bar.sync 0; st.shared.u32 [%r4], %r1;", 64)
	fails(t, err, "race in shared memory", "read")
}

// sharedRaces are what two warps do, and whether that is a race.
var sharedRaces = []struct{ name, code, race string }{
	{"all write one word", "st.shared.u32 [%r3], %r8;", "wrote"},
	{"one warp writes and another reads", "setp.lt.s32 %q, %r1, 32; @%q st.shared.u32 [%r4], %r8; @!%q ld.shared.u32 %r7, [%r4+-128];", "wrote"},
	{"several read and one writes", "ld.shared.u32 %r7, [%r3]; setp.eq.s32 %q, %r1, 1; @%q st.shared.u32 [%r3], %r8;", "read"},
	{"lanes of one warp read and one writes", `setp.lt.s32 %q, %r1, 2; @%q ld.shared.u32 %r7, [%r3];
			setp.eq.s32 %q, %r1, 1; @%q st.shared.u32 [%r3], %r8;`, "read"},
	{"one lane of each warp reads and the last writes", `and.b32 %r7, %r1, 31; setp.eq.s32 %q, %r7, 0; @%q ld.shared.u32 %r7, [%r3];
			setp.eq.s32 %q, %r1, 32; @%q st.shared.u32 [%r3], %r8;`, "read"},
	{"reads before and behind a barrier", `ld.shared.u32 %r7, [%r3]; bar.sync 0; setp.eq.s32 %q, %r1, 3; @%q ld.shared.u32 %r7, [%r3];
			setp.eq.s32 %q, %r1, 40; @%q st.shared.u32 [%r3], %r8;`, "read"},
	{"an atomic and a write", "atom.shared.add.u32 %r7, [%r3], 1; setp.eq.s32 %q, %r1, 40; @%q st.shared.u32 [%r3], %r8;", "wrote"},
	{"a write beside wide reads", "setp.eq.s32 %q, %r1, 40; @!%q ld.shared.v4.u32 {%r7, %r7, %r7, %r7}, [%r3]; @%q st.shared.u32 [%r3+12], %r8;", "read"},
	{"all read one word", "bar.sync 0; ld.shared.u32 %r7, [%r3];", ""},
	{"neighbours write halves of a word", "st.shared.u16 [%r5], %h1;", ""},
	{"neighbours write bytes of a word", "st.shared.u8 [%r6], %r8;", ""},
	{"a plain write and a volatile load", "st.shared.u32 [%r4], %r8; ld.volatile.shared.u32 %r7, [%r3];", "wrote"},
	{"volatile accesses", "st.volatile.shared.u32 [%r3], %r8; ld.volatile.shared.u32 %r7, [%r3];", ""},
	{"atomics", "atom.shared.add.u32 %r7, [%r3], 1;", ""},
	{"a write, a barrier, a write", "setp.eq.s32 %q, %r1, 0; @%q st.shared.u32 [%r3], %r8; bar.sync 0; setp.eq.s32 %q, %r1, 40; @%q st.shared.u32 [%r3], %r8;", ""},
	{"a warp's reads, its barrier, its write", `setp.lt.s32 %q, %r1, 32; @!%q bra END; ld.shared.u32 %r7, [%r3]; bar.warp.sync -1;
			setp.eq.s32 %q, %r1, 3; @%q st.shared.u32 [%r3], %r8; END:`, ""},
}

func TestSharedRaces(t *testing.T) {
	const room = `.shared .align 16 .b8 room[4096];
		mov.u32 %r1, %tid.x;
		mov.u32 %r3, room;
		mov.u32 %r8, 0;
		mad.lo.s32 %r4, %r1, 4, %r3;
		mad.lo.s32 %r5, %r1, 2, %r3;
		add.s32 %r6, %r1, %r3;
		cvt.u16.u32 %h1, %r1;
		`
	for _, c := range sharedRaces {
		_, err := try(t, room+c.code, none(64))
		if c.race != "" {
			fails(t, err, "race in shared memory", c.race)
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestBarrierNeedsTheWholeWarp(t *testing.T) {
	const half = "mov.u32 %r1, %tid.x; setp.lt.s32 %q, %r1, 16;"
	_, err := try(t, half+"@%q bar.sync 0;", none(32))
	fails(t, err, "kernel k", "bar.sync 0", "only the lanes 0-15 of 0-31 reach the block's barrier")
	_, err = try(t, half+"@%q bra OTHER; bar.sync 0; bra JOIN; OTHER: bar.sync 0; JOIN:", none(32))
	fails(t, err, "wait for each other at different instructions", "lanes 0-15", "lanes 16-31")
	if _, err = try(t, half+"@!%q bra END; bar.sync 0; END:", none(64)[:16]); err != nil {
		t.Errorf("the lanes that there are: %v", err)
	}
	// Lanes that ended are not waited for.
	if _, err = try(t, half+"@!%q ret; bar.sync 0; shfl.sync.idx.b32 %r, %r1, 3, 31, 0xffff;", none(32)); err != nil {
		t.Errorf("the rest of a warp: %v", err)
	}
}

func TestSharedMemoryIsNaNAndBounded(t *testing.T) {
	const room = ".shared .align 4 .b8 room[64]; mov.u32 %r1, room; mov.u32 %r2, 0;"
	if got := threads(t, room+"ld.shared.u32 %r, [%r1];", none(1)); got[0] != 0xffffffff {
		t.Errorf("fresh shared memory is %#x", got[0])
	}
	_, err := try(t, room+"st.shared.u32 [%r1+128], %r2;", none(1))
	fails(t, err, "lane 0", "4 bytes at 0x80", "outside of the 128 bytes of shared memory")
	_, err = try(t, room+"ld.shared.u32 %r, [%r1+2];", none(1))
	fails(t, err, "0x2", "no multiple of 4")
	if got := threads(t, room+"st.shared.u32 [%r1+4], 7; add.s32 %r1, %r1, -4; ld.shared.u32 %r, [%r1+8];", none(1)); got[0] != 7 {
		t.Errorf("a base below 0 that the offset takes back: %#x", got[0])
	}
	if got := threads(t, room+"mov.u64 %d1, room; cvta.shared.u64 %d1, %d1; st.u32 [%d1+8], 9; ld.shared.u32 %r, [%r1+8];", none(1)); got[0] != 9 {
		t.Errorf("a generic address of shared memory: %#x", got[0])
	}
}
