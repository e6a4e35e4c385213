package ptxsim

import (
	"encoding/binary"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// Blas multiplies matrices in a Driver's memory: plain loops, sums in float32 in ascending order.
type Blas struct{ D *Driver }

var _ driver.Blas = Blas{}

// Name implements driver.Blas.
func (Blas) Name() string { return "reference" }

// Close implements driver.Blas.
func (Blas) Close() error { return nil }

// Gemm implements driver.Blas.
func (b Blas) Gemm(g driver.Gemm, _ driver.Stream) error {
	if g.M == 0 || g.N == 0 {
		return nil
	}
	x, err := b.read(g.A, g.M, g.K, g.TransA)
	if err != nil {
		return err
	}
	w, err := b.read(g.B, g.N, g.K, !g.TransB)
	if err != nil {
		return err
	}
	size := g.C.Type.Size()
	c, err := b.D.bytes("gemm", g.C.At, ((g.M-1)*g.C.Stride+g.N)*size)
	if err != nil {
		return err
	}
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i := range g.M {
		work.Go(func() error {
			for j := range g.N {
				var sum float32
				row, col := x[i*g.K:(i+1)*g.K], w[j*g.K:(j+1)*g.K]
				for k := range row {
					sum += row[k] * col[k]
				}
				at := c[(i*g.C.Stride+j)*size:]
				sum *= g.Alpha
				if g.Beta != 0 {
					sum += g.Beta * get(at, g.C.Type)
				}
				put(at, g.C.Type, sum)
			}
			return nil
		})
	}
	return work.Wait()
}

// read returns a [rows, cols] matrix as float32; turned says that it lies there as [cols, rows].
func (b Blas) read(m driver.Matrix, rows, cols int, turned bool) ([]float32, error) {
	out := make([]float32, rows*cols)
	inRows, inCols := rows, cols
	if turned {
		inRows, inCols = cols, rows
	}
	if len(out) == 0 {
		return out, nil
	}
	size := m.Type.Size()
	mem, err := b.D.bytes("gemm", m.At, ((inRows-1)*m.Stride+inCols)*size)
	if err != nil {
		return nil, err
	}
	for r := range inRows {
		for c := range inCols {
			v := get(mem[(r*m.Stride+c)*size:], m.Type)
			if turned {
				out[c*cols+r] = v
			} else {
				out[r*cols+c] = v
			}
		}
	}
	return out, nil
}

func get(b []byte, t driver.Type) float32 {
	if t == driver.BF16 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

func put(b []byte, t driver.Type, v float32) {
	if t == driver.BF16 {
		binary.LittleEndian.PutUint16(b, half.ToBF16(v))
		return
	}
	binary.LittleEndian.PutUint32(b, math.Float32bits(v))
}
