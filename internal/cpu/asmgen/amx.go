package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The matrix unit multiplies tiles of 16 rows by 32 bfloat16. A float32 is the sum of three of them, so a product with
// bfloat16 weights that is exact in its inputs takes three tile products.

// split cuts n times 32 float32 into bfloat16 pieces, plane bytes apart, the smallest piece first. What is written and
// read moves on by to and by from bytes. One piece is the value rounded to nearest even; three are cut off one after
// another, which loses nothing.
func split(pieces int) {
	name := map[int]string{1: "round", 3: "split"}[pieces] + "AVX512"
	TEXT(name, NOSPLIT, "func(dst *uint16, plane, to int, src *float32, from, n int)")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	plane := Load(Param("plane"), GP64())
	to := Load(Param("to"), GP64())
	src := Load(Param("src"), GP64())
	from := Load(Param("from"), GP64())
	n := Load(Param("n"), GP64())
	l := labels(name)
	VMOVDQU16(oddWords(), zs[31])
	if pieces == 3 {
		VMOVUPS(vconst(0xffff0000), zs[30])
	} else {
		VMOVUPS(vconst(1), zs[30])
		VMOVUPS(vconst(0x7fff), zs[29])
	}
	l.at("loop")
	VMOVUPS(Mem{Base: src}, zs[0])
	VMOVUPS(Mem{Base: src, Disp: 64}, zs[1])
	if pieces == 1 {
		for i := range 2 {
			x, t := zs[i], zs[2+i]
			VCMPPS(Imm(3), x, x, reg.K1) // NaN stays NaN
			VPSRLD(Imm(16), x, t)
			VPANDD(zs[30], t, t)
			VPADDD(zs[29], t, t)
			KNOTW(reg.K1, reg.K1)
			VPADDD(t, x, reg.K1, x)
		}
		VPERMT2W(zs[1], zs[31], zs[0])
		VMOVUPS(zs[0], Mem{Base: dst})
	} else {
		for i := range 2 { // high pieces in Z2 and Z3, middle ones in Z4 and Z5, what is left in Z0 and Z1
			VPANDD(zs[30], zs[i], zs[2+i])
			VSUBPS(zs[2+i], zs[i], zs[i])
			VPANDD(zs[30], zs[i], zs[4+i])
			VSUBPS(zs[4+i], zs[i], zs[i])
		}
		for _, i := range []int{0, 4, 2} {
			VPERMT2W(zs[i+1], zs[31], zs[i])
		}
		VMOVUPS(zs[0], Mem{Base: dst})
		VMOVUPS(zs[4], Mem{Base: dst, Index: plane, Scale: 1})
		VMOVUPS(zs[2], Mem{Base: dst, Index: plane, Scale: 2})
	}
	ADDQ(from, src)
	ADDQ(to, dst)
	DECQ(n)
	JNZ(l.ref("loop"))
	ret()
}

