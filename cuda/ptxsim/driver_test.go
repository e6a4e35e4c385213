package ptxsim

import (
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

func TestMemoryErrors(t *testing.T) {
	_, err := try(t, "ld.global.u64 %d, [%at+24];", none(1))
	fails(t, err, "kernel k", "ld.global.u64 %d, [%at+24]", "line ", "lane 0", "8 bytes at 0x7f", "in no allocation (byte 24 of an allocation of 24 bytes)")
	_, err = try(t, "mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 8; add.s64 %d1, %d1, %at; ld.global.u64 %d, [%d1+16];", none(3))
	fails(t, err, "lane 2")
	_, err = try(t, "ld.global.u64 %d, [%at+4];", none(1))
	fails(t, err, "lane 0", "no multiple of 8")
	_, err = try(t, "ld.global.v2.u32 {%r1, %r2}, [%at+4];", none(1))
	fails(t, err, "no multiple of 8")
	_, err = try(t, "mov.u64 %d1, 0; ld.global.u32 %r, [%d1];", none(1))
	fails(t, err, "4 bytes at 0x0 are in no allocation")
	_, err = try(t, ".local .align 8 .b8 mine[16]; mov.u64 %d1, mine; st.local.u64 [%d1+16], %da;", none(1))
	fails(t, err, "outside of the 16 bytes of local memory")
}

func TestLocalMemoryAndConstants(t *testing.T) {
	code := `.local .align 8 .b8 mine[16];
		mov.u32 %r1, %tid.x;
		mov.u64 %d1, mine;
		cvta.local.u64 %d1, %d1;
		st.u32 [%d1+8], %r1;
		cvta.to.local.u64 %d2, %d1;
		ld.local.s32 %r, [%d2+8];`
	lanesAre(t, "own memory", threads(t, code, none(32)), func(l int) int { return l })
	if got := threads(t, ".local .align 8 .b8 mine[16]; ld.local.u32 %r, [mine+4];", none(1)); got[0] != 0xffffffff {
		t.Errorf("fresh local memory is %#x", got[0])
	}
	b := load(t, ".const .align 4 .u32 other = 5;\n.const .align 4 .b8 table[12] = {1, 2, 3, 4, 0xff};"+prologue+
		"ld.const.u32 %r1, [table]; ld.const.s8 %r2, [table+4]; ld.const.u32 %r3, [other]; add.s32 %r1, %r1, %r2; add.s32 %r, %r1, %r3;"+epilogue)
	out := b.words(0)
	if err := b.launch(1, 1, 0, out, b.words(0, 0, 0), out); err != nil {
		t.Fatal(err)
	}
	if got := b.read(out, 1)[0]; got != 0x04030201-1+5 {
		t.Errorf("%#x", got)
	}
}

func TestAllocations(t *testing.T) {
	b := load(t, prologue+"ld.global.u64 %d, [%more];"+epilogue)
	out, in, more := b.words(0), b.words(0, 0, 0), b.words(5)
	if fresh, err := b.Alloc(16); err != nil || b.read(fresh, 1)[0] != 0xffffffffffffffff {
		t.Errorf("fresh memory is not NaN: %v", err)
	}
	if err := b.launch(1, 1, 0, out, in, more); err != nil || b.read(out, 1)[0] != 5 {
		t.Fatal(err)
	}
	if err := b.Free(more); err != nil {
		t.Fatal(err)
	}
	fails(t, b.launch(1, 1, 0, out, in, more), "allocation of 8 bytes that was freed")
	fails(t, b.Free(more), "freed before")
	fails(t, b.Free(in+8), "no allocation begins there")
	fails(t, b.CopyOut(make([]byte, 8), more, 0), "copy out", "freed")
	fails(t, b.CopyIn(in, make([]byte, 25), 0), "25 bytes")
	fails(t, b.Copy(in, out, 9, 0), "9 bytes")
	fails(t, b.Fill(0, 0, 1, 0), "in no allocation")
	if _, err := b.Alloc(1 << 25); err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("%v, want out of memory", err)
	}
	free, total, err := b.MemInfo()
	if err != nil || total != 1<<24 || free != 1<<24-8-24-16 {
		t.Errorf("%d of %d bytes are free, %v", free, total, err)
	}
}

