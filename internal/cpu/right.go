package cpu

import (
	"unsafe"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// form says how the right operand B [k,n] of a product is stored.
type form uint8

const (
	byRows   form = iota // m is [k,n]
	byCols               // the matrices in stack, one after another, are [n,k]
	forward              // B = Wᵀ: n is the weight's n
	input                // B = W: k is the weight's n, n its k
	diagonal             // the matrices in stack, one after another along both sides, the rest is zero
)

// right is a right operand. Products read it by panels of up to 32 columns.
type right struct {
	form  form
	m     mat
	stack []mat
	w     *weight
	copy  bool // byRows: gather panels, since they are read several times

	at      []int // diagonal: the first row of each matrix
	stacked int   // not 0: the parts of this many rows are stacked (tile.go)
}

// panelB is a panel of B: floats with the given stride, or bfloat16 pairs.
type panelB struct {
	f      *float32
	stride int
	q      *uint32
}

// fetchSize is how much scratch a fetch needs: whole blocks of 16 rows, and behind them a panel of unpacked pairs of 32
// columns.
const fetchSize = panel*(maxK+16) + panel*panel/2

// fetch returns the columns [c, c+n) of the rows [p, p+kc), n <= 32, packing them into scratch unless they can be
// read where they are. For the forms of a weight, c is a multiple of 32.
func (r *right) fetch(k *kernels, scratch []float32, c, n, p, kc int) panelB {
	switch r.form {
	case byRows:
		if !r.copy {
			return panelB{f: r.m.at(p, c), stride: r.m.stride}
		}
		k.copyRows(&scratch[0], panel, r.m.at(p, c), r.m.stride, kc, n)
	case byCols:
		r.fetchCols(k, scratch, c, n, p, kc)
	case diagonal:
		r.fetchDiagonal(k, scratch, c, n, p, kc)
	case forward:
		if r.w.dtype == device.Float32 {
			return panelB{f: &r.w.f[r.w.f32At(c, p)], stride: panel}
		}
		return panelB{q: r.w.pairs(k, scratch, c/panel, p, kc)}
	case input:
		r.fetchInput(k, scratch, c, n, p, kc)
	}
	return panelB{f: &scratch[0], stride: panel}
}

// fetchCols transposes rows of the stacked matrices, up to 16 of one matrix at a time.
func (r *right) fetchCols(k *kernels, scratch []float32, c, n, p, kc int) {
	done, first := 0, 0
	for _, m := range r.stack {
		for row := c + done - first; row < m.rows && done < n; row = c + done - first {
			rows := min(halfPanel, m.rows-row, n-done)
			k.transpose(&scratch[done], panel, m.at(row, p), m.stride, rows, kc)
			done += rows
		}
		first += m.rows
	}
}

// fetchDiagonal copies what there is of the matrices.
func (r *right) fetchDiagonal(k *kernels, scratch []float32, c, n, p, kc int) {
	clear(scratch[:kc*panel])
	col := 0
	for i, m := range r.stack {
		r0, r1 := max(p, r.at[i]), min(p+kc, r.at[i]+m.rows)
		c0, c1 := max(c, col), min(c+n, col+m.cols)
		if r0 < r1 && c0 < c1 {
			k.copyRows(&scratch[(r0-p)*panel+c0-c], panel, m.at(r0-r.at[i], c0-col), m.stride, r1-r0, c1-c0)
		}
		col += m.cols
	}
}

// fetchInput transposes blocks of the weight's panels. p is a multiple of 16.
func (r *right) fetchInput(k *kernels, scratch []float32, c, n, p, kc int) {
	w, q := r.w, (*uint32)(nil)
	for i := 0; i < kc; i += halfPanel {
		dst, row := scratch[i*panel:], (p+i)%panel
		if w.dtype != device.Float32 && (i == 0 || row == 0) {
			q = w.pairs(k, scratch[panel*(maxK+16):], (p+i)/panel, c, n)
		}
		for h := 0; h < n; h += halfPanel {
			if q != nil {
				k.widenTranspose(&dst[h], panel, &unsafe.Slice(q, panel*panel/2)[h/2*panel+row])
			} else {
				src := &w.f[w.f32At(p+i, c+h)]
				k.transpose(&dst[h], panel, src, panel, min(halfPanel, w.k-c-h), min(halfPanel, kc-i))
			}
		}
	}
}