// pairUp cuts rows src [2n][32] into pieces and pairs them up: dst [pieces][n][32] dwords of two rows, pieces plane bytes
// apart, the smallest first.
func pairUp(pieces int) {
	name := map[int]string{1: "pairRoundAVX512", 3: "pairSplitAVX512"}[pieces]
	TEXT(name, NOSPLIT, "func(dst *uint32, plane int, src *float32, n int)")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	plane := Load(Param("plane"), GP64())
	src := Load(Param("src"), GP64())
	n := Load(Param("n"), GP64())
	l := labels(name)
	VMOVUPS(vconst(0xffff0000), zs[30])
	if pieces == 1 {
		VMOVUPS(vconst(1), zs[29])
		VMOVUPS(vconst(0x7fff), zs[28])
	}
	pair := func(even, odd reg.VecPhysical, m Mem) { // their high halves
		VPSRLD(Imm(16), even, zs[20])
		VPANDD(zs[30], odd, zs[21])
		VPORD(zs[20], zs[21], zs[20])
		VMOVUPS(zs[20], m)
	}
	l.at("loop")
	for h := range 2 {
		e, o := zs[0], zs[1]
		VMOVUPS(Mem{Base: src, Disp: 64 * h}, e)
		VMOVUPS(Mem{Base: src, Disp: 128 + 64*h}, o)
		if pieces == 1 {
			for i, x := range []reg.VecPhysical{e, o} {
				VCMPPS(Imm(3), x, x, reg.K1)
				VPSRLD(Imm(16), x, zs[2+i])
				VPANDD(zs[29], zs[2+i], zs[2+i])
				VPADDD(zs[28], zs[2+i], zs[2+i])
				KNOTW(reg.K1, reg.K1)
				VPADDD(zs[2+i], x, reg.K1, x)
			}
			pair(e, o, Mem{Base: dst, Disp: 64 * h})
			continue
		}
		for i, x := range []reg.VecPhysical{e, o} { // high pieces in Z2 and Z3, middle ones in Z4 and Z5
			VPANDD(zs[30], x, zs[2+i])
			VSUBPS(zs[2+i], x, x)
			VPANDD(zs[30], x, zs[4+i])
			VSUBPS(zs[4+i], x, x)
		}
		pair(e, o, Mem{Base: dst, Disp: 64 * h})
		pair(zs[4], zs[5], Mem{Base: dst, Index: plane, Scale: 1, Disp: 64 * h})
		pair(zs[2], zs[3], Mem{Base: dst, Index: plane, Scale: 2, Disp: 64 * h})
	}
	ADDQ(U32(256), src)
	ADDQ(U32(128), dst)
	DECQ(n)
	JNZ(l.ref("loop"))
	ret()
}

var tables = map[string]Mem{}

// oddWords selects the high halves of the dwords of two vectors.
func oddWords() Mem {
	const name = "oddwords"
	if _, ok := tables[name]; !ok {
		tables[name] = GLOBL(name, RODATA|NOPTR)
		for i := range 32 {
			DATA(2*i, U16(uint16(2*i+1)))
		}
	}
	return tables[name]
}

// swapMiddle swaps the two words in the middle of every quadword.
func swapMiddle() Mem {
	m := GLOBL("swapmiddle", RODATA|NOPTR)
	for i := range 8 {
		DATA(8*i, U64([2]uint64{0x0706030205040100, 0x0f0e0b0a0d0c0908}[i%2]))
	}
	return m
}

// turnPairs turns a panel of pairs along k, src [16][32] for 32 k and 32 n, into one of pairs along n,
// dst [16][32] with dst[p][k] = (n=2p, n=2p+1). It is a transposition of quadwords, two of k and two of n in each; their
// lanes come together as they are loaded, which spares the one port that shuffles.
func turnPairs() {
	const name = "turnPairsAVX512"
	TEXT(name, NOSPLIT, "func(dst, src *uint32)")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	n := GP64()
	l := labels(name)
	MOVQ(U32(2), n)
	VMOVDQU64(swapMiddle(), zs[31])
	l.at("half")
	for pair := range 8 { // of n: lane pair of each row
		for odd := range 2 {
			z := zs[4*(pair%4)+odd]
			row := func(i int) Mem { return Mem{Base: src, Disp: 128*(2*i+odd) + 16*pair} }
			VMOVDQU(row(0), z.AsX())
			for i := 1; i < 4; i++ {
				VINSERTI32X4(Imm(uint64(i)), row(i), z, z)
			}
		}
		even, odd, high := zs[4*(pair%4)], zs[4*(pair%4)+1], zs[4*(pair%4)+2]
		VPUNPCKHQDQ(odd, even, high)
		VPUNPCKLQDQ(odd, even, even)
		for i, z := range []reg.VecPhysical{even, high} {
			VPSHUFB(zs[31], z, z)
			VMOVDQU64(z, Mem{Base: dst, Disp: 128 * (2*pair + i)})
		}
	}
	ADDQ(U32(1024), src)
	ADDQ(U8(64), dst)
	DECQ(n)
	JNZ(l.ref("half"))
	ret()
}

