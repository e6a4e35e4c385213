package cuda

import (
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// LinearGrad implements device.Ops.
func (d *gpu) LinearGrad(dx, dy, x device.Mat, l device.Linear) {
	if !d.ok(device.CheckLinearGrad(dx, dy, x, l)) {
		return
	}
	var room [partsOnce]part
	t, to, from := d.bind(l, x, room[:0]), d.mat(dx), d.mat(dy)
	dW, dBias := d.mat(l.DW), d.mat(l.DBias)
	if d.err != nil || t.rows == 0 {
		return
	}
	beta := float32(0)
	if len(t.parts) > 0 {
		d.loraGrads(&t, to, from)
		beta = 1
	}
	if to.At != 0 {
		d.gemm(driver.Gemm{M: t.rows, N: t.k, K: t.n, Alpha: 1, Beta: beta, A: from, B: t.w.mat, C: to})
	}
	if dW.At != 0 {
		d.gemm(driver.Gemm{TransA: true, M: t.n, N: t.k, K: t.rows, Alpha: 1, Beta: 1, A: from, B: t.x, C: dW})
	}
	if dBias.At != 0 {
		d.addColumns(dBias, from, t.rows, t.n)
	}
}

// addColumns adds the sum of x's rows to the row y.
func (d *gpu) addColumns(y, x driver.Matrix, rows, cols int) {
	parts, each := parted(rows)
	sums, run := d.scratch(4*parts*cols), runOf(cols, x)
	s := runs(parts, cols, run)
	d.launch(kernel{"linear", "sum_columns"}, s, d.args().Ptr(sums).Matrix(x).Int(rows).Int(cols).Int(each).Int(run))
	d.addParts(y, sums, parts, cols)
	d.give(driver.Matrix{At: sums})
}

// loraGrads adds the parts' gradients to dA and dB, and sets dx, if it is wanted, to their share of it. What is rounded to
// the activations' type on the way is u = drop(x)·Aᵀ and g = scale·dy·B.
func (d *gpu) loraGrads(t *linear, dx, dy driver.Matrix) {
	a, g := d.stacked(t), driver.Matrix{}
	if dA, _ := t.wants(0, len(t.parts)); dA || dx.At != 0 {
		b := d.diagonal(t, dy.Type)
		g = d.dense(t.rows, t.ranks, dy.Type)
		d.gemm(driver.Gemm{M: t.rows, N: t.ranks, K: t.n, Alpha: 1, A: dy, B: b, C: g})
		d.give(b)
	}
	for i, j := 0, 0; i < len(t.parts); i = j {
		j = t.group(i)
		dA, dB := t.wants(i, j)
		if dA || dB {
			in := d.input(t, i)
			if dB {
				d.gradsOfB(t, i, j, in, a, dy)
			}
			if dA {
				d.gradsOfA(t, i, j, in, g)
			}
			d.giveInput(t, in)
		}
		if dx.At != 0 {
			d.inputGrad(t, i, j, spreading{y: dx, u: columns(g, t.parts[i].at), add: i > 0}, a)
		}
	}
	d.give(g)
	d.give(a)
}

// wants reports which gradients of the parts [i, j) are wanted.
func (t *linear) wants(i, j int) (dA, dB bool) {
	for _, p := range t.parts[i:j] {
		dA, dB = dA || p.dA.At != 0, dB || p.dB.At != 0
	}
	return dA, dB
}

// gradsOfB: dB += scale·dyᵀ·u of the parts [i, j), whose input is in; a are all parts' A stacked.
func (d *gpu) gradsOfB(t *linear, i, j int, in, a, dy driver.Matrix) {
	u := d.dense(t.rows, t.ranksOf(i, j), in.Type)
	d.lowRank(t, i, j, in, a, u)
	for q := i; q < j; q++ {
		if p := &t.parts[q]; p.dB.At != 0 {
			d.gemm(driver.Gemm{
				TransA: true, M: p.n, N: p.r, K: t.rows, Alpha: p.scale, Beta: 1,
				A: columns(dy, p.col), B: columns(u, p.at-t.parts[i].at), C: p.dB,
			})
		}
	}
	d.give(u)
}

// gradsOfA: dA += gᵀ·in of the parts [i, j), in one product.
func (d *gpu) gradsOfA(t *linear, i, j int, in, g driver.Matrix) {
	first := &t.parts[i]
	product := driver.Gemm{TransA: true, M: first.r, N: t.k, K: t.rows, Alpha: 1, Beta: 1, A: columns(g, first.at), B: in, C: first.dA}
	if j-i == 1 {
		d.gemm(product)
		return
	}
	product.M, product.Beta, product.C = t.ranksOf(i, j), 0, d.dense(t.ranksOf(i, j), t.k, driver.F32)
	d.gemm(product)
	run := runOf(t.k, product.C)
	for q := i; q < j; q++ {
		run = min(run, runOf(t.k, t.parts[q].dA))
	}
	for q := i; q < j; q += partsOnce {
		end := min(q+partsOnce, j)
		rows := t.ranksOf(q, end)
		args := d.args().Matrix(at(product.C, t.parts[q].at-first.at)).Int(rows).Int(t.k).Int(run)
		t.some(args, q, end, true)
		d.launch(kernel{"lora", "unstack"}, runs(rows, t.k, run), args)
	}
	d.give(product.C)
}

// inputGrad does s, the share of the parts [i, j) of dx: drop(g·A); a are all parts' A stacked.
func (d *gpu) inputGrad(t *linear, i, j int, s spreading, a driver.Matrix) {
	var strips [partsOnce]strip
	s.rows, s.cols, s.turned, s.exact, s.drop, s.strips = t.rows, t.k, true, t.x.Type == driver.F32, t.parts[i].drop, strips[:0]
	s.strips = strip{v: at(a, t.parts[i].at), n: t.k, r: t.ranksOf(i, j), scale: 1}.pieces(s.strips, s.turned)
	d.spread(s)
}
