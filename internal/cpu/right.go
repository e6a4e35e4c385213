package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// form says how the right operand B [k,n] of a product is stored.
type form uint8

const (
	byRows  form = iota // m is [k,n]
	byCols              // the matrices in stack, one after another, are [n,k]
	forward             // B = Wᵀ: n is the weight's n
	input               // B = W: k is the weight's n, n its k
)

// right is a right operand. Products read it by panels of up to 32 columns.
type right struct {
	form  form
	m     mat
	stack []mat
	w     *weight
	copy  bool // byRows: gather panels, since they are read several times
}

// panelB is a panel of B: floats with the given stride, or bfloat16 pairs.
type panelB struct {
	f      *float32
	stride int
	q      *uint32
}

// fetchSize is how much scratch a fetch needs: whole blocks of 16 rows.
const fetchSize = panel * (maxK + 16)

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
	case forward:
		if r.w.dtype == device.BFloat16 {
			return panelB{q: &r.w.q[r.w.pairAt(c, p/2)]}
		}
		return panelB{f: &r.w.f[r.w.f32At(c, p)], stride: panel}
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

// fetchInput transposes blocks of the weight's panels. p is a multiple of 16.
func (r *right) fetchInput(k *kernels, scratch []float32, c, n, p, kc int) {
	w := r.w
	for i := 0; i < kc; i += halfPanel {
		dst := scratch[i*panel:]
		for h := 0; h < n; h += halfPanel {
			if w.dtype == device.BFloat16 {
				k.widenTranspose(&dst[h], panel, &w.q[w.pairAt(p+i, (c+h)/2)])
			} else {
				src := &w.f[w.f32At(p+i, c+h)]
				k.transpose(&dst[h], panel, src, panel, min(halfPanel, w.k-c-h), min(halfPanel, kc-i))
			}
		}
	}
}
