package ptxsim

import "testing"

// workers sets how many blocks run at the same time.
func workers(n int) Option { return func(d *Driver) { d.workers = n } }

// onBlocks runs code in two blocks of 32 threads one after the other; %more is memory of 64 words, %r1 the thread, %r2 the
// block, %r3 the thread over all.
func onBlocks(t *testing.T, code string, options ...Option) ([]uint64, error) {
	t.Helper()
	b := load(t, prologue+`mov.u32 %r1, %tid.x;
		mov.u32 %r2, %ctaid.x;
		mad.lo.s32 %r3, %r2, 32, %r1;
		mad.wide.u32 %d4, %r3, 4, %more;
		mad.wide.u32 %d5, %r3, 2, %more;
		mad.wide.u32 %d6, %r3, 1, %more;
		cvt.u16.u32 %h1, %r3;
		setp.eq.s32 %q, %r2, 0;
		setp.eq.s32 %o, %r2, 1;
		`+code+"ret;}", append(options, workers(1))...)
	more := b.words(make([]uint64, 64)...)
	err := b.launch(2, 32, 0, b.words(make([]uint64, 32)...), b.words(make([]uint64, 96)...), more)
	return b.read(more, 64), err
}

func TestGlobalRaces(t *testing.T) {
	for _, c := range []struct {
		name, code, race string
	}{
		{"both write", "st.global.u32 [%more], %r2;", "block (1,0,0) writes 4 bytes at 0x7f"},
		{"both write the same value", "st.global.u32 [%more], 1;", "which block (0,0,0) writes"},
		{"one reads what the other wrote", "@%q st.global.u32 [%more+8], %r2; @%o ld.global.u32 %r4, [%more+8];", "reads"},
		{"one writes what the other read", "@%q ld.global.u32 %r4, [%more+8]; @%o st.global.u32 [%more+8], %r2;", "which block (0,0,0) reads"},
		{"one writes what both read", "ld.global.u32 %r4, [%more+8]; @%o st.global.u32 [%more+8], %r2;", "which other blocks read"},
		{"a wide store over the other's word", "@%q st.global.u32 [%more+8], %r2; @%o st.global.v4.u32 [%more], {%r2, %r2, %r2, %r2};", "writes 16 bytes"},
		{"an atomic and a store", "@%q red.global.add.u32 [%more], 1; @%o st.global.u32 [%more], %r2;", "updates atomically"},
		{"a store and an atomic", "@%q st.global.u32 [%more], %r2; @%o red.global.add.u32 [%more], 1;", "updates 4 bytes"},
		{"a load and an atomic", "@%q ld.global.u32 %r4, [%more]; @%o red.global.add.u32 [%more], 1;", "which block (0,0,0) reads"},
		{"atomics and a load", "red.global.add.u32 [%more], 1; @%o ld.global.u32 %r4, [%more];", "which other blocks update atomically"},
		{"each its word", "st.global.u32 [%d4], %r3; ld.global.u32 %r4, [%d4];", ""},
		{"each its half of a word", "st.global.u16 [%d5+2], %h1;", ""},
		{"each its byte", "st.global.u8 [%d6+1], %r3;", ""},
		{"both read", "ld.global.u32 %r4, [%more];", ""},
		{"atomics", "red.global.add.u32 [%more], 1;", ""},
		{"volatile", "@%q st.volatile.global.u32 [%more], 1; @%o ld.volatile.global.u32 %r4, [%more];", ""},
		{"a plain and a volatile load", "ld.global.u32 %r4, [%more]; ld.volatile.global.u32 %r4, [%more];", ""},
		{"a volatile load of what the other wrote", "@%q st.global.u32 [%more], 1; @%o ld.volatile.global.u32 %r4, [%more];", "which block (0,0,0) writes"},
		{"one block alone", "@%q st.global.u32 [%more], %r1; @%q red.global.add.u32 [%more], 1; @%q ld.global.u32 %r4, [%more];", ""},
	} {
		_, err := onBlocks(t, c.code)
		if c.race != "" {
			fails(t, err, "race in global memory", c.race, "in the same launch")
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := onBlocks(t, c.code, WithoutGlobalRaces()); err != nil {
			t.Errorf("%s, not looked for: %v", c.name, err)
		}
	}
}

// What several blocks did is not taken for what block 0 did.
func TestTraceOfSeveralBlocks(t *testing.T) {
	const launch = 7 << 32
	for _, state := range []uint64{traceShared, traceCounter} {
		if _, ok := join(launch|state, launch, writes); ok {
			t.Errorf("state %#x: block 0 may write", state)
		}
	}
	if _, ok := join(launch|traceCounter, launch, reads); ok {
		t.Error("block 0 may read what others update")
	}
}

// A launch may touch what the one before it touched.
func TestLaunchesDoNotRace(t *testing.T) {
	b := load(t, prologue+"mov.u32 %r1, %ctaid.x; st.global.u64 [%more], %da; ret;}")
	more, in := b.words(0), b.words(make([]uint64, 3)...)
	for range 3 {
		if err := b.launch(1, 1, 0, more, in, more); err != nil {
			t.Fatal(err)
		}
	}
}

// first is v in lane 0, and f elsewhere.
func first(v int, f func(l int) int) func(l int) int {
	return func(l int) int {
		if l == 0 {
			return v
		}
		return f(l)
	}
}

// The value that each of the lanes finds and the last one, by hand. Lanes are in ascending order.
func TestAtomics(t *testing.T) {
	for _, c := range []struct {
		code        string
		first, want uint64
		old         func(l int) int
	}{
		{"atom.global.add.u32 %r, [%more], 3;", 5, 5 + 3*32, func(l int) int { return 5 + 3*l }},
		{"atom.global.add.u64 %d, [%more], 3;", 1 << 32, 1<<32 + 3*32, func(l int) int { return 1<<32 + 3*l }},
		{"atom.global.exch.b32 %r, [%more], %r1;", 99, 31, first(99, func(l int) int { return l - 1 })},
		{"atom.global.min.s32 %r, [%more], %r2;", 4, 0xffffffe1, first(4, func(l int) int { return int(uint32(1 - l)) })},
		{"atom.global.max.u32 %r, [%more], %r2;", 4, 0xffffffff, first(4, func(l int) int { return []int{4, 0xffffffff}[min(l-1, 1)] })},
		{"atom.global.inc.u32 %r, [%more], 9;", 0, 2, func(l int) int { return l % 10 }},
		{"atom.global.dec.u32 %r, [%more], 9;", 0, 8, func(l int) int { return (100 - l) % 10 }},
		{"atom.global.cas.b32 %r, [%more], %r1, %r3;", 0, 32, func(l int) int { return l }},
		{"atom.global.and.b32 %r, [%more], -3;", 7, 5, first(7, func(int) int { return 5 })},
		{"atom.global.xor.b32 %r, [%more], 1;", 7, 7, func(l int) int { return 7 - l%2 }},
		{"red.global.or.b32 [%more], %r1;", 0, 31, func(int) int { return 0 }},
		{"red.global.add.f32 [%more], 0f3F800000;", 0, 0x42000000, func(int) int { return 0 }},
		{"red.global.add.f64 [%more], 0d3FF0000000000000;", 0, 0x4040000000000000, func(int) int { return 0 }},
		{"red.global.add.noftz.bf16x2 [%more], %r4;", 0, 0x42003f80 &^ 0xffff, func(int) int { return 0 }},
	} {
		b := load(t, prologue+`mov.u32 %r1, %tid.x;
			neg.s32 %r2, %r1;
			add.s32 %r3, %r1, 1;
			mov.u32 %r4, 0x3f800000;
			`+c.code+epilogue)
		out, more := b.words(make([]uint64, 32)...), b.words(c.first)
		if err := b.launch(1, 32, 0, out, b.words(make([]uint64, 96)...), more); err != nil {
			t.Errorf("%s: %v", c.code, err)
			continue
		}
		lanesAre(t, c.code, b.read(out, 32), c.old)
		if got := b.read(more, 1)[0]; got != c.want {
			t.Errorf("%s leaves %#x, want %#x", c.code, got, c.want)
		}
	}
}

// Blocks that run at the same time lose no update.
func TestAtomicsOfManyBlocks(t *testing.T) {
	b := load(t, prologue+"red.global.add.u32 [%more], 1; ret;}", workers(4))
	more := b.words(0)
	if err := b.launch(200, 64, 0, more, b.words(make([]uint64, 3*64)...), more); err != nil {
		t.Fatal(err)
	}
	if got := b.read(more, 1)[0]; got != 200*64 {
		t.Errorf("%d, want %d", got, 200*64)
	}
}