// The tiles of C, of A and of B.
const (
	tileC = 0
	tileA = 4
	tileB = 6
)

// mulAMXFew is mulAMXx1 for one panel of rows and two panels of B, next bytes apart (spill has room for both), whose products overlap; with few
// rows the unit would wait for itself.
func mulAMXFew() {
	const name = "mulAMXFew"
	TEXT(name, NOSPLIT, "func(config *[64]byte, rows, blocks, pieces int, a *uint16, size int, b *uint32, next int, c *float32, ldc int, spill *float32)")
	Pragma("noescape")
	l := labels(name)
	load := func(param string, r reg.GPPhysical) { Load(Param(param), r) }
	load("config", reg.RAX)
	ldtilecfg()
	load("ldc", reg.RAX)
	SHLQ(Imm(2), reg.RAX)
	load("c", reg.RBX)
	load("size", reg.R9)
	load("a", reg.RSI)
	load("b", reg.RDI)
	load("next", reg.R11)
	load("blocks", reg.R8)
	load("pieces", reg.R12)
	MOVQ(U32(64), reg.RCX)
	MOVQ(U32(128), reg.RDX)
	a, c := mem{reg.RSI, reg.RCX, 0}, mem{reg.RBX, reg.RAX, 0}
	for t := range byte(4) {
		tilezero(t)
	}
	l.at("block")
	for i := range 32 { // the weight streams past, from memory
		PREFETCHT0(Mem{Base: reg.RDI, Disp: 8192 + 64*i})
	}
	for i := range 32 {
		PREFETCHT0(Mem{Base: reg.RDI, Index: reg.R11, Scale: 1, Disp: 8192 + 64*i})
	}
	CMPQ(reg.R12, Imm(1))
	JNE(l.ref("three"))
	mulPieces(a, 1)
	JMP(l.ref("done"))
	l.at("three")
	mulPieces(a, 3)
	l.at("done")
	ADDQ(U32(2048), reg.RDI)
	DECQ(reg.R8)
	JNZ(l.ref("block"))
	load("spill", reg.RSI)
	TESTQ(reg.RSI, reg.RSI)
	JNZ(l.ref("add"))
	for t := range byte(4) {
		tilestore(t, mem{c.base, c.index, 64 * int32(t)})
	}
	tilerelease()
	VZEROUPPER()
	RET()
	l.at("add")
	MOVQ(U32(256), reg.RCX)
	for t := range byte(4) {
		tilestore(t, a.plus(64*int32(t)))
	}
	addSpilled(l, 4)
	tilerelease()
	VZEROUPPER()
	RET()
}

// mulPieces multiplies a block of so many pieces of A, R9 bytes apart, by two panels of B at RDI, R11 bytes apart.
func mulPieces(a mem, pieces byte) {
	const tile = 7
	for p := range pieces {
		tileload(tileA+p, a)
		ADDQ(reg.R9, reg.RSI)
	}
	for t := range byte(4) {
		if t == 2 {
			ADDQ(reg.R11, reg.RDI)
		}
		tileload(tile, mem{reg.RDI, reg.RDX, 64 * int32(t%2)})
		for p := range pieces {
			tdpbf16ps(tileA+p, tile, t)
		}
	}
	SUBQ(reg.R11, reg.RDI)
}

// addSpilled adds rows of so many vectors at RSI to C at RBX, whose rows are RAX bytes apart; it leaves RBX after them.
func addSpilled(l labels, vectors int) {
	Load(Param("rows"), reg.R14)
	l.at("row")
	for v := range vectors {
		x := zs[v]
		VMOVUPS(Mem{Base: reg.RSI, Disp: 64 * v}, x)
		VADDPS(Mem{Base: reg.RBX, Disp: 64 * v}, x, x)
		VMOVUPS(x, Mem{Base: reg.RBX, Disp: 64 * v})
	}
	ADDQ(U32(uint32(64*vectors)), reg.RSI)
	ADDQ(reg.RAX, reg.RBX)
	DECQ(reg.R14)
	JNZ(l.ref("row"))
}

