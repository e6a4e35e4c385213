package cpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// arithmetics calls f for every tier in both arithmetics.
func arithmetics(t *testing.T, f func(t *testing.T, o Options)) {
	for _, tier := range testedTiers() {
		for _, bf16 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s-bf16=%v", tier.name, bf16), func(t *testing.T) {
				f(t, Options{Threads: 2, Tier: tier.name, BFloat16: bf16})
			})
		}
	}
}

func (d on) upload(x []float32, rows, cols int) device.Mat {
	m := d.mat(rows, cols)
	d.Upload(m.Mem, 0, x)
	return m
}

// A product with a bfloat16 weight is as exact as float32 sums are. With bfloat16 arithmetic that holds for the rounded
// activations, whose bits alone decide. 1e-6 of the sum of sizes is what the order of 1111 additions leaves open.
func TestProductsAreExactInTheirInputs(t *testing.T) {
	arithmetics(t, func(t *testing.T, o Options) {
		const m, n, k = 45, 70, 1111
		d := onDevice(t, o)
		x, w := d.values(m*k), d.values(n*k)
		for i := range x { // sizes from 2^-20 to 1: the smallest piece of a large one is the largest of a small one
			x[i] *= float32(math.Ldexp(1, -i%21))
		}
		rounded := make([]float32, len(x))
		for i := range x {
			rounded[i] = half.FromBF16(half.ToBF16(x[i]))
		}
		weight, err := d.NewWeight(device.BFloat16, n, k)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.LoadWeight(weight, 0, w); err != nil {
			t.Fatal(err)
		}
		y, again := d.mat(m, n), d.mat(m, n)
		d.Linear(y, d.upload(x, m, k), device.Linear{W: weight})
		if o.BFloat16 {
			x = rounded
			d.Linear(again, d.upload(x, m, k), device.Linear{W: weight})
			sameBits(t, "rounded activations", d.read(again), d.read(y))
		}
		got := d.read(y)
		for i := range m {
			for j := range n {
				want, size := 0.0, 0.0
				for p := range k {
					term := float64(x[i*k+p]) * float64(half.FromBF16(half.ToBF16(w[j*k+p])))
					want, size = want+term, size+math.Abs(term)
				}
				if math.Abs(float64(got[i*n+j])-want) > 1e-6*size {
					t.Fatalf("(%d,%d) is %g, want %g", i, j, got[i*n+j], want)
				}
			}
		}
	})
}

// The bits of an output row do not depend on how many rows there are, forward, of the input gradient and of LoRA, with and
// without dropout; and the adapter's gradients of many rows are the sum of those of few.
func TestRowsDoNotMeet(t *testing.T) {
	arithmetics(t, func(t *testing.T, o Options) {
		for _, p := range []float32{0, 0.3} {
			t.Run(fmt.Sprintf("dropout=%g", p), func(t *testing.T) { rowsDoNotMeet(t, onDevice(t, o), p) })
		}
	})
}

func rowsDoNotMeet(t *testing.T, d on, dropout float32) {
	const m, n, k = 600, 100, 650 // so many that each task cuts its own
	seg, pos := d.ints(m, func(int) int32 { return 1 }), d.ints(m, func(int) int32 { return 2 })
	l := device.Linear{W: d.weight(device.BFloat16, n, k), LoRA: []device.LoRA{d.lora(0, 40, k, 8), d.lora(40, 60, k, 3)}}
	l.LoRA[1].Drop = &device.Dropout{P: dropout, Key: device.NewKey(1, 2), Seg: seg, Pos: pos}
	x, y := d.mat(m, k), d.mat(m, n)
	d.Linear(y, x, l)
	gradient := func(first, rows int) (dx []float32) {
		out := d.mat(rows, k)
		d.LinearGrad(out, y.RowsOf(first, first+rows), x.RowsOf(first, first+rows), l)
		return d.read(out)
	}
	adapter := func() (g []float32) { // reads and clears
		for _, p := range l.LoRA {
			g = append(append(g, d.read(p.DA)...), d.read(p.DB)...)
			d.Zero(p.DA)
			d.Zero(p.DB)
		}
		return g
	}
	adapter()
	allY, allX := d.read(y), gradient(0, m)
	want := adapter()
	for first := 0; first < m; first += 100 {
		gradient(first, 100)
	}
	for i, got := range adapter() {
		if !(math.Abs(float64(got-want[i])) < 1e-2*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("adapter gradient %d is %g in one piece and %g in six", i, want[i], got)
		}
	}
	for _, rows := range []int{1, 2, 15, 16, 17, 31, 33, 64} {
		for _, first := range []int{0, 1, m - rows} {
			out := d.mat(rows, n)
			d.Linear(out, x.RowsOf(first, first+rows), l)
			what := fmt.Sprintf("%d rows from %d on", rows, first)
			sameBits(t, what, d.read(out), allY[first*n:(first+rows)*n])
			sameBits(t, what, gradient(first, rows), allX[first*k:(first+rows)*k])
		}
	}
}

// Values beyond the finite ones stay so, as the trainer's check of the gradient needs.
func TestNonFiniteActivationsShow(t *testing.T) {
	arithmetics(t, func(t *testing.T, o Options) {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			d := onDevice(t, o)
			x := d.values(3 * 40)
			x[47] = float32(bad)
			y := d.mat(3, 50)
			d.Linear(y, d.upload(x, 3, 40), device.Linear{W: d.weight(device.BFloat16, 50, 40)})
			for i, v := range d.read(y) {
				finite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
				if finite != (i/50 != 1) {
					t.Fatalf("%g in row 1 makes element %d of row %d %g", bad, i%50, i/50, v)
				}
			}
		}
	})
}
