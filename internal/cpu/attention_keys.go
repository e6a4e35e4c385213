package cpu

import "github.com/rubicon-rl/rubicon/internal/device"

// keyBlock is the number of path positions whose scores are taken at once. Blocks begin at multiples of it on the
// path, wherever spans are cut, so that a query's sums have one order.
const keyBlock = 128

// scoreStride separates the rows of a block of scores. It is no multiple of 64, which would put the same column of all
// rows into a few sets of the first cache.
const scoreStride = keyBlock + 16

// keySet is a block of keys of one key head: the rows of k and v in runs, n in all.
type keySet struct {
	runs    []device.Span
	n       int
	kv, dim int
	k       *kernels
	turned  [2][]float32 // scratch for panels
}

// scratch makes room for panels of keys and values.
func (s *keySet) scratch(a *arena) {
	for i := range s.turned {
		s.turned[i] = a.take(keyBlock * s.dim)
	}
}

// panels transposes the set's rows of m into panels of 32 keys, [n/32][dim][32]. which is the scratch to use.
func (s *keySet) panels(m mat, which int) []float32 {
	at, dst := 0, s.turned[which]
	for _, run := range s.runs {
		for i := 0; i < run.N; {
			rows := min(halfPanel, run.N-i, panel-at%panel)
			s.k.transpose(&dst[at/panel*s.dim*panel+at%panel], panel, m.at(run.Row+i, s.kv*s.dim), m.stride, rows, s.dim)
			i, at = i+rows, at+rows
		}
	}
	return dst
}

// mulRows goes on with C += P·M, M being the set's rows of m; P is packed.
func (s *keySet) mulRows(p *left, m, c mat) {
	at := 0
	for _, run := range s.runs {
		rows := mat{m.f[run.Row*m.stride+s.kv*s.dim:], run.N, s.dim, m.stride}
		s.k.mulRows(p, at, rows, c)
		at += run.N
	}
}

// keyReader walks the path of a tile block by block.
type keyReader struct {
	keySet
	from, end int // path positions: of the current block, after the last key that the tile sees
	spans     []device.Span
	skip      int // keys of the first span that are behind
}

// reader begins before the first block.
func (t *attention) reader(a *worker, s tile) keyReader {
	r := keyReader{end: s.task.Pos + s.i + s.n, spans: s.task.Keys}
	r.keySet = keySet{runs: a.runs, kv: s.kv, dim: t.a.HeadDim, k: t.d.k}
	r.scratch(&a.arena)
	return r
}

// next goes to the next block, if there is one.
func (r *keyReader) next() bool {
	r.from += r.n
	r.n = min(keyBlock, r.end-r.from)
	r.runs = r.runs[:0]
	for left := r.n; left > 0; {
		s := r.spans[0]
		n := min(left, s.N-r.skip)
		if n > 0 {
			r.runs = append(r.runs, device.Span{Row: s.Row + r.skip, N: n})
		}
		left, r.skip = left-n, r.skip+n
		if r.skip == s.N {
			r.spans, r.skip = r.spans[1:], 0
		}
	}
	return r.n > 0
}
