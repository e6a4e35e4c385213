package cpu

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// A quantised weight [n,k] lies in panels of 32 rows, each a run of blocks over k, each of them
//
//	float16 scale [32]    float16 minimum [32]    int8 factors of either [groups][32]    codes
//
// with what the form has of it. Codes of 8 bits are bytes [span][32], of 4 bits dwords [span/8][32] with the code of
// the first k in the lowest bits. Products read a weight a panel and a part of k at a time, unpacked into the pairs of
// bfloat16 that a BFloat16 weight has there, and so have a BFloat16 weight's results.

// blockLayout is the form of a quantised type and where things are in a block, in bytes.
type blockLayout struct {
	device.Form
	span                                int // k of a block
	minimum, factors, minFactors, codes int
	size                                int
}

// layoutOf returns the layout of a type, ok false if the type is not quantised.
func layoutOf(t device.DType) (l blockLayout, ok bool) {
	f, ok := t.Form()
	if !ok {
		return l, false
	}
	l = blockLayout{Form: f, span: max(f.Group, f.Super)}
	at := 2 * panel
	if f.Min {
		l.minimum, at = at, at+2*panel
	}
	if f.Super > 0 {
		l.factors, at = at, at+l.span/f.Group*panel
		if f.Min {
			l.minFactors, at = at, at+l.span/f.Group*panel
		}
	}
	l.codes, l.size = at, at+l.span*panel*f.Bits/8
	return l, true
}

// panelWords is the size of a panel over k, in dwords.
func (l *blockLayout) panelWords(k int) int { return (k + l.span - 1) / l.span * l.size / 4 }

// block is a block of a panel.
type block struct {
	*blockLayout
	words []uint32
}

// blockAt is the block of column k in a panel.
func (l *blockLayout) blockAt(panel []uint32, k int) block {
	n := l.size / 4
	return block{l, panel[k/l.span*n:][:n]}
}

func lane[T any](b block, at, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&b.words[at/4])), n)
}

// numbers are the scale and the minimum of row j and column k of the block, in float32.
func (b block) numbers(j, k int) (scale, minimum float32) {
	scale = half.FromF16(lane[uint16](b, 0, panel)[j])
	if b.Min {
		minimum = half.FromF16(lane[uint16](b, b.minimum, panel)[j])
	}
	if b.Super > 0 {
		at := k/b.Group*panel + j
		scale *= float32(lane[int8](b, b.factors, at+1)[at])
		if b.Min {
			minimum *= float32(lane[int8](b, b.minFactors, at+1)[at])
		}
	}
	return scale, minimum
}

// code is the code of row j and column k of the block.
func (b block) code(j, k int) float32 {
	if b.Bits == 8 {
		return float32(lane[int8](b, b.codes, b.span*panel)[k*panel+j])
	}
	bits := b.words[b.codes/4+k/8*panel+j] >> (4 * (k % 8)) & 15
	if b.Signed {
		return float32(int32(bits<<28) >> 28)
	}
	return float32(bits)
}

// value is an element, rounded to bfloat16 bits. The product is exact, so that it makes no difference whether the machine
// rounds it, and no number is a NaN.
func (b block) value(code, scale, minimum float32) uint32 {
	x := scale * code
	if b.Min {
		x += minimum
	}
	return roundToBF16(x)
}

// roundToBF16 is half.ToBF16 of what is no NaN.
func roundToBF16(x float32) uint32 {
	bits := math.Float32bits(x)
	return (bits + 0x7fff + bits>>16&1) >> 16
}

// unit is the number of columns that unpacking goes by.
const unit = 16

// unpackGo returns the portable unpacker of a layout: units of 16 columns of a panel, from the given one on, become
// bfloat16 pairs [8·units][32][2].
func unpackGo(l *blockLayout) func(dst, src *uint32, first, units int) {
	return func(dst, src *uint32, first, units int) {
		out := unsafe.Slice(dst, units*unit/2*panel)
		in := unsafe.Slice(src, l.panelWords((first+units)*unit))
		for k := first * unit; k < (first+units)*unit; k += unit {
			l.blockAt(in, k).unpackUnit(out, k%l.span)
			out = out[unit/2*panel:]
		}
	}
}