func TestFreedMemoryIsUsedAgain(t *testing.T) {
	d, err := NewDriver(1000)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		p, err := d.Alloc(600)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Free(p); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLeaksAndClose(t *testing.T) {
	d, err := NewDriver(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := d.Alloc(40)
	h, _ := d.HostAlloc(8)
	if s := d.Leaks(); !strings.Contains(s, "40 bytes at 0x7f") || !strings.Contains(s, "1 blocks of pinned memory") {
		t.Errorf("leaks: %q", s)
	}
	fails(t, d.HostFree(make([]byte, 8)), "not pinned")
	if err := d.HostFree(h); err != nil {
		t.Fatal(err)
	}
	fails(t, d.HostFree(h), "not pinned")
	if err := d.Free(p); err != nil || d.Leaks() != "" {
		t.Errorf("%v, leaks: %q", err, d.Leaks())
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	fails(t, d.Close(), "closed")
	fails(t, d.CopyIn(p, []byte{1}, 0), "closed")
	_, err = d.Alloc(1)
	fails(t, err, "closed")
	_, err = d.Load(nil)
	fails(t, err, "closed")
}

// static is a kernel of two parameters.
func static(t *testing.T, limits, body string) *bench {
	t.Helper()
	return load(t, ".extern .shared .align 16 .b8 more[];\n.visible .entry k(.param .u64 p, .param .align 8 .b8 v[16])\n"+
		limits+"{"+body+" ret; }")
}

func TestLaunchLimits(t *testing.T) {
	two := args(0, 0)
	for _, c := range []struct {
		grid, block [3]int
		shared      int
		want        string
	}{
		{[3]int{1, 1, 1}, [3]int{32, 32, 1}, 0, ""},
		{[3]int{1, 1, 1}, [3]int{1025, 1, 1}, 0, "axis 0"},
		{[3]int{1, 1, 1}, [3]int{64, 32, 1}, 0, "2048 threads"},
		{[3]int{1, 1, 1}, [3]int{1, 1, 65}, 0, "axis 2"},
		{[3]int{1, 1, 1}, [3]int{0, 1, 1}, 0, "axis 0"},
		{[3]int{0, 1, 1}, [3]int{1, 1, 1}, 0, "grid"},
		{[3]int{1, 65536, 1}, [3]int{1, 1, 1}, 0, "axis 1"},
		{[3]int{1, 1, 65536}, [3]int{1, 1, 1}, 0, "axis 2"},
		{[3]int{1, 1, 1}, [3]int{1, 1, 1}, 48 << 10, ""},
		{[3]int{1, 1, 1}, [3]int{1, 1, 1}, 48<<10 + 1, "SetShared"},
		{[3]int{1, 1, 1}, [3]int{1, 1, 1}, -1, "dynamic shared memory"},
	} {
		b := static(t, "", "")
		err := b.Launch(b.f, launchShape(c.grid, c.block, c.shared), two)
		if c.want != "" {
			fails(t, err, "kernel k", c.want)
		} else if err != nil {
			t.Error(err)
		}
	}
}

func TestLaunchOfKernel(t *testing.T) {
	two, one := args(0, 0), launchShape([3]int{1, 1, 1}, [3]int{1, 1, 1}, 0)
	b := static(t, "", "")
	fails(t, b.Launch(b.f, one, args(0)), "1 arguments, the kernel has 2 parameters")
	fails(t, b.Launch(b.f+1, one, two), "no function")
	b = static(t, ".maxntid 64, 1, 1\n", "")
	fails(t, b.Launch(b.f, launchShape([3]int{1, 1, 1}, [3]int{65, 1, 1}, 0), two), "compiled for at most [64 1 1]")
	b = static(t, "", ".reg .b32 %r; .shared .b8 room[49153]; mov.u32 %r, room;")
	fails(t, b.Launch(b.f, one, two), "49153 bytes of static shared memory")
	b = load(t, ".visible .entry k(.param .align 8 .b8 v[24]) { ret; }")
	fails(t, b.Launch(b.f, one, args(0)), "parameter 0 has 24 bytes")
}

func TestSetShared(t *testing.T) {
	b := load(t, `.extern .shared .align 16 .b8 more[];
		.visible .entry k() {
		.reg .b32 %r<3>;
		.shared .align 4 .b8 room[100];
		mov.u32 %r0, room;
		mov.u32 %r1, more;
		st.shared.u32 [%r1+102396], %r0;
		ret; }`)
	shape := launchShape([3]int{1, 1, 1}, [3]int{1, 1, 1}, 100<<10)
	fails(t, b.Launch(b.f, shape, args()), "more than the 49052 that the function may have")
	if err := b.SetShared(b.f, 100<<10); err != nil {
		t.Fatal(err)
	}
	if err := b.Launch(b.f, shape, args()); err != nil {
		t.Fatal(err)
	}
	shape.Shared--
	fails(t, b.Launch(b.f, shape, args()), "outside of the") // the store is of the last word
	fails(t, b.SetShared(b.f, 163<<10), "more than the device's")
	fails(t, b.SetShared(b.f+1, 0), "no function")
}

func TestCache(t *testing.T) {
	var c Cache
	first, second := load(t, ".visible .entry k() { ret; }", WithCache(&c)), load(t, ".visible .entry k() { ret; }", WithCache(&c))
	if first.modules[0] != second.modules[0] {
		t.Error("a module was parsed twice")
	}
	if load(t, ".visible .entry k() { exit; }", WithCache(&c)).modules[0] == first.modules[0] {
		t.Error("another module is the same")
	}
	if _, err := first.Func(1, "other"); err == nil || !strings.Contains(err.Error(), "no kernel") {
		t.Errorf("%v", err)
	}
	if _, err := first.Func(driver.Module(9), "k"); err == nil {
		t.Error("a module that is not there")
	}
}
