package ptxsim

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// bench is a device with a kernel named k on it.
type bench struct {
	*Driver
	t *testing.T
	f driver.Func
}

// header begins every module.
const header = ".version 7.8\n.target sm_80\n.address_size 64\n"

func load(t *testing.T, ptx string, options ...Option) *bench {
	t.Helper()
	d, err := NewDriver(1<<24, options...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Load([]byte(header + ptx))
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Func(m, "k")
	if err != nil {
		t.Fatal(err)
	}
	return &bench{d, t, f}
}

// words allocates 64-bit words.
func (b *bench) words(v ...uint64) driver.Ptr {
	b.t.Helper()
	raw := make([]byte, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(raw[8*i:], x)
	}
	return b.bytes(raw)
}

func (b *bench) bytes(raw []byte) driver.Ptr {
	b.t.Helper()
	p, err := b.Alloc(int64(len(raw)))
	if err == nil {
		err = b.CopyIn(p, raw, 0)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// read returns n 64-bit words.
func (b *bench) read(p driver.Ptr, n int) []uint64 {
	b.t.Helper()
	raw := make([]byte, 8*n)
	if err := b.CopyOut(raw, p, 0); err != nil {
		b.t.Fatal(err)
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return out
}

// launch runs k on a line of blocks.
func (b *bench) launch(blocks, threads, shared int, args ...driver.Ptr) error {
	a := new(driver.Args)
	for _, p := range args {
		a.Ptr(p)
	}
	return b.Launch(b.f, driver.Launch{Grid: [3]int{blocks, 1, 1}, Block: [3]int{threads, 1, 1}, Shared: shared}, a)
}

// prologue: every thread reads its a, b and c, in 64, 32 and 16 bits, and has the results d, r, h and p, of which it sets one;
// epilogue writes it.
const (
	prologue = `
.visible .entry k(.param .u64 out, .param .u64 in, .param .u64 more)
{
	.reg .pred %p, %q, %o, %pa, %pb;
	.reg .b16 %h<9>, %ha, %hb, %hc;
	.reg .b32 %r<9>, %ra, %rb, %rc, %t;
	.reg .b64 %d<9>, %da, %db, %dc, %at, %to, %more;
	.reg .b16 %h;
	.reg .b32 %r;
	.reg .b64 %d;
	ld.param.u64 %to, [out];
	ld.param.u64 %at, [in];
	ld.param.u64 %more, [more];
	mov.u32 %t, %tid.x;
	mad.wide.u32 %to, %t, 8, %to;
	mad.wide.u32 %at, %t, 24, %at;
	ld.global.u64 %da, [%at];
	ld.global.u64 %db, [%at+8];
	ld.global.u64 %dc, [%at+16];
	cvt.u32.u64 %ra, %da;
	cvt.u32.u64 %rb, %db;
	cvt.u32.u64 %rc, %dc;
	cvt.u16.u64 %ha, %da;
	cvt.u16.u64 %hb, %db;
	cvt.u16.u64 %hc, %dc;
	setp.ne.u64 %pa, %da, 0;
	setp.ne.u64 %pb, %db, 0;
	mov.u64 %d, 0;
	mov.u32 %r, 0;
	mov.u16 %h, 0;
	mov.pred %p, 0;
`
	epilogue = `
	cvt.u64.u32 %d1, %r;
	cvt.u64.u16 %d2, %h;
	selp.b64 %d3, 1, 0, %p;
	or.b64 %d, %d, %d1;
	or.b64 %d, %d, %d2;
	or.b64 %d, %d, %d3;
	st.global.u64 [%to], %d;
	ret;
}
`
)

// threads runs code in as many threads as there are inputs, and returns what each leaves.
func threads(t *testing.T, code string, in [][3]uint64) []uint64 {
	t.Helper()
	out, err := try(t, code, in)
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return out
}

func try(t *testing.T, code string, in [][3]uint64) ([]uint64, error) {
	t.Helper()
	b := load(t, prologue+code+epilogue)
	var flat []uint64
	for _, v := range in {
		flat = append(flat, v[:]...)
	}
	out := b.words(make([]uint64, len(in))...)
	err := b.launch(1, len(in), 0, out, b.words(flat...), b.words(make([]uint64, 64)...))
	return b.read(out, len(in)), err
}

// check is an instruction with operands and result.
type check struct {
	code    string
	a, b, c uint64
	want    uint64
}

func run(t *testing.T, checks []check) {
	t.Helper()
	for _, c := range checks {
		if got := threads(t, c.code, [][3]uint64{{c.a, c.b, c.c}})[0]; got != c.want {
			t.Errorf("%s with %#x, %#x, %#x = %#x, want %#x", c.code, c.a, c.b, c.c, got, c.want)
		}
	}
}

// same gives 32 threads no input.
func none(n int) [][3]uint64 { return make([][3]uint64, n) }

// fails checks that err says all of what is wanted.
func fails(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that says %q", want)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}