// unpackUnit unpacks the unit that begins at column k of the block.
func (b block) unpackUnit(out []uint32, k int) {
	var scale, minimum, even, odd [panel]float32
	for j := range panel {
		scale[j], minimum[j] = b.numbers(j, k)
	}
	for p := range unit / 2 {
		b.row(&even, k+2*p)
		b.row(&odd, k+2*p+1)
		pairs := out[p*panel:][:panel]
		if b.Min {
			for j := range pairs {
				pairs[j] = roundToBF16(scale[j]*even[j]+minimum[j]) | roundToBF16(scale[j]*odd[j]+minimum[j])<<16
			}
			continue
		}
		for j := range pairs {
			pairs[j] = roundToBF16(scale[j]*even[j]) | roundToBF16(scale[j]*odd[j])<<16
		}
	}
}

// row is the codes of column k of the block.
func (b block) row(codes *[panel]float32, k int) {
	if b.Bits == 8 {
		for j, c := range lane[int8](b, b.codes, b.span*panel)[k*panel:][:panel] {
			codes[j] = float32(c)
		}
		return
	}
	words, shift := b.words[b.codes/4+k/8*panel:][:panel], 28-4*(k%8)
	for j, w := range words {
		if b.Signed {
			codes[j] = float32(int32(w<<shift) >> 28)
		} else {
			codes[j] = float32(int32(w << shift >> 28))
		}
	}
}

// unpackers are a tier's unpackers by type.
type unpackers [device.Int4K + 1]func(dst, src *uint32, first, units int)

func unpackersGo() (u unpackers) {
	for t := range u {
		if l, ok := layoutOf(device.DType(t)); ok {
			u[t] = unpackGo(&l)
		}
	}
	return u
}

// pairs is where the pairs of the columns [p, p+kc) of panel i are: in the weight, or unpacked in scratch. p is a multiple
// of 16.
func (w *weight) pairs(k *kernels, scratch []float32, i, p, kc int) *uint32 {
	if w.blocks == nil {
		return &w.q[w.pairAt(i*panel, p/2)]
	}
	return w.unpack(k, scratch, i, p, kc)
}

// unpack writes the columns [p, p+kc) of panel i to scratch, as pairs; p is a multiple of 16. What stands in for columns
// past the last is zero.
func (w *weight) unpack(k *kernels, scratch []float32, i, p, kc int) *uint32 {
	n, units := w.layout.panelWords(w.k), (kc+unit-1)/unit
	dst := (*uint32)(unsafe.Pointer(&scratch[0]))
	k.unpack[w.dtype](dst, &w.blocks[i*n], p/unit, units)
	if p+units*unit > w.k {
		pairs := unsafe.Slice(dst, units*unit/2*panel)
		clear(pairs[even(w.k-p)/2*panel:])
		if w.k%2 == 1 {
			for j := range pairs[(w.k-p)/2*panel:][:panel] {
				pairs[(w.k-p)/2*panel+j] &= 0xffff
			}
		}
	}
	return dst
}

// readBlocks is readRow of a quantised weight.
func (w *weight) readBlocks(dst []float32, n int) {
	words, j := w.layout.panelWords(w.k), n%panel
	in := w.blocks[n/panel*words:][:words]
	for k := 0; k < w.k; k += w.layout.Group {
		b, at := w.layout.blockAt(in, k), k%w.layout.span
		scale, minimum := b.numbers(j, at)
		for i := range min(w.layout.Group, w.k-k) {
			dst[k+i] = math.Float32frombits(b.value(b.code(j, at+i), scale, minimum) << 16)
		}
	}
}

