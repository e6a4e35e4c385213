package cpu

import "unsafe"

// pairScratch is where a right operand's pairs are made: the pieces out [pieces][k/2][32], or two panels of a weight, from
// the floats in [k][32]; last holds 32 values.
type pairScratch struct{ out, in, last []float32 }

// newPairScratch takes scratch for stretches of k.
func newPairScratch(a *arena, k, pieces int) pairScratch {
	n := depth(k) * panel
	return pairScratch{out: a.take(n / 2 * max(2, pieces)), in: a.take(n), last: a.take(unitDepth)}
}

// words reinterprets scratch.
func words[T uint16 | uint32](f []float32) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&f[0])), len(f)*4/int(unsafe.Sizeof(T(0))))
}

// pairs is a panel of 32 columns of a right operand in bfloat16 pieces, [pieces][k/2][32] dwords of two rows, the smallest
// piece first.
type pairs struct {
	b      *uint32
	pieces int
	next   int // bytes to the next piece; of a weight, which is one piece, to the next panel
}

// piece is the panel of piece q.
func (b pairs) piece(q int) *uint32 { return (*uint32)(unsafe.Add(unsafe.Pointer(b.b), q*b.next)) }

// pairs returns the panel of the columns [c, c+n), n <= 32, for n k from p on, a multiple of 32; rows up to the next
// multiple are zero, columns past n have any value. For a weight, c is a multiple of 32 as well, and n may be 64 for two panels.
func (r *right) pairs(k *kernels, s *pairScratch, c, n, p, rows int) pairs {
	kc := depth(rows)
	made := pairs{(*uint32)(unsafe.Pointer(&s.out[0])), 1, 2 * kc * panel}
	switch {
	case r.form == forward && r.w.blocks == nil:
		return pairs{&r.w.q[r.w.pairAt(c, p/2)], 1, 2 * r.w.kp * panel}
	case r.form == forward:
		for j := 0; j < n; j += panel {
			r.w.unpack(k, s.out[j/panel*kc/2*panel:], (c+j)/panel, p, kc)
		}
	case r.form == input:
		for j := 0; j < n; j += panel {
			r.turn(k, words[uint32](s.out)[j/panel*kc/2*panel:], s.in, c+j, p, kc)
		}
	case r.stacked > 0:
		r.pairStack(k, s, c, n, rows)
	default:
		made.pieces = k.pieces
		r.fetch(k, s.in, c, n, p, rows)
		clear(s.in[rows*panel : kc*panel])
		k.pairUp((*uint32)(unsafe.Pointer(&s.out[0])), made.next, &s.in[0], kc/2)
	}
	return made
}

// turn makes pairs along the rows of a weight out of its pairs along k: the columns [c, c+32), kc rows from p on. scratch
// is for the unpacked pairs of a quantised weight.
func (r *right) turn(k *kernels, dst []uint32, scratch []float32, c, p, kc int) {
	for i := 0; i < kc; i += unitDepth {
		k.turnPairs(&dst[i/2*panel], r.w.pairs(k, scratch, (p+i)/panel, c, panel))
	}
}

// A product of few k in three pieces has six pairs of pieces, each with few k. Stacked they are one product of six times as
// many k in one piece. These are the pieces of either side in the order of the stack, by size.
var stackLeft, stackRight = [6]int{2, 1, 0, 2, 1, 2}, [6]int{0, 1, 2, 1, 2, 2}

// stackDepth is the k of the stack of r.
func stackDepth(r, pieces int) int {
	if pieces == 1 {
		return even(r)
	}
	return len(stackLeft) * even(r)
}

// newStack makes room for the stack of a [m,r].
func newStack(a *arena, m, r, pieces int) left {
	k := stackDepth(r, pieces)
	return left{a: a.take((m*depth(k) + 1) / 2), m: m, k: k, mr: unitRows, pieces: 1}
}

// fill stacks the pieces of u·scale.
func (l *left) fill(k *kernels, u mat, scale float32, s pairScratch) {
	half, wide := even(u.cols)/2, depth(u.cols)
	row := s.in[:wide]
	cut := words[uint32](s.out)
	for i := range u.rows {
		k.scaleTo(row[:u.cols], u.row(i), scale)
		clear(row[u.cols:])
		k.split((*uint16)(unsafe.Pointer(&s.out[0])), 2*wide, 2*unitDepth, &row[0], 4*unitDepth, wide/unitDepth)
		first := i / l.mr * l.mr
		rows := l.panelRows(first)
		to := words[uint32](l.a)[first*depth(l.k)/2:]
		at := 0
		for j := range l.k / (2 * half) {
			piece := cut[:half]
			if k.pieces > 1 {
				piece = cut[stackLeft[j]*wide/2:][:half]
			}
			for _, x := range piece {
				to[(at/16*rows+i-first)*16+at%16] = x
				at++
			}
		}
		for ; at < depth(l.k)/2; at++ {
			to[(at/16*rows+i-first)*16+at%16] = 0
		}
	}
}

// pairStack stacks the pieces of the columns [c, c+n) of a matrix with r.stacked rows, to rows in all.
func (r *right) pairStack(k *kernels, s *pairScratch, c, n, rows int) {
	out, half := words[uint32](s.out), even(r.stacked)/2
	size := half * panel
	r.fetch(k, s.in, c, n, 0, r.stacked)
	clear(s.in[r.stacked*panel : 2*size])
	if k.pieces == 1 {
		k.pairUp(&out[0], 0, &s.in[0], half)
	} else {
		cut := words[uint32](s.in[2*size:])
		k.pairUp(&cut[0], 4*size, &s.in[0], half)
		for j, piece := range stackRight {
			copy(out[j*size:], cut[piece*size:][:size])
		}
	}
	clear(out[rows/2*panel : depth(rows)/2*panel])
}
