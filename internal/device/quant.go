package device

import (
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/internal/half"
)

// Form says what a quantised DType keeps of a row: codes of Bits bits, and a scale, if Min also a minimum, for every
// Group values along K. An element is
//
//	round-to-bfloat16(scale·code + minimum)
//
// with a product that is exact in float32, and a sum (if there is one) that is rounded to it. Scale and minimum are
// float16 numbers; where Super is set, one for every Super values, times an int8 of the group, which is exact as well.
// So a quantised weight is a BFloat16 weight in fewer bits: it takes part in the same products with the same results.
type Form struct {
	Bits, Group, Super int
	Signed, Min        bool // codes are two's complement; there are minima
}

// Form returns the form of a quantised type, ok false for the others.
func (t DType) Form() (f Form, ok bool) {
	switch t {
	case Int8:
		return Form{Bits: 8, Group: 32, Signed: true}, true
	case Int4:
		return Form{Bits: 4, Group: 32, Min: true}, true
	case Int4Sym:
		return Form{Bits: 4, Group: 32, Signed: true}, true
	case Int8K:
		return Form{Bits: 8, Group: 16, Super: 256, Signed: true}, true
	case Int4K:
		return Form{Bits: 4, Group: 32, Super: 256, Min: true}, true
	}
	return Form{}, false
}

// String is the type's name in messages.
func (t DType) String() string {
	names := [...]string{"float32", "bfloat16", "int8", "int4", "int4sym", "int8k", "int4k"}
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("dtype %d", uint8(t))
}

// Bytes is the size of a [n,k] weight of type t, without what a device adds to align it.
func (t DType) Bytes(n, k int) int64 {
	f, ok := t.Form()
	switch {
	case t == BFloat16:
		return 2 * int64(n) * int64(k)
	case !ok:
		return 4 * int64(n) * int64(k)
	}
	row := quantLengths(t, 1, k)
	return int64(n) * int64((row[0]*f.Bits+7)/8+2*row[1]+2*row[2]+row[3]+row[4])
}

// groups and scales are how many groups and float16 scales a row of k values has.
func (f Form) groups(k int) int { return (k + f.Group - 1) / f.Group }

func (f Form) scales(k int) int {
	if f.Super > 0 {
		return k / f.Super
	}
	return f.groups(k)
}

// Quant are rows of K values in the form of a quantised type, row-major.
type Quant struct {
	DType            DType
	Rows, K          int
	Codes            []int8   // [Rows,K]; of 4-bit codes the low half counts
	Scale, Min       []uint16 // [Rows, one a group, or a super-block] float16 bits; Min only if the form has it
	SubScale, SubMin []int8   // [Rows, one a group] factors of Scale and Min, only if the form has super-blocks
}

// NewQuant returns rows of type t, all zero.
func NewQuant(t DType, rows, k int) Quant {
	n := quantLengths(t, rows, k)
	return Quant{DType: t, Rows: rows, K: k, Codes: make([]int8, n[0]), Scale: make([]uint16, n[1]), Min: make([]uint16, n[2]),
		SubScale: make([]int8, n[3]), SubMin: make([]int8, n[4])}
}

// quantLengths are the lengths of Codes, Scale, Min, SubScale and SubMin of rows of type t.
func quantLengths(t DType, rows, k int) (n [5]int) {
	f, _ := t.Form()
	n[0], n[1] = rows*k, rows*f.scales(k)
	if f.Super > 0 {
		n[3] = rows * f.groups(k)
	}
	if f.Min {
		n[2], n[4] = n[1], n[3]
	}
	return n
}

// RowsOf returns the rows [r0, r1) of q.
func (q Quant) RowsOf(r0, r1 int) Quant {
	q.Codes = rowsOf(q.Codes, q.Rows, r0, r1)
	q.Scale, q.Min = rowsOf(q.Scale, q.Rows, r0, r1), rowsOf(q.Min, q.Rows, r0, r1)
	q.SubScale, q.SubMin = rowsOf(q.SubScale, q.Rows, r0, r1), rowsOf(q.SubMin, q.Rows, r0, r1)
	q.Rows = r1 - r0
	return q
}

func rowsOf[T any](s []T, rows, r0, r1 int) []T {
	if rows == 0 {
		return s
	}
	n := len(s) / rows
	return s[r0*n : r1*n]
}

