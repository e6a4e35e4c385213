package cpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// weight is the device.Weight [n,k] in panels of 32 rows, the last one filled up with zeros:
//
//	Float32:  f [n/32][k][32]
//	BFloat16: q [n/32][kp/2][32], a dword holding the bfloat16 of an even k (low half) and of the next k;
//	          k is filled up with zeros to kp, a multiple of 32;
//	quantised: blocks, as blockLayout says.
type weight struct {
	owner    *cpu
	dtype    device.DType
	n, k, kp int
	f        []float32
	q        []uint32
	blocks   []uint32
	layout   blockLayout // of blocks
}

func (w *weight) Shape() (n, k int)   { return w.n, w.k }
func (w *weight) DType() device.DType { return w.dtype }

// Bytes is the size of the panels.
func (w *weight) Bytes() int64 { return 4 * int64(len(w.f)+len(w.q)+len(w.blocks)) }

// f32At is the place of element (n, k) in f; the next k is 32 further.
func (w *weight) f32At(n, k int) int { return (n/panel*w.k+k)*panel + n%panel }

// pairAt is the place of elements (n, 2p) and (n, 2p+1) in q; the next pair is 32 further.
func (w *weight) pairAt(n, p int) int { return (n/panel*w.kp/2+p)*panel + n%panel }

func (d *cpu) NewWeight(t device.DType, n, k int) (device.Weight, error) {
	if d.err != nil {
		return nil, d.err
	}
	if err := device.CheckNewWeight(t, n, k); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	w := &weight{owner: d, dtype: t, n: n, k: k, kp: depth(k)}
	layout, quantised := layoutOf(t)
	width, whole := 4.0, 32 // bytes an element, what k is filled up to
	switch {
	case t == device.BFloat16:
		width = 2
	case quantised:
		width, whole = float64(layout.size)/float64(layout.span*panel), layout.span
	}
	if err := d.room(width * (float64(n) + panel) * (float64(k) + float64(whole))); err != nil { // in floats: nothing overflows
		return nil, err
	}
	panels := (n + panel - 1) / panel
	var free func()
	var err error
	switch {
	case t == device.BFloat16:
		w.q, free, err = reserve[uint32](panels * panel * w.kp / 2)
	case quantised:
		w.layout = layout
		w.blocks, free, err = reserve[uint32](panels * layout.panelWords(k))
	default:
		w.f, free, err = reserve[float32](panels * panel * k)
	}
	if err != nil {
		return nil, err
	}
	d.hold(w, w.Bytes(), free)
	return w, nil
}

func (d *cpu) FreeWeight(w device.Weight) {
	own, ok := w.(*weight)
	if !ok || own.owner != d {
		d.ok(errors.New("free weight: the weight was freed before, or belongs to another device"))
		return
	}
	d.drop(own, own.Bytes())
	*own = weight{dtype: own.dtype, n: own.n, k: own.k}
}

// weight resolves w. A foreign one becomes the device's error.
func (d *cpu) weight(w device.Weight) *weight {
	own, ok := w.(*weight)
	if !ok || own.owner != d {
		d.ok(errForeign)
		return nil
	}
	return own
}

func (d *cpu) LoadWeight(w device.Weight, row int, src []float32) error {
	if d.ok(device.CheckLoadWeight(w, row, len(src))) {
		if own := d.weight(w); own != nil {
			d.loadRows(own, row, dense(src, len(src)/own.k, own.k), nil)
		}
	}
	return d.err
}

func (d *cpu) LoadWeightBF16(w device.Weight, row int, src []uint16) error {
	if d.ok(device.CheckLoadWeight(w, row, len(src))) {
		if own := d.weight(w); own != nil {
			d.loadRows(own, row, mat{rows: len(src) / own.k, cols: own.k}, src)
		}
	}
	return d.err
}

func (d *cpu) Repack(w device.Weight, row int, src device.Mat) {
	if !d.ok(device.CheckRepack(w, row, src)) {
		return
	}
	own, m := d.weight(w), d.mat(src)
	if d.err == nil {
		d.loadRows(own, row, m, nil)
	}
}

