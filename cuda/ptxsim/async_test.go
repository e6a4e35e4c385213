package ptxsim

import "testing"

// copies: each thread starts a copy of 8 bytes to its place in shared memory, and reads them after what the test puts between.
func copies(t *testing.T, start, between string, n int) ([]uint64, error) {
	t.Helper()
	var in [][3]uint64
	for i := range n {
		in = append(in, [3]uint64{uint64(i)<<32 | 7, 4, 0})
	}
	return try(t, `.shared .align 16 .b8 room[1024];
		mov.u32 %r1, %tid.x;
		mov.u32 %r2, room;
		mad.lo.s32 %r3, %r1, 8, %r2;
		xor.b32 %r4, %r1, 32;
		mad.lo.s32 %r4, %r4, 8, %r2;
		`+start+"\n"+between+`
		ld.shared.u64 %d, [%r3];`, in)
}

const (
	start8 = "cp.async.ca.shared.global [%r3], [%at], 8;"
	await  = "cp.async.commit_group; cp.async.wait_group 0;"
)

func TestAsyncCopy(t *testing.T) {
	whole := func(i int) int { return i<<32 | 7 }
	for _, c := range []struct {
		name, start, between string
		want                 func(i int) int
	}{
		{"a group", start8, await, whole},
		{"all", start8, "cp.async.wait_all;", whole},
		{"half is zeros", "cp.async.ca.shared.global [%r3], [%at], 8, %rb;", await, func(int) int { return 7 }},
		{"all is zeros, from nowhere", "mov.u64 %d1, 0; cp.async.ca.shared.global [%r3], [%d1], 8, 0;", await, func(int) int { return 0 }},
		{"an older group of two", start8 + "cp.async.commit_group; cp.async.ca.shared.global [%r3+512], [%at], 8;",
			"cp.async.commit_group; cp.async.wait_group 1;", whole},
	} {
		got, err := copies(t, c.start, c.between, 32)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		lanesAre(t, c.name, got, c.want)
	}
}

// What is read too early is NaN, not luck.
func TestAsyncCopyWithoutWait(t *testing.T) {
	for _, between := range []string{"", "cp.async.commit_group;", "cp.async.commit_group; cp.async.wait_group 1;", "cp.async.wait_group 0;"} {
		got, err := copies(t, start8, between, 1)
		if err != nil || got[0] != 0xffffffffffffffff {
			t.Errorf("with %q: %#x, %v", between, got, err)
		}
	}
}

func TestAsyncCopyErrors(t *testing.T) {
	_, err := copies(t, start8, await+"ld.shared.u64 %d2, [%r4];", 64)
	fails(t, err, "race in shared memory")
	if _, err = copies(t, start8, await+"bar.sync 0; ld.shared.u64 %d2, [%r4];", 64); err != nil {
		t.Error(err)
	}
	_, err = copies(t, "cp.async.ca.shared.global [%r3], [%at+4], 8;", await, 1)
	fails(t, err, "multiples of 8")
	_, err = copies(t, "cp.async.ca.shared.global [%r3], [%at+65536], 8;", await, 1)
	fails(t, err, "lane 0", "in no allocation")
	_, err = copies(t, "cp.async.ca.shared.global [%r3+4096], [%at], 8;", await, 1)
	fails(t, err, "outside of the 1024 bytes of shared memory")
	_, err = copies(t, "mov.u32 %r5, 12; cp.async.ca.shared.global [%r3], [%at], 8, %r5;", await, 1)
	fails(t, err, "12 bytes of a copy of 8")
}
