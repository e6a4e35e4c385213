package devicetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

// awkward are the shapes of elementwise operations.
var awkward = [...][2]int{{1, 1}, {1, 31}, {31, 32}, {33, 33}, {3, 1025}, {2, 4864}, {0, 5}}

func testElementwise(s *suite) {
	for _, shape := range awkward {
		rows, cols := shape[0], shape[1]
		for _, strided := range []bool{false, true} {
			for _, k := range []device.Kind{device.F32, device.Act} {
				s.compare(fmt.Sprintf("%dx%d-kind%d-strided=%v", rows, cols, k, strided), strided, func(sc *scene) {
					x := sc.mat("x", k, input, rows, cols, normal(1))
					sc.Add(sc.mat("y+x", k, output, rows, cols, normal(1)), x, 1)
					sc.Add(sc.mat("y+ax", k, output, rows, cols, normal(1)), x, -0.375)
					sc.Scale(sc.mat("ax", k, output, rows, cols, normal(1)), 0.625)
					sc.Copy(sc.mat("copy", k, output, rows, cols, nan), x)
					sc.Zero(sc.mat("zero", k, output, rows, cols, nan))
				})
			}
			s.Run(fmt.Sprintf("squares-%dx%d-strided=%v", rows, cols, strided), func(t *testing.T) { testSumSquares(t, s, rows, cols, strided) })
		}
	}
	s.Run("squares-not-finite", func(t *testing.T) {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			sc := newScene(t, s.dev)
			x := sc.param("x", 3, 500, 1)
			sc.Upload(x.Mem, 777, []float32{bad})
			if sum := sc.SumSquares(x); !math.IsNaN(sum) && !math.IsInf(sum, 0) {
				t.Errorf("the sum of squares with a %g is %g", bad, sum)
			}
			sc.free()
		}
	})
}

func testSumSquares(t *testing.T, s *suite, rows, cols int, strided bool) {
	dev, ref := newScene(t, s.dev), newScene(t, reference.New())
	dev.strided, ref.strided = strided, strided
	defer dev.free()
	x := dev.param("x", rows, cols, 1e3)
	ref.tape, ref.replay = dev.tape, true
	got, want := dev.SumSquares(x), ref.SumSquares(ref.param("x", rows, cols, 1e3))
	if !(math.Abs(got-want) <= s.tol.State*want) {
		t.Errorf("sum of squares is %.17g, want %.17g", got, want)
	}
	if again := dev.SumSquares(x); again != got {
		t.Errorf("the same sum of squares is %.17g and then %.17g", got, again)
	}
}
