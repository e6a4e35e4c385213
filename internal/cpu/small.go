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
	l.k = src.cols
	t := packTask{k: k, dst: *l, src: src, scale: 1}
	t.do(0, 0, (l.m+l.mr-1)/l.mr)
}

// mulPanels: C [m,n] = A·B with B in panels of 32 columns, [n/32][k][32].
func (k *kernels) mulPanels(l *left, b []float32, c mat, n int) {
	step := kBlock(l.k)
	for j := 0; j < n; j += panel {
		mask := columns(n - j)
		for p := 0; p < l.k; p += step {
			kc := min(step, l.k-p)
			for i := 0; i < l.m; i += l.mr {
				rows := min(l.mr, l.m-i)
				k.mulF32(rows, kc, l.at(p, i, kc), rows, &b[j*l.k+p*panel], panel, c.at(i, j), c.stride, mask, onto(p > 0))
			}
		}
	}
}

// mulRows goes on with C [m,n] += A·B, for the rows of A's columns from k on that B [., n] has.
func (k *kernels) mulRows(l *left, from int, b, c mat) {
	for j := 0; j < c.cols; j += panel {
		mask := columns(c.cols - j)
		for i := 0; i < l.m; i += l.mr {
			rows := min(l.mr, l.m-i)
			at := i*even(l.k) + from*rows
			k.mulF32(rows, b.rows, &l.a[at], rows, b.at(0, j), b.stride, c.at(i, j), c.stride, mask, extend)
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
