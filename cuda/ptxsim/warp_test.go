package ptxsim

import (
	"fmt"
	"strings"
	"testing"
)

// lanesAre compares what the threads left with a function of the lane.
func lanesAre(t *testing.T, what string, got []uint64, want func(lane int) int) {
	t.Helper()
	for l, v := range got {
		if v != uint64(want(l)) {
			t.Errorf("%s: lane %d has %d, want %d", what, l, v, want(l))
		}
	}
}

// Each lane gives its number and gets another's, and 100 more if that one is in its segment. The expectations are the
// manual's rules, written out for each mode.
func TestShuffle(t *testing.T) {
	for _, c := range shuffles {
		code := fmt.Sprintf(`mov.u32 %%r1, %%tid.x;
			shfl.sync.%s.b32 %%r2|%%q, %%r1, %d, %d, -1;
			selp.b32 %%r3, 100, 0, %%q;
			add.s32 %%r, %%r2, %%r3;`, c.mode, c.by, c.c)
		lanesAre(t, fmt.Sprint(c.mode, c.by, c.c), threads(t, code, none(32)), c.want)
		code = strings.Replace(fmt.Sprintf("mov.u32 %%r4, %d;", c.by)+code, fmt.Sprintf("%%r1, %d,", c.by), "%r1, %r4,", 1)
		lanesAre(t, fmt.Sprint(c.mode, " by a register"), threads(t, code, none(32)), c.want)
	}
}

const segments = 0x1800 // of 8 lanes

var shuffles = []struct {
	mode  string
	by, c int
	want  func(l int) int
}{
	{"up", 1, 0, func(l int) int {
		if l == 0 {
			return 0
		}
		return l - 1 + 100
	}},
	{"up", 3, segments, func(l int) int {
		if l%8 < 3 {
			return l
		}
		return l - 3 + 100
	}},
	{"down", 1, 31, func(l int) int {
		if l == 31 {
			return 31
		}
		return l + 1 + 100
	}},
	{"down", 7, segments | 31, func(l int) int {
		if l%8 > 0 {
			return l
		}
		return l + 7 + 100
	}},
	{"down", 1, 15, func(l int) int { // the last lane is 15
		if l >= 15 {
			return l
		}
		return l + 1 + 100
	}},
	{"bfly", 16, 31, func(l int) int { return (l+16)%32 + 100 }},
	{"bfly", 16, segments | 31, func(l int) int {
		if l < 16 {
			return l
		}
		return l - 16 + 100 // below the segment is allowed
	}},
	{"idx", 5, 31, func(int) int { return 105 }},
	{"idx", 9, segments | 31, func(l int) int { return l/8*8 + 1 + 100 }},
	{"idx", 20, 15, func(l int) int { return l }},
}

// Two halves with masks of their own meet at one instruction, and at two.
func TestShuffleOfHalves(t *testing.T) {
	const setup = `mov.u32 %r1, %tid.x;
		setp.lt.s32 %q, %r1, 16;
		selp.b32 %r2, 0xffff, 0xffff0000, %q;`
	swapped := func(l int) int { return l ^ 1 }
	lanesAre(t, "one place", threads(t, setup+"shfl.sync.bfly.b32 %r, %r1, 1, 31, %r2;", none(32)), swapped)
	lanesAre(t, "two places", threads(t, setup+`@%q bra LOW;
		shfl.sync.bfly.b32 %r, %r1, 1, 31, %r2;
		bra JOIN;
		LOW:
		shfl.sync.bfly.b32 %r, %r1, 1, 31, %r2;
		JOIN:`, none(32)), swapped)
}

// Lanes that wait go on when the others come from below, though there are more that wait elsewhere.
func TestLanesMeetThoseThatJumpBack(t *testing.T) {
	lanesAre(t, "meet", threads(t, `mov.u32 %r1, %tid.x;
		setp.ge.s32 %q, %r1, 16;
		@%q bra THIRD;
		setp.lt.s32 %q, %r1, 8;
		@%q bra FAR;
		NEAR:
		shfl.sync.bfly.b32 %r, %r1, 8, 31, 0xffff;
		bra END;
		FAR:
		mov.u32 %r2, 1;
		bra NEAR;
		THIRD:
		mov.u32 %r, 99;
		END:
		shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;`, none(32)), func(l int) int {
		if l >= 16 {
			return 99
		}
		return l ^ 8
	})
}

func TestShuffleErrors(t *testing.T) {
	_, err := try(t, `mov.u32 %r1, %tid.x;
		setp.lt.s32 %q, %r1, 16;
		@%q shfl.sync.idx.b32 %r, %r1, 20, 31, 0xffff;`, none(32))
	fails(t, err, "lane 0", "value of lane 20", "not here")
	_, err = try(t, `mov.u32 %r1, %tid.x;
		setp.lt.s32 %q, %r1, 16;
		@%q shfl.sync.idx.b32 %r, %r1, 2, 31, -1;`, none(32))
	fails(t, err, "names the lanes 0-31", "those here are 0-15")
	_, err = try(t, `mov.u32 %r1, %tid.x;
		setp.lt.s32 %q, %r1, 16;
		@%q bra LOW;
		shfl.sync.idx.b32 %r, %r1, 2, 31, -1;
		bra JOIN;
		LOW:
		shfl.sync.idx.b32 %r, %r1, 2, 31, -1;
		JOIN:`, none(32))
	fails(t, err, "wait for each other", "lanes 0-15", "lanes 16-31")
}

