package cpu

// Products of one worker, on operands that fit a cache.

// space makes room for a packed [m,k].
func (k *kernels) space(a *arena, m, depth int) left {
	return left{a: a.take(leftSize(m, depth)), m: m, k: depth, mr: k.mr}
}

// packed packs src.
func (k *kernels) packed(a *arena, src mat) left {
	l := k.space(a, src.rows, src.cols)
	k.pack(&l, src)
	return l
}

// pack packs src into l, which has room for it.
func (k *kernels) pack(l *left, src mat) {
	l.m, l.k = src.rows, src.cols
	t := packTask{k: k, dst: *l, src: src}
	t.do(0, 0, (l.m+l.mr-1)/l.mr)
}

// rowsFrom finds row i of a packed A: where its panel's first row is, and how many rows that has.
func (l *left) rowsFrom(i int) (first, rows int) {
	first = i / l.mr * l.mr
	return first, min(l.mr, l.m-first)
}

// mulPanels: C [m,n] = A·B for the rows of A from row on, with B in panels of 32 columns, [n/32][k][32].
func (k *kernels) mulPanels(l *left, row int, b []float32, c mat) {
	step := kBlock(l.k)
	for j := 0; j < c.cols; j += panel {
		mask := columns(c.cols - j)
		for p := 0; p < l.k; p += step {
			kc := min(step, l.k-p)
			for i := 0; i < c.rows; {
				first, lda := l.rowsFrom(row + i)
				rows := min(first+lda-row-i, c.rows-i)
				a := p*l.m + first*even(kc) + row + i - first
				k.mulF32(rows, kc, &l.a[a], lda, &b[j*l.k+p*panel], panel, c.at(i, j), c.stride, mask, onto(p > 0))
				i += rows
			}
		}
	}
}

// mulRows goes on with C [m,n] += A·B, for the rows of A from row on, and the columns from col on that B [., n] has rows
// for.
func (k *kernels) mulRows(l *left, row, col int, b, c mat) {
	for j := 0; j < c.cols; j += panel {
		mask := columns(c.cols - j)
		for i := 0; i < c.rows; {
			first, lda := l.rowsFrom(row + i)
			rows := min(first+lda-row-i, c.rows-i)
			a := first*even(l.k) + col*lda + row + i - first
			k.mulF32(rows, b.rows, &l.a[a], lda, b.at(0, j), b.stride, c.at(i, j), c.stride, mask, extend)
			i += rows
		}
	}
}

// mulTransposed: C [m,n] += Aᵀ·B with A [k,m] and B [k,n] row-major, of at most maxK rows.
func (k *kernels) mulTransposed(a, b, c mat) {
	for j := 0; j < c.cols; j += panel {
		mask := columns(c.cols - j)
		for i := 0; i < c.rows; i += k.mr {
			k.mulF32(min(k.mr, c.rows-i), a.rows, a.at(0, i), a.stride, b.at(0, j), b.stride, c.at(i, j), c.stride, mask, add)
		}
	}
}
