//go:build slow && linux && (amd64 || arm64) && !nocuda && !nodl

package native

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/half"
)

func (f *fake) blas(d *Driver) *Blas {
	f.Helper()
	b, err := OpenBlas(f.env, d, 12)
	f.must(err)
	f.Cleanup(func() {
		if err := b.Close(); err != nil {
			f.Error(err)
		}
	})
	return b
}

// matrix is a row-major matrix on the host and on the device, with unused columns on its right.
type matrix struct {
	driver.Matrix
	rows, cols int
	v          []float64
}

func (f *fake) matrix(d *Driver, s driver.Stream, t driver.Type, rows, cols int) matrix {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	m := matrix{Matrix: driver.Matrix{Stride: cols + 3, Type: t}, rows: rows, cols: cols, v: make([]float64, rows*(cols+3))}
	var b []byte
	for i := range m.v {
		v := float32(rng.NormFloat64())
		if t == driver.BF16 {
			bits := half.ToBF16(v)
			b, v = binary.LittleEndian.AppendUint16(b, bits), half.FromBF16(bits)
		} else {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		m.v[i] = float64(v)
	}
	m.At = f.memory(d, len(b))
	f.must(d.CopyIn(m.At, b, s), d.SyncStream(s))
	return m
}

func (m matrix) at(turned bool, r, c int) float64 {
	if turned {
		r, c = c, r
	}
	return m.v[r*m.Stride+c]
}

// turned is the shape of a matrix that is transposed before it is used.
func turned(t bool, rows, cols int) (int, int) {
	if t {
		return cols, rows
	}
	return rows, cols
}

// cuBLAS is column-major: swapped operands, strides or transpositions give another product.
func TestGemm(t *testing.T) {
	f := newFake(t, nil)
	d := f.open()
	s, b := f.stream(d), f.blas(d)
	if b.Name() != "cuBLAS 12.4.5" {
		t.Errorf("name is %q", b.Name())
	}
	const m, n, k = 5, 7, 11
	for i := range 24 {
		ta, tb, beta := i&1 != 0, i&2 != 0, float32(i>>2&1)*0.5
		in, out := driver.F32, driver.F32
		if i >= 8 {
			in = driver.BF16
		}
		if i >= 16 {
			out = driver.BF16
		}
		what := fmt.Sprintf("transposed %v, %v, beta %g, types %d -> %d", ta, tb, beta, in, out)
		ar, ac := turned(ta, m, k)
		br, bc := turned(tb, k, n)
		x, y, z := f.matrix(d, s, in, ar, ac), f.matrix(d, s, in, br, bc), f.matrix(d, s, out, m, n)
		f.must(b.Gemm(driver.Gemm{TransA: ta, TransB: tb, M: m, N: n, K: k, Alpha: 1.5, Beta: beta, A: x.Matrix, B: y.Matrix, C: z.Matrix}, s))
		got := make([]byte, len(z.v)*out.Size())
		f.must(d.CopyOut(got, z.At, s), d.SyncStream(s))
		for i, old := range z.v {
			want := old // outside of the product's columns
			if r, c := i/z.Stride, i%z.Stride; c < n {
				want *= float64(beta)
				for l := range k {
					want += 1.5 * x.at(ta, r, l) * y.at(tb, l, c)
				}
			}
			tolerance := map[driver.Type]float64{driver.F32: 1e-5, driver.BF16: 0.05}[out]
			if v := element(got, i, out); math.Abs(v-want) > tolerance {
				t.Fatalf("%s: element %d is %g, want %g", what, i, v, want)
			}
		}
	}
}

func element(b []byte, i int, t driver.Type) float64 {
	if t == driver.BF16 {
		return float64(half.FromBF16(binary.LittleEndian.Uint16(b[2*i:])))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
}

// Another stream takes cuBLAS's workspace away, which the fake then misses.
func TestGemmOnTwoStreams(t *testing.T) {
	f := newFake(t, nil)
	d := f.open()
	b := f.blas(d)
	for range 2 {
		for _, s := range []driver.Stream{f.stream(d), f.stream(d)} {
			x := f.floats(d, s, 3)
			one := driver.Matrix{At: x, Stride: 1}
			f.must(b.Gemm(driver.Gemm{M: 1, N: 1, K: 1, Alpha: 1, A: one, B: one, C: one}, s))
			if v := f.read(d, s, x, 1)[0]; v != 9 {
				t.Errorf("3·3 is %g", v)
			}
		}
	}
}

func TestGemmErrors(t *testing.T) {
	f := newFake(t, nil)
	d := f.open()
	b, s := f.blas(d), f.stream(d)
	x := driver.Matrix{At: f.memory(d, 64), Stride: 4}
	f.must(b.Gemm(driver.Gemm{M: 0, N: 4, K: 4, A: x, B: x, C: x}, s))
	err := b.Gemm(driver.Gemm{M: 4, N: 4, K: 5, Alpha: 1, A: x, B: x, C: x}, s)
	for _, say := range []string{"cublasGemmEx: CUBLAS_STATUS_INVALID_VALUE (7)", "[4,5]·[5,4] with strides 4, 4, 4"} {
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("a stride that is too short has no %q: %v", say, err)
		}
	}
	f.fail("cublasCreate_v2", 1)
	if _, err := OpenBlas(f.env, d, 12); err == nil || !strings.Contains(err.Error(), "rubicon doctor") {
		t.Errorf("cuBLAS that does not start: %v", err)
	}
}