func TestVote(t *testing.T) {
	const odd = "mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 1; setp.ne.s32 %q, %r1, 0;"
	same := func(v int) func(int) int { return func(int) int { return v } }
	lanesAre(t, "ballot", threads(t, odd+"vote.sync.ballot.b32 %r, %q, -1;", none(32)), same(0xaaaaaaaa))
	lanesAre(t, "not", threads(t, odd+"vote.sync.ballot.b32 %r, !%q, -1;", none(32)), same(0x55555555))
	lanesAre(t, "any", threads(t, odd+"vote.sync.any.pred %p, %q, -1;", none(32)), same(1))
	lanesAre(t, "all", threads(t, odd+"vote.sync.all.pred %p, %q, -1;", none(32)), same(0))
	lanesAre(t, "uni", threads(t, odd+"vote.sync.uni.pred %p, %q, -1;", none(32)), same(0))
	lanesAre(t, "uni of none", threads(t, "vote.sync.uni.pred %p, %pa, -1;", none(32)), same(1))
	lanesAre(t, "half a warp", threads(t, odd+"vote.sync.ballot.b32 %r, %q, 0xffff;", none(16)), same(0xaaaa))
	lanesAre(t, "branch", threads(t, odd+`@!%q bra EVEN;
		vote.sync.ballot.b32 %r, %q, 0xaaaaaaaa;
		EVEN:`, none(32)), func(l int) int { return l % 2 * 0xaaaaaaaa })
	lanesAre(t, "active", threads(t, odd+`@!%q bra EVEN;
		activemask.b32 %r;
		EVEN:`, none(32)), func(l int) int { return l % 2 * 0xaaaaaaaa })
}

// Lane l goes l times through a loop in which odd lanes take a branch; all meet again behind it.
func TestDivergence(t *testing.T) {
	code := `mov.u32 %r1, %tid.x;
		mov.u32 %r2, 0;
		mov.u32 %r3, 0;
		and.b32 %r4, %r1, 1;
		setp.ne.s32 %o, %r4, 0;
		LOOP:
		setp.ge.s32 %q, %r2, %r1;
		@%q bra DONE;
		@%o bra ODD;
		add.s32 %r3, %r3, 1;
		bra NEXT;
		ODD:
		add.s32 %r3, %r3, 10;
		NEXT:
		add.s32 %r2, %r2, 1;
		bra LOOP;
		DONE:
		activemask.b32 %r5;
		setp.ne.s32 %q, %r5, -1;
		selp.b32 %r6, 1000, 0, %q;
		add.s32 %r, %r3, %r6;`
	lanesAre(t, "loop", threads(t, code, none(32)), func(l int) int {
		if l%2 == 1 {
			return 10 * l
		}
		return l
	})
}

// A register that is written in the first pass of a loop and read in all must keep its place, though what follows it in the
// code might use it.
func TestRegistersCarriedByALoop(t *testing.T) {
	code := `mov.u32 %r1, 0;
		LOOP:
		setp.ne.s32 %q, %r1, 0;
		@%q bra LATER;
		mov.u32 %r2, 42;
		LATER:
		add.s32 %r, %r, %r2;
		add.s32 %r3, %r1, 7;
		add.s32 %r4, %r3, %r3;
		add.s32 %r1, %r1, 1;
		setp.lt.s32 %q, %r1, 3;
		@%q bra LOOP;`
	lanesAre(t, "loop", threads(t, code, none(3)), func(int) int { return 126 })
}

func TestSpecialRegisters(t *testing.T) {
	for name, want := range map[string]func(l int) int{
		"%tid.x": func(l int) int { return l }, "%tid.y": func(int) int { return 0 }, "%ntid.x": func(int) int { return 32 },
		"%ntid.z": func(int) int { return 1 }, "%ctaid.x": func(int) int { return 0 }, "%nctaid.x": func(int) int { return 1 },
		"%laneid": func(l int) int { return l }, "%warpid": func(int) int { return 0 }, "%nwarpid": func(int) int { return 1 },
		"%lanemask_eq": func(l int) int { return 1 << l }, "%lanemask_lt": func(l int) int { return 1<<l - 1 },
		"%lanemask_le": func(l int) int { return 2<<l - 1 }, "%lanemask_gt": func(l int) int { return 1<<32 - 2<<l },
		"%lanemask_ge": func(l int) int { return 1<<32 - 1<<l },
	} {
		lanesAre(t, name, threads(t, "mov.u32 %r, "+name+";", none(32)), want)
	}
}

// Blocks of 3x2 threads on a grid of 2x2x2: the threads' numbers are in the order of the manual.
func TestGridAndBlock(t *testing.T) {
	b := load(t, `
.visible .entry k(.param .u64 out)
{
	.reg .b32 %r<20>;
	.reg .b64 %d<4>;
	ld.param.u64 %d1, [out];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %tid.y;
	mad.lo.s32 %r3, %r2, 3, %r1;
	mov.u32 %r4, %ctaid.x;
	mov.u32 %r5, %ctaid.y;
	mov.u32 %r6, %ctaid.z;
	mad.lo.s32 %r7, %r6, 2, %r5;
	mad.lo.s32 %r7, %r7, 2, %r4;
	mad.lo.s32 %r8, %r7, 6, %r3;
	mad.wide.u32 %d2, %r8, 8, %d1;
	mad.lo.s32 %r9, %r7, 100, %r3;
	cvt.u64.u32 %d3, %r9;
	st.global.u64 [%d2], %d3;
	ret;
}`)
	out := b.words(make([]uint64, 48)...)
	l := launchShape([3]int{2, 2, 2}, [3]int{3, 2, 1}, 0)
	if err := b.Launch(b.f, l, args(out)); err != nil {
		t.Fatal(err)
	}
	lanesAre(t, "grid", b.read(out, 48), func(i int) int { return i/6*100 + i%6 })
}
