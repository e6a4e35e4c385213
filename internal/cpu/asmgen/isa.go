package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa lets one description of an elementwise kernel become AVX-512 and AVX2 code. The tail of a row is done
// with a mask (K1, or Y15), so that no lane outside the slices is read or written.
type isa struct {
	suffix string
	lanes  int
	v      []reg.VecPhysical
}

var (
	avx512 = isa{"AVX512", 16, zs}
	avx2   = isa{"AVX2", 8, ys}
)

var masks *Mem

// tailMasks is eight all-ones dwords before eight zeros: at byte 4*(8-n) lies a mask of n lanes.
func tailMasks() Mem {
	if masks == nil {
		m := GLOBL("tailmasks", RODATA|NOPTR)
		for i := range 16 {
			ones := uint32(0xffffffff)
			if i >= 8 {
				ones = 0
			}
			DATA(4*i, U32(ones))
		}
		masks = &m
	}
	return *masks
}

// f32 is a constant vector in memory.
func f32(x float32) Mem { return vconst(math.Float32bits(x)) }

// kernel is an elementwise function being written.
type kernel struct {
	isa
	labels
	masked bool // the code being emitted is the tail
}

// text begins the function stem+suffix.
func (s isa) text(stem, signature, doc string) *kernel {
	TEXT(stem+s.suffix, NOSPLIT, "func"+signature)
	Doc(stem + s.suffix + " " + doc)
	Pragma("noescape")
	return &kernel{isa: s, labels: labels(stem + s.suffix)}
}

// slice loads the pointer of a slice parameter.
func slice(name string) reg.GPVirtual { return Load(Param(name).Base(), GP64()).(reg.GPVirtual) }

// length loads the length of a slice parameter.
func length(name string) reg.GPVirtual { return Load(Param(name).Len(), GP64()).(reg.GPVirtual) }

// scalar broadcasts a float32 parameter.
func (k *kernel) scalar(name string, d reg.VecPhysical) {
	VBROADCASTSS(address(Param(name)), d)
}

// address is where a parameter or result lies. Load and Store would move floats with SSE instructions, which cost
// hundreds of cycles where the upper halves of vector registers are in use.
func address(c gotypes.Component) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// loop runs body over n elements, a vector at a time, and advances the pointers.
func (k *kernel) loop(n reg.GPVirtual, body func(), ptrs ...reg.GPVirtual) {
	k.at("loop")
	CMPQ(n, Imm(uint64(k.lanes)))
	JL(k.ref("tail"))
	body()
	for _, p := range ptrs {
		ADDQ(Imm(uint64(4*k.lanes)), p)
	}
	SUBQ(Imm(uint64(k.lanes)), n)
	JMP(k.ref("loop"))
	k.at("tail")
	TESTQ(n, n)
	JZ(k.ref("end"))
	if k.lanes == 16 {
		t := GP32()
		MOVL(U32(0xffff), t)
		BZHIL(n.As32(), t, t)
		KMOVW(t, reg.K1)
	} else {
		t, e := GP64(), GP64()
		LEAQ(tailMasks(), t)
		MOVQ(U32(8), e)
		SUBQ(n, e)
		VMOVUPS(Mem{Base: t, Index: e, Scale: 4}, ys[15])
	}
	k.masked = true
	body()
	k.masked = false
	k.at("end")
}

// load reads a vector; lanes past the tail are zero.
func (k *kernel) load(m Mem, d reg.VecPhysical) {
	switch {
	case !k.masked:
		VMOVUPS(m, d)
	case k.lanes == 16:
		VMOVUPS_Z(m, reg.K1, d)
	default:
		VMASKMOVPS(m, ys[15], d)
	}
}

// store writes a vector, only the lanes before the tail.
func (k *kernel) store(r reg.VecPhysical, m Mem) {
	switch {
	case !k.masked:
		VMOVUPS(r, m)
	case k.lanes == 16:
		VMOVUPS(r, reg.K1, m)
	default:
		VMASKMOVPS(r, ys[15], m)
	}
}

// clip zeroes the lanes past the tail.
func (k *kernel) clip(r reg.VecPhysical) {
	switch {
	case !k.masked:
	case k.lanes == 16:
		VMOVAPS_Z(r, reg.K1, r)
	default:
		VANDPS(ys[15], r, r)
	}
}

// zero clears a register.
func (k *kernel) zero(d reg.VecPhysical) {
	if k.lanes == 16 {
		VPXORD(d, d, d)
	} else {
		VXORPS(d, d, d)
	}
}

// fold reduces a register to its lowest lane in a fixed order, in the X register of a; it uses t.
func (k *kernel) fold(a, t reg.VecPhysical, op func(x, y, d Op)) {
	ya, xa, yt, xt := a.AsY(), a.AsX(), t.AsY(), t.AsX()
	if k.lanes == 16 {
		VEXTRACTF64X4(Imm(1), a, yt)
		op(yt, ya, ya)
	}
	VEXTRACTF128(Imm(1), ya, xt)
	op(xt, xa, xa)
	VPERMILPS(Imm(0x4e), xa, xt)
	op(xt, xa, xa)
	VPERMILPS(Imm(0xb1), xa, xt)
	op(xt, xa, xa)
}

func addOp(x, y, d Op) { VADDPS(x, y, d) }
func maxOp(x, y, d Op) { VMAXPS(x, y, d) }

// sum folds a and stores it as result i.
func (k *kernel) sum(i int, a, t reg.VecPhysical) {
	k.fold(a, t, addOp)
	VMOVSS(a.AsX(), address(ReturnIndex(i)))
}

func ret() {
	VZEROUPPER()
	RET()
}
