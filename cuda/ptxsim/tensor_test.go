package ptxsim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/half"
)

// fragments is a kernel of one warp: each lane reads its words of A and B (16-bit pairs) and C (float32), multiplies, and
// writes its words of D.
func fragments(shape, typ string, words int) string {
	regs := func(name string, n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("%%%s%d", name, i))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	var body strings.Builder
	at := 0
	for name, n := range map[string]int{"a": words, "b": words / 2, "c": 4} {
		start := map[string]int{"a": 0, "b": words, "c": words + words/2}[name]
		for i := range n {
			fmt.Fprintf(&body, "ld.global.u32 %%%s%d, [%%at+%d];\n", name, i, 4*(start+i))
			at++
		}
	}
	fmt.Fprintf(&body, "mma.sync.aligned.%s.row.col.f32.%s.%s.f32 %s, %s, %s, %s;\n", shape, typ, typ,
		regs("d", 4), regs("a", words), regs("b", words/2), regs("c", 4))
	for i := range 4 {
		fmt.Fprintf(&body, "st.global.u32 [%%to+%d], %%d%d;\n", 4*i, i)
	}
	return fmt.Sprintf(`
.visible .entry k(.param .u64 out, .param .u64 in)
{
	.reg .b32 %%a<4>, %%b<4>, %%c<4>, %%d<4>, %%t;
	.reg .b64 %%at, %%to;
	ld.param.u64 %%to, [out];
	ld.param.u64 %%at, [in];
	mov.u32 %%t, %%tid.x;
	mad.wide.u32 %%to, %%t, 16, %%to;
	mad.wide.u32 %%at, %%t, %d, %%at;
	%s
	ret;
}`, 4*at, body.String())
}

// product is an mma of small integers, so that no sum is rounded.
type product struct {
	shape, typ string
	k          int
	a, b, c    [][]float32
}

func newProduct(shape, typ string, k int) product {
	random := rand.New(rand.NewPCG(1, uint64(k)))
	matrix := func(rows, cols int) [][]float32 {
		m := make([][]float32, rows)
		for r := range m {
			for range cols {
				m[r] = append(m[r], float32(random.IntN(33)-16))
			}
		}
		return m
	}
	return product{shape, typ, k, matrix(16, k), matrix(k, 8), matrix(16, 8)}
}

// lane is what a lane has of A, B and C. The layout is the manual's, in its words: a row is the group of the lane, or 8 more;
// a column is twice the lane's place in the group, or one more, or 8 more than these.
func (p product) lane(lane int) (in []byte) {
	encode := map[string]func(float32) uint16{"bf16": half.ToBF16, "f16": half.ToF16}[p.typ]
	group, place := lane>>2, lane%4
	for i := range p.k / 2 { // elements a0, a1, ...
		row, col := group, place*2+i&1
		if i&2 != 0 {
			row += 8
		}
		if i >= 4 {
			col += 8
		}
		in = binary.LittleEndian.AppendUint16(in, encode(p.a[row][col]))
	}
	for i := range p.k / 4 {
		row := place*2 + i&1
		if i >= 2 {
			row += 8
		}
		in = binary.LittleEndian.AppendUint16(in, encode(p.b[row][group]))
	}
	for i := range 4 {
		in = binary.LittleEndian.AppendUint32(in, math.Float32bits(p.c[group+i/2*8][place*2+i&1]))
	}
	return in
}

func (p product) at(row, col int) float32 {
	sum := p.c[row][col]
	for k := range p.k {
		sum += p.a[row][k] * p.b[k][col]
	}
	return sum
}

func TestMMA(t *testing.T) {
	for _, p := range []product{newProduct("m16n8k16", "bf16", 16), newProduct("m16n8k16", "f16", 16),
		newProduct("m16n8k8", "bf16", 8), newProduct("m16n8k8", "f16", 8)} {
		var in []byte
		for lane := range 32 {
			in = append(in, p.lane(lane)...)
		}
		b := load(t, fragments(p.shape, p.typ, p.k/4))
		out := b.words(make([]uint64, 64)...)
		if err := b.launch(1, 32, 0, out, b.bytes(in)); err != nil {
			t.Fatal(err)
		}
		for i, v := range b.read(out, 64) {
			row, col := i/2>>2+i%2*8, i/2%4*2
			if got, want := [2]float32{f32(v), f32(v >> 32)}, [2]float32{p.at(row, col), p.at(row, col+1)}; got != want {
				t.Errorf("%s %s: D[%d][%d:%d] = %v, want %v", p.shape, p.typ, row, col, col+2, got, want)
			}
		}
	}
}

const ldmatrix = `
.visible .entry k(.param .u64 out, .param .u64 in)
{
	.reg .b32 %r<20>;
	.reg .b64 %at, %to;
	.shared .align 16 .b8 room[512];
	ld.param.u64 %to, [out];
	ld.param.u64 %at, [in];
	mov.u32 %r1, %tid.x;
	mad.wide.u32 %to, %r1, 32, %to;
	mad.wide.u32 %at, %r1, 16, %at;
	ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%at];
	mov.u32 %r6, room;
	sub.s32 %r7, 31, %r1;
	mad.lo.s32 %r8, %r7, 16, %r6;
	st.shared.v4.u32 [%r8], {%r2, %r3, %r4, %r5};
	bar.sync 0;
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r8];
	ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r14, %r15, %r16, %r17}, [%r8];
	st.global.v4.u32 [%to], {%r10, %r11, %r12, %r13};
	st.global.v4.u32 [%to+16], {%r14, %r15, %r16, %r17};
	ret;
}`

// The rows of four matrices lie in shared memory in reverse order; element (r, c) of matrix m is 64m + 8r + c.
func TestLdmatrix(t *testing.T) {
	b := load(t, ldmatrix)
	var in []byte
	for i := range 256 {
		in = binary.LittleEndian.AppendUint16(in, uint16(i))
	}
	out := b.words(make([]uint64, 128)...)
	if err := b.launch(1, 32, 0, out, b.bytes(in)); err != nil {
		t.Fatal(err)
	}
	got := b.read(out, 128)
	for lane := range 32 {
		for m := range 4 {
			word := func(i int) uint64 { return got[4*lane+i/2] >> (32 * (i % 2)) & 0xffffffff }
			r, c := lane/4, lane%4*2
			if want := uint64(64*m+8*r+c) | uint64(64*m+8*r+c+1)<<16; word(m) != want {
				t.Errorf("lane %d, matrix %d: %#x, want %#x", lane, m, word(m), want)
			}
			if want := uint64(64*m+8*c+r) | uint64(64*m+8*(c+1)+r)<<16; word(4+m) != want {
				t.Errorf("lane %d, transposed matrix %d: %#x, want %#x", lane, m, word(4+m), want)
			}
		}
	}
}

func TestTensorNeedsTheWholeWarp(t *testing.T) {
	_, err := try(t, `mov.u32 %r1, 0;
		mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%r2, %r3, %r4, %r5}, {%r1, %r1}, {%r1}, {%r1, %r1, %r1, %r1};`, none(31))
	fails(t, err, "mma", "only the lanes 0-30 are here")
}
