package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// poolSize is how many rows an invariance test draws its batches from.
const poolSize = 64

// pool are the values of poolSize rows, of which a batch takes some.
type pool struct {
	values []float32
	cols   int
}

func (s *scene) pool(cols int, std float64) pool {
	p := pool{make([]float32, poolSize*cols), cols}
	for i := range p.values {
		p.values[i] = float32(std * s.rng.NormFloat64())
	}
	return p
}

// take fills a matrix with the given rows of the pool.
func (p pool) take(rows []int) fill {
	return func(_ *rand.Rand, r, c int) float32 { return p.values[rows[r]*p.cols+c] }
}

// takeInts are the given entries of values.
func takeInts(values []int32, rows []int) []int32 {
	taken := make([]int32, len(rows))
	for i, r := range rows {
		taken[i] = values[r]
	}
	return taken
}

// batches are the row selections that an invariance test compares: every size from 1 to poolSize, at varying places,
// and all rows in reverse.
func batches() [][]int {
	var list [][]int
	for size := 1; size <= poolSize; size++ {
		rows := make([]int, size)
		for i := range rows {
			rows[i] = (37*size + i) % poolSize
		}
		list = append(list, rows)
	}
	reversed := everyRow()
	slices.Reverse(reversed)
	return append(list, reversed)
}

// everyRow is the batch of the whole pool, in order.
func everyRow() []int {
	rows := make([]int, poolSize)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// sameBits checks that f's results for a row of the pool have the same bits in every batch. f is given a scene to
// allocate from and the rows of the batch, and returns matrices that have one row for each.
func (s *suite) sameBits(name string, f func(sc *scene, rows []int) []device.Mat) {
	s.Run(name, func(t *testing.T) {
		run := func(rows []int) [][][]float32 {
			sc := newScene(t, s.dev)
			defer sc.free()
			var results [][][]float32
			for _, m := range f(sc, rows) {
				results = append(results, sc.rows(m))
			}
			return results
		}
		want := run(everyRow())
		for _, rows := range batches() {
			for m, got := range run(rows) {
				for i, r := range rows {
					if !equalBits(t, fmt.Sprintf("result %d, row %d as row %d of %d", m, r, i, len(rows)), got[i], want[m][r]) {
						return
					}
				}
			}
		}
	})
}

// equalBits reports whether got has the bits of want, and fails the test otherwise.
func equalBits(t *testing.T, what string, got, want []float32) bool {
	t.Helper()
	for c := range want {
		if math.Float32bits(got[c]) != math.Float32bits(want[c]) {
			t.Errorf("%s: element %d is %g (%08x), elsewhere %g (%08x)", what, c,
				got[c], math.Float32bits(got[c]), want[c], math.Float32bits(want[c]))
			return false
		}
	}
	return true
}
