package cuda

import (
	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// The scratch memory of Head and HeadGrad is bounded: the logits of a chunk of rows, the reference's, and the gradient in
// them take headBytes or a small share of the device, whatever is less. The fewer rows a chunk has, the more often the
// head's weight is read.
const (
	headBytes = 512 << 20
	headShare = 64
)

// heading is a call of Head or HeadGrad on chunks of rows.
type heading struct {
	d      *gpu
	l      device.Head
	h, ref driver.Matrix
	target driver.Ptr
	n, v   int // rows, vocabulary
	rows   int // of a chunk
	room   driver.Ptr
	z, r   driver.Matrix // in it: the logits of a chunk, and of the reference if they are wanted,
	dz     driver.Matrix // and where a gradient in z goes: z itself unless that is to be bfloat16
}

// beginHead resolves what Head and HeadGrad share and takes memory for a chunk, which end gives back.
func (d *gpu) beginHead(op string, h device.Mat, l device.Head, withRef, withGrad bool) heading {
	w := d.weight(l.W)
	t := heading{d: d, l: l, h: d.mat(h), ref: d.mat(l.Ref), n: h.Rows, v: w.n}
	_, t.target = d.indices(op, "target", l.Targets, h.Rows, w.n)
	stride := (t.v + 7) / 8 * 8 // rows begin at whole vectors
	row, narrow := 4*stride, withGrad && w.mat.Type == driver.BF16
	if withRef {
		row += 4 * stride
	}
	if narrow {
		row += 2 * stride
	}
	bytes := max(row, min(headBytes, int(d.info.Memory/headShare)))
	for bytes/2 >= row*t.n && bytes > granule { // few sizes, which all calls share in the pool
		bytes /= 2
	}
	t.rows = min(bytes/max(1, row), t.n)
	t.room = d.scratch(bytes)
	t.z = driver.Matrix{At: t.room, Stride: stride}
	t.dz = t.z
	next := at(t.z, t.rows)
	if withRef {
		t.r, next = next, at(next, t.rows)
	}
	if narrow {
		t.dz = driver.Matrix{At: next.At, Stride: stride, Type: driver.BF16}
	}
	return t
}

func (t *heading) end() { t.d.give(driver.Matrix{At: t.room}) }

// each computes the logits of chunk after chunk and calls f with its rows [i, j).
func (t *heading) each(f func(i, j int)) {
	for i := 0; i < t.n && t.d.err == nil; i += t.rows {
		j := min(t.n, i+t.rows)
		t.d.forward(t.z, at(t.h, i), t.l.W, j-i)
		if t.r.At != 0 {
			t.d.forward(t.r, at(t.ref, i), t.l.W, j-i)
		}
		f(i, j)
	}
}

// args appends to a what both kernels take of the chunk that begins with row i; per are [N,1] matrices.
func (t *heading) args(a *driver.Args, i int, per []driver.Matrix) *driver.Args {
	a.Ptr(t.z.At).Ptr(t.r.At).Int(t.z.Stride).Int(t.v).Float(1 / t.l.Temp).Ptr(t.target + driver.Ptr(4*i))
	for _, m := range per {
		a.Matrix(at(m, i))
	}
	return a
}

// at is m from row r on.
func at(m driver.Matrix, r int) driver.Matrix {
	if m.At != 0 {
		m.At += driver.Ptr(r * m.Stride * m.Type.Size())
	}
	return m
}

// Head implements device.Ops.
func (d *gpu) Head(out device.HeadOut, h device.Mat, l device.Head) {
	if !d.ok(device.CheckHead(out, h, l)) {
		return
	}
	per := [...]driver.Matrix{d.mat(out.LogP), d.mat(out.LSE), d.mat(out.Entropy), d.mat(out.KL), d.mat(out.RefLSE)}
	t := d.beginHead("head", h, l, !out.KL.Absent(), false)
	t.each(func(i, j int) {
		d.launch(kernel{"head", "head"}, perLogits(j-i, t.v), t.args(d.args(), i, per[:]))
	})
	t.end()
}

// HeadGrad implements device.Ops. On a bfloat16 device the gradient in the logits is rounded to bfloat16 for its products,
// as every gradient in an activation is. Its large elements lose nothing by that: p - 1 of the target is rounded as a
// whole, and what is wrong in one element is independent of the others.
func (d *gpu) HeadGrad(dh device.Mat, g device.HeadGrad, out device.HeadOut, h device.Mat, l device.Head) {
	if !d.ok(device.CheckHeadGrad(dh, g, out, h, l)) {
		return
	}
	to, dW := d.mat(dh), d.mat(l.DW)
	per := [...]driver.Matrix{d.mat(out.LSE), d.mat(out.Entropy), d.mat(out.RefLSE), d.mat(g.LogP), d.mat(g.Entropy), d.mat(g.KL)}
	t := d.beginHead("head gradient", h, l, !g.KL.Absent(), true)
	t.each(func(i, j int) {
		d.launch(kernel{"head", "grad"}, perRow(j-i), t.args(d.args().Matrix(t.dz), i, per[:]))
		if to.At != 0 {
			d.backward(at(to, i), t.dz, l.W, j-i)
		}
		if dW.At != 0 {
			d.gemm(driver.Gemm{TransA: true, M: t.v, N: h.Cols, K: j - i, Alpha: 1, Beta: 1, A: t.dz, B: at(t.h, i), C: dW})
		}
	})
	t.end()
}
