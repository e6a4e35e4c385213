package cpu

// maxK bounds the blocks into which a sum over k is cut: a panel of B of that length, 32 KiB, stays in the first cache.
const maxK = 256

// kBlock is the length of the blocks for a sum of k terms. It depends on k alone: row invariance rests on it.
func kBlock(k int) int {
	n := max(1, (k+maxK-1)/maxK)
	return ((k+n-1)/n + 15) &^ 15
}

func even(k int) int { return (k + 1) &^ 1 }

// left is the left operand A [m,k] of a product, packed: for each block of k, for each mr rows (the last panel has
// what is left), [k][rows]. An odd last block has a row of zeros after it.
//
// With pieces, A is in so many bfloat16 pieces instead, or src is what each task cuts into them (tile.go).
type left struct {
	a        []float32
	m, k, mr int
	pieces   int
	src      mat
}

// leftSize is the number of elements of a packed [m,k].
func leftSize(m, k int) int { return m * even(k) }

// at is the panel of the rows from i on, in the block that begins at p and is kc long.
func (l *left) at(p, i, kc int) *float32 { return &l.a[p*l.m+i*even(kc)] }

// packTask packs a left operand. Its items are panels of mr rows.
type packTask struct {
	k          *kernels
	dst        left
	src        mat
	transposed bool // src is [k,m]
}

// packed packs src, or its transpose, into the shared arena.
func (d *cpu) packed(src mat, transposed bool) left {
	m, k := src.rows, src.cols
	if transposed {
		m, k = k, m
	}
	l := left{a: d.shared.take(leftSize(m, k)), m: m, k: k, mr: d.k.mr}
	t := &d.ops.pack
	*t = packTask{d.k, l, src, transposed}
	d.each((m+l.mr-1)/l.mr, max(1, 2*grain/max(1, l.mr*k)), t)
	*t = packTask{}
	return l
}

func (t *packTask) do(_, i, j int) {
	step := kBlock(t.dst.k)
	for q := i; q < j; q++ {
		for p := 0; p < t.dst.k; p += step {
			t.panel(q*t.dst.mr, p, min(step, t.dst.k-p))
		}
	}
}

// panel packs the rows from i on, for the k from p on.
func (t *packTask) panel(i, p, kc int) {
	rows := min(t.dst.mr, t.dst.m-i)
	dst := t.dst.at(p, i, kc)
	at := p*t.dst.m + i*even(kc)
	switch {
	case t.transposed:
		t.k.copyRows(dst, rows, t.src.at(p, i), t.src.stride, kc, rows)
	case rows == 1:
		copy(t.dst.a[at:at+kc], t.src.row(i)[p:])
	default:
		t.k.transpose(dst, rows, t.src.at(i, p), t.src.stride, rows, kc)
	}
	clear(t.dst.a[at+rows*kc : at+rows*even(kc)])
}
