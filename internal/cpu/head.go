package cpu

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// head is Head or, with gradients, HeadGrad, for one chunk of rows: their logits z, which are never in memory for all
// rows at once, and on demand the reference's zr. Its items are the chunk's rows.
type head struct {
	k                              *kernels
	z, zr                          mat
	row                            int // of the first of the chunk
	inv                            float32
	target                         []int32
	logp, lse, entropy, kl, refLSE mat
	dlogp, dentropy, dkl           mat
	backward                       bool
}

// headBytes bounds the logits of a chunk. The fewer rows a chunk has, the more often the head's weight is read (and,
// backward, transposed).
const headBytes = 64 << 20

// headRows is the number of rows of a chunk, whole panels of the left operand.
func (d *cpu) headRows(w *weight) int {
	mr := d.k.mr
	if d.inPieces(w) {
		mr = unitRows
	}
	n := headBytes / 4 / w.n / mr * mr
	return max(4*mr, min(maxRows/mr*mr, n))
}

// bind resolves what Head and HeadGrad share, and begins the operation.
func (d *cpu) bindHead(op string, out device.HeadOut, h device.Mat, l device.Head) (t *head, hm, ref mat, w *weight) {
	w, t = d.weight(l.W), &d.ops.head
	*t = head{k: d.k, inv: 1 / l.Temp}
	t.logp, t.lse, t.entropy = d.mat(out.LogP), d.mat(out.LSE), d.mat(out.Entropy)
	t.kl, t.refLSE = d.mat(out.KL), d.mat(out.RefLSE)
	hm, ref = d.mat(h), d.mat(l.Ref)
	if d.err == nil {
		t.target = d.indices(op, "target", l.Targets, h.Rows, w.n)
	}
	return t, hm, ref, w
}

// logits computes the logits of a chunk of rows of h into scratch.
func (d *cpu) logits(h mat, w *weight) mat {
	z := d.matrix(h.rows, w.n)
	d.main.begin(d, d.operand(h, w, forward), forwardOf(w), z)
	d.main.run()
	return z
}

func (d *cpu) Head(out device.HeadOut, h device.Mat, l device.Head) {
	if !d.ok(device.CheckHead(out, h, l)) {
		return
	}
	t, hm, ref, w := d.bindHead("head", out, h, l)
	step := 1
	if d.err == nil {
		step = d.headRows(w)
	}
	for r := 0; r < hm.rows && d.err == nil; r += step {
		end := min(hm.rows, r+step)
		d.shared.reset()
		t.row, t.z = r, d.logits(hm.rowsOf(r, end), w)
		if !t.kl.absent() {
			t.zr = d.logits(ref.rowsOf(r, end), w)
		}
		d.each(end-r, gateChunk(w.n), t)
	}
	*t = head{}
}

func (t *head) do(_, i, j int) {
	for r := i; r < j; r++ {
		if t.backward {
			t.gradRow(r)
		} else {
			t.forwardRow(r)
		}
	}
}

func (t *head) forwardRow(r int) {
	z, at := t.z.row(r), t.row+r
	s := t.k.softmaxStats(z, t.inv)
	lse := s.lse()
	t.lse.row(at)[0] = float32(lse)
	t.logp.row(at)[0] = s.logp(z[t.target[at]])
	if !t.entropy.absent() {
		t.entropy.row(at)[0] = float32(s.entropy())
	}
	if !t.kl.absent() {
		zr := t.zr.row(r)
		ref := t.k.softmaxStats(zr, t.inv).lse()
		t.refLSE.row(at)[0] = float32(ref)
		t.kl.row(at)[0] = float32(t.k.kl(z, zr, t.inv, float32(lse), float32(ref)))
	}
}

// softmaxStats are the sums over a row of logits x, with t = inv·x - shift: of exp(t) and of t·exp(t).
type softmaxStats struct {
	inv, shift float32
	sum, dot   float64
}