// mulAMX: C [16·high or less, 32] = A·B for several such blocks of rows, high being 1 or 2; with spill, which is room for
// one of them, C += A·B.
//
// A is in blocks of 32 k, each of pieces·rows·32 bfloat16; of every block the pieces first, first+1, ... are taken that
// the caller has set a, take and skip for. B is in pairs, [16][32] dwords to 32 k. Each element is one sum: block after
// block, piece after piece, with the unit's own order within a block.
func mulAMX(high int) {
	name := map[int]string{1: "mulAMXx1", 2: "mulAMXx2"}[high]
	TEXT(name, NOSPLIT, "func(config *[64]byte, rows, panels, blocks, take int, a *uint16, size, skip, next int, b *uint32, c *float32, ldc int, spill *float32)")
	Pragma("noescape")
	l := labels(name)
	load := func(param string, r reg.GPPhysical) { Load(Param(param), r) }
	load("config", reg.RAX)
	ldtilecfg()
	load("ldc", reg.RAX)
	SHLQ(Imm(2), reg.RAX)
	load("size", reg.R9)
	load("skip", reg.R10)
	load("a", reg.R11)
	load("c", reg.RBX)
	load("panels", reg.R13)
	MOVQ(reg.RAX, reg.R12)
	SHLQ(Imm(4), reg.R12) // 16 rows of C
	MOVQ(U32(64), reg.RCX)
	MOVQ(U32(128), reg.RDX)
	a, b, c := mem{reg.RSI, reg.RCX, 0}, mem{reg.RDI, reg.RDX, 0}, mem{reg.RBX, reg.RAX, 0}

	l.at("panel")
	MOVQ(reg.R11, reg.RSI)
	load("b", reg.RDI)
	load("blocks", reg.R8)
	for t := range byte(2 * high) {
		tilezero(tileC + t)
	}

	l.at("block")
	tileload(tileB, b)
	tileload(tileB+1, b.plus(64))
	load("take", reg.R14) // Go's g, which the wrapper restores
	l.at("piece")
	for h := range byte(high) {
		tileload(tileA+h, a.plus(1024*int32(h)))
		tdpbf16ps(tileA+h, tileB, tileC+2*h)
		tdpbf16ps(tileA+h, tileB+1, tileC+2*h+1)
	}
	ADDQ(reg.R9, reg.RSI)
	DECQ(reg.R14)
	JNZ(l.ref("piece"))
	ADDQ(reg.R10, reg.RSI)
	ADDQ(U32(2048), reg.RDI)
	DECQ(reg.R8)
	JNZ(l.ref("block"))

	load("spill", reg.RSI)
	TESTQ(reg.RSI, reg.RSI)
	JNZ(l.ref("add"))
	for h := range byte(high) {
		tilestore(tileC+2*h, c)
		tilestore(tileC+2*h+1, c.plus(64))
		if high == 2 {
			ADDQ(reg.R12, reg.RBX)
		}
	}
	JMP(l.ref("next"))
	l.at("add")
	spill := mem{reg.RSI, reg.RDX, 0}
	for h := range byte(high) {
		tilestore(tileC+2*h, spill.plus(2048*int32(h)))
		tilestore(tileC+2*h+1, spill.plus(2048*int32(h)+64))
	}
	addSpilled(l, 2)
	l.at("next")
	load("next", reg.R15)
	ADDQ(reg.R15, reg.R11)
	DECQ(reg.R13)
	JNZ(l.ref("panel"))
	tilerelease()
	VZEROUPPER()
	RET()
}
