package cuda

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// dense is scratch memory for a [rows, cols] matrix without gaps. give gives it back when what uses it is in the stream.
func (d *gpu) dense(rows, cols int, t driver.Type) driver.Matrix {
	return driver.Matrix{At: d.scratch(rows * cols * t.Size()), Stride: cols, Type: t}
}

func (d *gpu) give(m driver.Matrix) {
	if m.At != 0 {
		d.pool.give(m.At)
	}
}

// columns is m from column c on.
func columns(m driver.Matrix, c int) driver.Matrix {
	if m.At != 0 {
		m.At += driver.Ptr(c * m.Type.Size())
	}
	return m
}

// forward sets y, of a number of rows, to x·Wᵀ.
func (d *gpu) forward(y, x driver.Matrix, w device.Weight, rows int) {
	own := d.weight(w)
	d.gemm(driver.Gemm{TransB: true, M: rows, N: own.n, K: own.k, Alpha: 1, A: x, B: own.mat, C: y})
}

// backward sets dx, of a number of rows, to dy·W.
func (d *gpu) backward(dx, dy driver.Matrix, w device.Weight, rows int) {
	own := d.weight(w)
	d.gemm(driver.Gemm{M: rows, N: own.k, K: own.n, Alpha: 1, A: dy, B: own.mat, C: dx})
}

// gemm multiplies matrices of any types. Beside a float32 operand a bfloat16 one is widened in scratch memory, and a
// bfloat16 result of float32 operands is rounded from there: exact and slow, for Float32 weights on a bfloat16 device.
func (d *gpu) gemm(g driver.Gemm) {
	if d.err != nil || g.M == 0 || g.N == 0 {
		return
	}
	if g.A.Type == g.B.Type && (g.A.Type == driver.BF16 || g.C.Type == driver.F32) {
		d.multiply(g)
		return
	}
	a, b, c := g.A, g.B, g.C
	g.A, g.B = d.widened(a, g.M, g.K, g.TransA), d.widened(b, g.K, g.N, g.TransB)
	if c.Type == driver.BF16 {
		g.C = d.dense(g.M, g.N, driver.F32)
		if g.Beta != 0 {
			d.pack(g.C, c, g.M, g.N, false)
		}
	}
	d.multiply(g)
	if c.Type == driver.BF16 {
		d.pack(c, g.C, g.M, g.N, false)
		d.give(g.C)
	}
	if a.Type == driver.BF16 {
		d.give(g.A)
	}
	if b.Type == driver.BF16 {
		d.give(g.B)
	}
}

// multiply puts a product in the stream.
func (d *gpu) multiply(g driver.Gemm) {
	if d.err != nil {
		return
	}
	if err := d.blas.Gemm(g, d.stream); err != nil {
		d.ok(fmt.Errorf("product of [%d,%d] and [%d,%d]: %w", g.M, g.K, g.K, g.N, err))
	}
}

// widened is m as float32, in scratch memory if it is not. As an operand it is [rows, cols]; turned says that it lies
// there the other way round.
func (d *gpu) widened(m driver.Matrix, rows, cols int, turned bool) driver.Matrix {
	if m.Type == driver.F32 {
		return m
	}
	if turned {
		rows, cols = cols, rows
	}
	wide := d.dense(rows, cols, driver.F32)
	d.pack(wide, m, rows, cols, false)
	return wide
}
