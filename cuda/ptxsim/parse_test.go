package ptxsim

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// embedded is the PTX of the project's kernels.
func embedded(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("../ptx/*.ptx.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no kernels: %v", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = string(text)
	}
	return out
}

func TestKernelsOfTheProjectParse(t *testing.T) {
	for name, text := range embedded(t) {
		m, err := parse(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if n := strings.Count(text, ".visible .entry"); len(m.kernels) != n {
			t.Errorf("%s: %d kernels, want %d", name, len(m.kernels), n)
		}
	}
}

// parseErrors are statements of a kernel, and what is wrong with them.
var parseErrors = []struct{ src, want string }{
	{"frobnicate.s32 %r0, %r1;", "kernel k: line 9: frobnicate.s32 %r0, %r1: unknown instruction"},
	{"add.rq.f32 %r0, %r1, %r2;", "unsupported modifier .rq"},
	{"fma.rm.f64 %d0, %d1, %d1, %d1;", "unsupported form"},
	{"add.b32 %r0, %r1, %r2;", "no arithmetic"},
	{"add.s32 %r0, %r1, %r9;", "unknown name \"%r9\""},
	{"add.s32 %r0, %r1;", "operands"},
	{"add.s32 %r0, %r1, %r2, %r2;", "4 operands"},
	{"add.s32 %d0, %r1, %r2;", "the result has 32 bits, its register 64"},
	{"add.s32 %r0, %d1, %r2;", "an operand of 64 bits where the instruction reads 32"},
	{"add.s32 %r0, %p, %r2;", "no register"},
	{"add.s32 5, %r0, %r2;", "needs a register"},
	{"add.s32 %r0, %r1, %r2", "expected \";\""},
	{"@%r0 ret;", "guard is no predicate"},
	{"not.pred %p, !%p;", "cannot be negated"},
	{"bra NOWHERE;", "no label \"NOWHERE\""},
	{"A: A: ret;", "two labels A"},
	{"ld.global.u32 %r0, %d0;", "no address"},
	{"ld.global.u32 %r0, [%h];", "the address has 16 bits"},
	{"ld.global.u32 %r0, [p];", "the variable is parameter"},
	{"ld.param.u64 %d0, [p+8];", "8 bytes at 8 of the 8 bytes of parameters"},
	{"ld.global.v2.u32 {%r0}, [%d0];", "2 elements, 1 registers"},
	{"st.param.u64 [p], %d0;", "unsupported form"},
	{"bar.sync 1;", "only barrier 0"},
	{"cp.async.cg.shared.global [%r0], [%d0], 8;", "8 bytes cannot be copied at once"},
	{"lop3.b32 %r0, %r1, %r1, %r1, 256;", "number in [0, 255]"},
	{"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0}, {%r0}, {%r0}, {%r0};", "unsupported form"},
	{"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0}, [%r0];", "unsupported form"},
	{"ld.global.v4.u64 {%d0, %d0, %d0, %d0}, [%d0];", "32 bytes are more"},
	{"ld.local.u32 %r0, [8];", "an address cannot begin with that"},
	{"call f;", "unknown name"},
	{".shared .b8 a[99999999];", "expected a number"},
	{".shared .b8 a[16777216][16777216];", "too large"},
	{".reg .b99 %x;", "unknown .b99"},
	{"{", "does not end"},
}

func TestParseErrors(t *testing.T) {
	const start = ".visible .entry k(.param .u64 p) {\n.reg .pred %p;\n.reg .b16 %h;\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n"
	for _, c := range parseErrors {
		_, err := parse(header + start + c.src + "\n}")
		fails(t, err, c.want)
	}
	for _, c := range []struct{ src, want string }{
		{header + ".global .u32 g = 3;" + prologue + "ld.global.u32 %r, [g]; ret; }", "make it __constant__"},
		{header + ".func f() { ret; }", "unsupported directive \".func\""},
		{header + ".entry k() { ret; } .entry k() { ret; }", "two of that name"},
		{header + ".entry k(.param .pred p) { ret; }", "in a parameter"},
		{header + ".entry k(.param .b8 p[5000]) { ret; }", "expected a number"},
		{"/* no end", "does not end"},
		{header + "§", "unexpected character"},
	} {
		_, err := parse(c.src)
		fails(t, err, c.want)
	}
}

// Whatever the text is, it is a module or an error.
func FuzzParse(f *testing.F) {
	for _, text := range embedded(f) { // small ones, of which the fuzzer makes many
		kernels := strings.Split(text, ".visible .entry")
		for _, k := range kernels[1:] {
			if len(k) < 6000 {
				f.Add(header + ".visible .entry" + k)
			}
		}
	}
	f.Add(header + prologue + "bfi.b64 %d, %da, %db, %rc, 32;" + epilogue)
	f.Add(header + prologue + "{ .reg .pred x; A: @x bra A; mov.b64 {_, %r}, %da; }" + epilogue)
	f.Add(header + ".const .align 4 .b8 t[8] = {1, 2};\n.extern .shared .b8 s[];\n.entry k() .maxntid 1, 1, 1 { ret; }")
	f.Fuzz(func(t *testing.T, src string) {
		m, err := parse(src)
		if (m == nil) == (err == nil) {
			t.Errorf("module %v and error %v", m, err)
		}
	})
}