// store writes row r of q as row n of the weight.
func (w *weight) store(n int, q device.Quant, r int) {
	words, j := w.layout.panelWords(w.k), n%panel
	in := w.blocks[n/panel*words:][:words]
	q = q.RowsOf(r, r+1)
	for k0 := 0; k0 < w.k; k0 += w.layout.span {
		b := w.layout.blockAt(in, k0)
		lane[uint16](b, 0, panel)[j] = q.Scale[k0/b.span]
		if b.Min {
			lane[uint16](b, b.minimum, panel)[j] = q.Min[k0/b.span]
		}
		if b.Super > 0 {
			b.storeFactors(b.factors, j, q.SubScale[k0/b.Group:])
			if b.Min {
				b.storeFactors(b.minFactors, j, q.SubMin[k0/b.Group:])
			}
		}
		b.storeCodes(j, q.Codes[k0:min(k0+b.span, w.k)])
	}
}

func (b block) storeFactors(at, j int, factors []int8) {
	groups := b.span / b.Group
	to := lane[int8](b, at, groups*panel)
	for g := range groups {
		to[g*panel+j] = factors[g]
	}
}

func (b block) storeCodes(j int, codes []int8) {
	if b.Bits == 8 {
		to := lane[int8](b, b.codes, b.span*panel)
		for k, c := range codes {
			to[k*panel+j] = c
		}
		return
	}
	for k := 0; k < len(codes); k += 8 {
		word := uint32(0)
		for i, c := range codes[k:min(k+8, len(codes))] {
			word |= uint32(c&15) << (4 * i)
		}
		b.words[b.codes/4+k/8*panel+j] = word
	}
}

func (d *cpu) LoadWeightQuant(w device.Weight, row int, src device.Quant) error {
	if d.ok(device.CheckLoadWeightQuant(w, row, src)) {
		if own := d.weight(w); own != nil && src.Rows > 0 {
			d.quantise(&quantTask{w: own, row: row, rows: src.Rows, given: &src})
		}
	}
	return d.err
}

// quantTask packs rows of a quantised weight: given ones, or such as it makes of values that load has. Its items are the
// half panels that the rows fall into.
type quantTask struct {
	w         *weight
	row, rows int
	given     *device.Quant
	load      *loadTask

	mu    sync.Mutex
	err   error // of the least row that has one
	errAt int
}

func (d *cpu) quantise(t *quantTask) {
	first, last := t.row/halfPanel, (t.row+t.rows-1)/halfPanel
	d.each(last-first+1, max(1, grain/4/halfPanel/t.w.k), t)
	d.ok(t.err)
}

func (t *quantTask) do(_, i, j int) {
	for h := t.row/halfPanel + i; h < t.row/halfPanel+j; h++ {
		r0, r1 := max(t.row, h*halfPanel), min(t.row+t.rows, (h+1)*halfPanel)
		q := device.Quant{}
		if t.given != nil {
			q = t.given.RowsOf(r0-t.row, r1-t.row)
		} else {
			q = device.NewQuant(t.w.dtype, r1-r0, t.w.k)
			if err := q.Quantise(t.load.values(r0-t.row, r1-t.row)); err != nil {
				t.fail(r0, err)
				return
			}
		}
		for r := r0; r < r1; r++ {
			t.w.store(r, q, r-r0)
		}
	}
}

func (t *quantTask) fail(row int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil || row < t.errAt {
		t.err, t.errAt = fmt.Errorf("load weight: of the rows from %d on, %w", row, err), row
	}
}

// values are the rows [r0, r1) of what is loaded, one after the other.
func (t *loadTask) values(r0, r1 int) []float32 {
	x := make([]float32, 0, (r1-r0)*t.w.k)
	for r := r0; r < r1; r++ {
		if t.bf16 == nil {
			x = append(x, t.src.row(r)...)
			continue
		}
		for _, b := range t.bf16[r*t.w.k : (r+1)*t.w.k] {
			x = append(x, half.FromBF16(b))
		}
	}
	return x
}