// loadTask packs rows of a weight, from float32 rows or from bfloat16 bits. Its items are the half panels that
// the rows fall into.
type loadTask struct {
	d    *cpu
	w    *weight
	row  int
	src  mat
	bf16 []uint16 // in place of src.f
}

// halfPanel is the number of rows that one transposition takes.
const halfPanel = panel / 2

func (d *cpu) loadRows(w *weight, row int, src mat, bf16 []uint16) {
	if src.rows == 0 {
		return
	}
	t := &d.ops.load
	*t = loadTask{d, w, row, src, bf16}
	if w.blocks != nil {
		d.quantise(&quantTask{w: w, row: row, rows: src.rows, load: t})
		*t = loadTask{}
		return
	}
	first, last := row/halfPanel, (row+src.rows-1)/halfPanel
	d.each(last-first+1, max(1, grain/halfPanel/w.k), t)
	*t = loadTask{}
}

func (t *loadTask) do(worker, i, j int) {
	first := t.row / halfPanel
	for h := first + i; h < first+j; h++ {
		r0, r1 := max(t.row, h*halfPanel), min(t.row+t.src.rows, (h+1)*halfPanel)
		if t.w.dtype == device.BFloat16 {
			t.pairs(worker, r0, r1)
		} else {
			t.floats(worker, r0, r1)
		}
	}
}

// floats packs the rows [r0, r1) of a Float32 weight.
func (t *loadTask) floats(worker, r0, r1 int) {
	w, src := t.w, t.src
	from := r0 - t.row
	if t.bf16 != nil { // widen into scratch first
		a := &t.d.workers[worker]
		a.reset()
		src, from = dense(a.take((r1-r0)*w.k), r1-r0, w.k), 0
		for i, b := range t.bf16[(r0-t.row)*w.k : (r1-t.row)*w.k] {
			src.f[i] = half.FromBF16(b)
		}
	}
	t.d.k.transpose(&w.f[w.f32At(r0, 0)], panel, src.at(from, 0), src.stride, r1-r0, w.k)
}

// littleEndian says that a row of bfloat16 is a row of pairs as it lies in memory.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// pairs packs the rows [r0, r1) of a BFloat16 weight: it transposes pairs, which it makes in scratch unless they are there.
func (t *loadTask) pairs(worker, r0, r1 int) {
	w, half2 := t.w, (t.w.k+1)/2
	dst := (*float32)(unsafe.Pointer(&w.q[w.pairAt(r0, 0)]))
	if t.bf16 != nil && w.k%2 == 0 && littleEndian {
		src := (*float32)(unsafe.Pointer(&t.bf16[(r0-t.row)*w.k]))
		t.d.k.transpose(dst, panel, src, half2, r1-r0, half2)
		return
	}
	a := &t.d.workers[worker]
	a.reset()
	buf := a.take((r1 - r0) * half2)
	for r := r0; r < r1; r++ {
		t.pairRow(buf[(r-r0)*half2:(r-r0+1)*half2], r-t.row)
	}
	t.d.k.transpose(dst, panel, &buf[0], half2, r1-r0, half2)
}

// pairRow writes source row r as dwords of two bfloat16.
func (t *loadTask) pairRow(dst []float32, r int) {
	k := t.w.k
	bits := func(i int) uint32 {
		switch {
		case i == k:
			return 0
		case t.bf16 != nil:
			return uint32(t.bf16[r*k+i])
		}
		return uint32(half.ToBF16(t.src.f[r*t.src.stride+i]))
	}
	for p := range dst {
		dst[p] = math.Float32frombits(bits(2*p) | bits(2*p+1)<<16)
	}
}

// readRow writes row n of the weight to dst.
func (w *weight) readRow(dst []float32, n int) {
	if w.blocks != nil {
		w.readBlocks(dst, n)
		return
	}
	if w.dtype == device.Float32 {
		for k, at := 0, w.f32At(n, 0); k < w.k; k, at = k+1, at+panel {
			dst[k] = w.f[at]
		}
		return
	}
	for k, at := 0, w.pairAt(n, 0); k < w.k; k, at = k+2, at+panel {
		dst[k] = math.Float32frombits(w.q[at] << 16)
		if k+1 < w.k {
			dst[k+1] = math.Float32frombits(w.q[at] & 0xffff0000)
		}
	}
}