// statBlock is the number of logits that are summed in float32 before float64 takes over.
const statBlock = 1024

func (k *kernels) softmaxStats(x []float32, inv float32) softmaxStats {
	s := softmaxStats{inv: inv, shift: k.maxOf(x) * inv}
	for i := 0; i < len(x); i += statBlock {
		sum, dot := k.expSums(x[i:min(len(x), i+statBlock)], inv, s.shift)
		s.sum += float64(sum)
		s.dot += float64(dot)
	}
	return s
}

func (s softmaxStats) lse() float64     { return float64(s.shift) + math.Log(s.sum) }
func (s softmaxStats) entropy() float64 { return math.Log(s.sum) - s.dot/s.sum }

// logp is the log-probability of the logit x. Head and Sample both take it from here, and so agree on its bits.
func (s softmaxStats) logp(x float32) float32 {
	return float32(float64(x)*float64(s.inv) - s.lse())
}

// kl is Σ p_ref (log p_ref - log p).
func (k *kernels) kl(z, zr []float32, inv, lse, ref float32) float64 {
	sum := 0.0
	for i := 0; i < len(z); i += statBlock {
		j := min(len(z), i+statBlock)
		sum += float64(k.divergence(z[i:j], zr[i:j], inv, lse, ref))
	}
	return sum
}

func (d *cpu) HeadGrad(dh device.Mat, g device.HeadGrad, out device.HeadOut, h device.Mat, l device.Head) {
	if !d.ok(device.CheckHeadGrad(dh, g, out, h, l)) {
		return
	}
	t, hm, ref, w := d.bindHead("head gradient", out, h, l)
	t.backward, t.dlogp, t.dentropy, t.dkl = true, d.mat(g.LogP), d.mat(g.Entropy), d.mat(g.KL)
	dhm, dW := d.mat(dh), d.mat(l.DW)
	step := 1
	if d.err == nil {
		step = d.headRows(w)
	}
	for r := 0; r < hm.rows && d.err == nil; r += step {
		end := min(hm.rows, r+step)
		d.shared.reset()
		t.row, t.z = r, d.logits(hm.rowsOf(r, end), w)
		if !t.dkl.absent() {
			t.zr = d.logits(ref.rowsOf(r, end), w)
		}
		d.each(end-r, gateChunk(w.n), t)
		if !dhm.absent() {
			d.main.begin(d, d.operand(t.z, w, input), inputOf(w), dhm.rowsOf(r, end))
			d.main.run()
		}
		if !dW.absent() {
			d.main.begin(d, d.packed(t.z, true), right{form: byRows, m: hm.rowsOf(r, end)}, dW)
			d.main.acc = true
			d.main.run()
		}
	}
	*t = head{}
}

// gradRow replaces the logits of a row by the loss's gradient in them. With t = inv·z - lse, p = exp(t) it is
// inv·(dlogp·(1[v=target] - p) - dentropy·p·(t + entropy) + dkl·(p - p_ref)).
func (t *head) gradRow(r int) {
	z, at := t.z.row(r), t.row+r
	dlogp, dentropy, dkl := cell(t.dlogp, at), cell(t.dentropy, at), cell(t.dkl, at)
	c0, c1 := -dlogp+dkl, float32(0)
	if dentropy != 0 {
		c0, c1 = c0-dentropy*cell(t.entropy, at), -dentropy
	}
	t.k.expGrad(z, t.inv, cell(t.lse, at), t.inv*c0, t.inv*c1)
	if !t.dkl.absent() {
		t.k.expAdd(z, t.zr.row(r), t.inv, cell(t.refLSE, at), -t.inv*dkl)
	}
	z[t.target[at]] += t.inv * dlogp
}

// cell is row r of a [N,1] matrix, 0 if it is absent.
func cell(m mat, r int) float32 {
	if m.absent() {
		return 0
	}
	return m.f[r*m.stride]
}
