package ptxsim

import (
	"encoding/binary"
	"math"
)

// matrices is ldmatrix: 8x8 matrices of 16-bit elements from shared memory. Lane 8i+r has the address of row r of matrix i; lane
// 4r+c gets the elements 2c and 2c+1 of row r of each, or of column r with .trans.
func (b *builder) matrices() exec {
	b.typ(0)
	b.allow("sync", "aligned", "m8n8", "shared", "shared::cta", "b16")
	n := map[string]int{"x1": 1, "x2": 2, "x4": 4}[b.one("x1", "x2", "x4")]
	trans := b.has("trans")
	b.count(2, 2)
	into := b.list(0, func(o operand) int { return b.target(o, 4, 4) })
	a := b.access(1, shared, 16, 1, reads)
	if n == 0 || len(into) != n || !b.has("b16") || !b.has("m8n8") || !b.has("sync") {
		return nil
	}
	b.out.meets = true
	return func(w *warp, active uint32) {
		if !w.whole(active) {
			return
		}
		mem, found := w.place(&a, all>>(32-8*n))
		if found == 0 {
			return
		}
		where := w.where
		for i, d := range into {
			scatter(&w.registers[d], mem, where[8*i:8*i+8], trans)
		}
	}
}

// scatter gives the lanes the elements of the matrix whose rows are at.
func scatter(d *lanes, mem []byte, at []int, trans bool) {
	var rows [8][8]uint16
	for r := range rows {
		row := mem[at[r]:][:16]
		for c := range rows[r] {
			rows[r][c] = binary.LittleEndian.Uint16(row[2*c:])
		}
	}
	for l := range d {
		g, c := l/4, l%4*2
		if trans {
			d[l] = pairOf(uint64(rows[c][g]), uint64(rows[c+1][g]))
		} else {
			d[l] = pairOf(uint64(rows[g][c]), uint64(rows[g][c+1]))
		}
	}
}

// whole fails if lanes are missing where all have to be.
func (w *warp) whole(active uint32) bool {
	if active != all {
		w.fail(firstLane(active), "only the lanes %s are here, all have to be", lanesText(active))
	}
	return active == all
}

// mma is D = A·B + C with A [16, k], B [k, 8] of 16-bit floats, C and D [16, 8] of float32, spread over the lanes.
func (b *builder) mma() exec {
	b.count(4, 4)
	k := map[string]int{"m16n8k16": 16, "m16n8k8": 8}[b.one("m16n8k16", "m16n8k8")]
	t := b.typ(1)
	c := t.half
	if k == 0 || c == nil || t.pair || b.typ(0).name != "f32" || b.typ(2) != t || b.typ(3).name != "f32" || len(b.mods) != 9 ||
		!b.has("sync") || !b.has("row") || !b.has("col") {
		return nil
	}
	b.allow("aligned")
	d := b.list(0, func(o operand) int { return b.target(o, 4, 4) })
	word := func(o operand) int { return b.source(o, 4, 4) }
	x, y, z := b.list(1, word), b.list(2, word), b.list(3, word)
	if len(d) != 4 || len(x) != k/4 || len(y) != k/8 || len(z) != 4 {
		b.fail("%d, %d, %d and %d registers", len(d), len(x), len(y), len(z))
	}
	b.out.meets = true
	return func(w *warp, active uint32) {
		if w.whole(active) {
			w.multiply(c, d, x, y, z)
		}
	}
}

// multiply is mma. Lane 4g+t has of A the rows g and g+8, columns 2t and 2t+1 (and 8 more), of B the rows 2t, 2t+1 (and 8
// more) of column g, of C and D the columns 2t and 2t+1 of the rows g and g+8.
func (w *warp) multiply(c *codec, d, x, y, z []int) {
	var a [16][16]float32
	var b [8][16]float32
	r := w.registers
	for i, reg := range x {
		for l, v := range r[reg] {
			row, col := &a[l/4+i%2*8], l%4*2+i/2*8&15
			row[col&15], row[(col+1)&15] = c.split(v)
		}
	}
	for i, reg := range y {
		for l, v := range r[reg] {
			col, row := &b[l/4], l%4*2+i*8
			col[row&15], col[(row+1)&15] = c.split(v)
		}
	}
	var out [4]lanes
	for i := range out {
		in, to := &r[z[i]], &out[i]
		for l := range to {
			to[l] = bits32(f32(in[l]) + dot(&a[l/4+i/2*8], &b[(l%4*2+i%2)&7]))
		}
	}
	for i := range out {
		r[d[i]] = out[i]
	}
}

// split are the two floats of a pair.
func (c *codec) split(v uint64) (lower, upper float32) {
	if c == &bfloat16 {
		return math.Float32frombits(uint32(v) << 16), math.Float32frombits(uint32(v) &^ 0xffff)
	}
	return c.decode(v), c.decode(v >> 16)
}

// dot sums products, which are exact, in float32: in two chains as they are, so that it is quick.
func dot(a, b *[16]float32) float32 {
	s := a[0]*b[0] + a[2]*b[2] + a[4]*b[4] + a[6]*b[6] + a[8]*b[8] + a[10]*b[10] + a[12]*b[12] + a[14]*b[14]
	t := a[1]*b[1] + a[3]*b[3] + a[5]*b[5] + a[7]*b[7] + a[9]*b[9] + a[11]*b[11] + a[13]*b[13] + a[15]*b[15]
	return s + t
}