// Quantise fills q, which is of type Int8 or Int4, with what comes near src, row-major [Rows,K]: of Int8 the largest
// magnitude of a group is code 127; Int4 fits scale and minimum to the group by least squares. A value that is not
// finite, or whose scale exceeds float16, is an error.
func (q Quant) Quantise(src []float32) error {
	f, _ := q.DType.Form()
	if q.DType != Int8 && q.DType != Int4 {
		return fmt.Errorf("weights of type %v take quantised rows only", q.DType)
	}
	groups := f.groups(q.K)
	for r := range q.Rows {
		for g := range groups {
			i, j := r*q.K+g*f.Group, r*q.K+min((g+1)*f.Group, q.K)
			at := r*groups + g
			if q.DType == Int8 {
				q.Scale[at] = quantise8(q.Codes[i:j], src[i:j])
			} else {
				q.Scale[at], q.Min[at] = quantise4(q.Codes[i:j], src[i:j])
			}
			if !finite(q.Scale[at]) || f.Min && !finite(q.Min[at]) {
				return fmt.Errorf("row %d, columns %d to %d: a weight is not finite, or too large for %v", r, g*f.Group, j-r*q.K-1, q.DType)
			}
		}
	}
	return nil
}

// finite tells of float16 bits.
func finite(h uint16) bool { return h&0x7C00 != 0x7C00 }

// quantise8 returns the float16 scale.
func quantise8(codes []int8, x []float32) uint16 {
	most := uint32(0)
	for _, v := range x {
		most = max(most, math.Float32bits(v)&^(1<<31)) // magnitudes are in the order of their bits, a NaN above all
	}
	scale := half.ToF16(math.Float32frombits(most) / 127)
	inverse := reciprocal(half.FromF16(scale))
	for i, v := range x {
		codes[i] = int8(nearest(float32(v*inverse), -127, 127))
	}
	return scale
}

// reciprocal is 1/x, 0 for 0.
func reciprocal(x float32) float32 {
	if x == 0 {
		return 0
	}
	return 1 / x
}

// nearest rounds x, of a magnitude below 2²², to a whole number, ties to even, and takes the nearest in [lo, hi].
func nearest(x float32, lo, hi int32) int32 {
	const magic, bits = 3 << 22, 0x4B400000 // its neighbours are the whole numbers, and so are their bits
	return min(max(int32(math.Float32bits(x+magic))-bits, lo), hi)
}

// fits bounds how often quantise4 fits scale and minimum to the codes, and the codes to those.
const fits = 3

// quantise4 returns the float16 scale and minimum: first those of the least and the largest value, then, as long as that
// brings the group nearer, those that fit the codes best.
func quantise4(codes []int8, x []float32) (scale, minimum uint16) {
	least, most := x[0], x[0]
	for _, v := range x { // what is no number shows in the sum below
		if v < least {
			least = v
		}
		if v > most {
			most = v
		}
	}
	scale, minimum = half.ToF16((most-least)/15), half.ToF16(least)
	best := assign4(codes, x, scale, minimum)
	if best.v-best.v != 0 {
		return half.ToF16(best.v), minimum
	}
	var other [32]int8
	for range fits {
		s, m := best.fit(len(x))
		next := assign4(other[:], x, s, m)
		if !(next.squares < best.squares) {
			break
		}
		best, scale, minimum = next, s, m
		copy(codes, other[:])
	}
	return scale, minimum
}

// moments are sums over a group of values v with their codes c.
type moments struct {
	c, cc   int32   // c, c²
	v, vc   float32 // v, v·c
	squares float32 // squared differences
}

// assign4 finds the codes for x under a scale and a minimum.
func assign4(codes []int8, x []float32, scale, minimum uint16) moments {
	s, m := half.FromF16(scale), half.FromF16(minimum)
	inverse := reciprocal(s)
	codes = codes[:len(x)]
	var sum, sumSquares int32
	var values, products, squares float32
	for i, v := range x {
		c := nearest(float32(float32(v-m)*inverse), 0, 15)
		codes[i] = int8(c)
		f := float32(c)
		d := float32(f*s) + m - v
		sum, sumSquares = sum+c, sumSquares+c*c
		values, products, squares = values+v, products+float32(v*f), squares+float32(d*d)
	}
	return moments{sum, sumSquares, values, products, squares}
}

// fit is the scale and the minimum with the least squared differences for the codes of n values: the solution of the
// normal equations.
func (t moments) fit(n int) (scale, minimum uint16) {
	det := float64(int32(n)*t.cc - t.c*t.c)
	if det == 0 {
		return half.ToF16(0), half.ToF16(t.v / float32(n))
	}
	c, v, vc := float64(t.c), float64(t.v), float64(t.vc)
	s := (float64(float64(n)*vc) - float64(c*v)) / det // no product is fused with a sum, on any machine
	return half.ToF16(float32(s)), half.ToF16(float32((v - float64(s*c)) / float64(n)))
}
