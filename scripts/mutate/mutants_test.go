package main

import (
	"strconv"
	"strings"
	"testing"
)

// Every kind of change, each in its place, and nothing else: a rule that matches too little would let untested code pass as
// tested.
func TestMutants(t *testing.T) {
	const text = `.visible .entry one(
	.param .u32 one_param_0
)
{
	ld.param.u32 	%r1, [one_param_0];
	mov.u32 	%r2, %tid.x;
	mov.f32 	%f1, 0f00000000;
	shl.b32 	%r3, %r2, 2;
	setp.ge.s32 	%p1, %r3, 64;
	shfl.sync.bfly.b32 	%r4|%p2, %r3, 16, 31, -1;
	bar.sync 	0;
	@%p1 ld.global.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd1+16];
	st.shared.u16 	[%rd2], %rs1;
	ld.global.f32 	%f5, [%rd3+-8];
	mad.lo.s32 	%r5, %r1, %r2, -1;
	add.f32 	%f2, %f1, %f2;
	and.b32 	%r6, %r5, -65536;
	and.b32 	%r6, %r5, 31;
	setp.lt.f32 	%p3, %f1, %f2;
	ret;
}`
	want := []string{
		"constant 7 shl.b32 	%r3, %r2, 3;",
		"constant 8 setp.ge.s32 	%p1, %r3, 65;",
		"compare 8 setp.gt.s32 	%p1, %r3, 64;",
		"shuffle 9 shfl.sync.up.b32 	%r4|%p2, %r3, 16, 0, -1;",
		"barrier 10 ",
		"offset 11 @%p1 ld.global.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd1+32];",
		"offset 12 st.shared.u16 	[%rd2+2], %rs1;",
		"offset 13 ld.global.f32 	%f5, [%rd3+-4];",
		"constant 14 mad.lo.s32 	%r5, %r1, %r2, 0;",
		"constant 17 and.b32 	%r6, %r5, 32;",
	}
	got := mutants(text)
	if len(got) != len(want) {
		t.Fatalf("%d mutants, want %d: %v", len(got), len(want), got)
	}
	lines := strings.Split(text, "\n")
	for i, m := range got {
		if strings.Fields(want[i])[0] != m.kind || m.kernel != "one" {
			t.Errorf("mutant %d is of kind %s in %s", i, m.kind, m.kernel)
		}
		_, after, _ := strings.Cut(want[i], " ")
		if s := strings.SplitN(after, " ", 2); s[0] != strconv.Itoa(m.line) || s[1] != m.to {
			t.Errorf("mutant %d is line %d: %q, want %q", i, m.line, m.to, after)
		}
		changed := strings.Split(m.apply(text), "\n")
		for j := range lines {
			if same := changed[j] == lines[j]; same == (j == m.line) {
				t.Errorf("mutant %d: line %d is %q", i, j, changed[j])
			}
		}
	}
}
