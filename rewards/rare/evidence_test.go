package rare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Figures by hand. Credits 1, 1/2, 0, 1/2: mean 1/2, standard deviation sqrt(1/8), mean absolute deviation 1/4, so that the
// separation is (1/4) / sqrt(1/8) = 1/sqrt(2). A group of equal credits has none, and one without completions does not count.
func TestFiguresByHand(t *testing.T) {
	for name, c := range map[string]struct {
		e                               evidence
		mean, spread, separation, share float64
		headroom, varies                bool
	}{
		"levels":     {evidence{{1, 0.5, 0, 0.5}}, 0.5, math.Sqrt(0.125), 1 / math.Sqrt2, 0.25, true, true},
		"one of two": {evidence{{1, 0}}, 0.5, 0.5, 1, 0.5, true, true},
		"full":       {evidence{{1, 1}, {1}}, 1, 0, 0, 1, false, false},
		"equal":      {evidence{{0.1, 0.1, 0.1}}, 0.1, 0, 0, 0, true, false},
		"two groups": {evidence{{1, 0}, {1, 1}}, 0.75, 0.25, 0.5, 0.75, true, true},
		"apart":      {evidence{{1, 1}, {0, 0}}, 0.5, 0, 0, 0.5, true, false}, // alike within each group: no signal
		"one empty":  {evidence{{1, 0}, {}}, 0.5, 0.5, 1, 0.5, true, true},
	} {
		for what, x := range map[string][2]float64{
			"mean": {c.e.mean(), c.mean}, "spread": {c.e.spread(), c.spread}, "separation": {c.e.separation(), c.separation},
			"full share": {c.e.fullShare(), c.share},
		} {
			if math.Abs(x[0]-x[1]) > 1e-15 {
				t.Errorf("%s: %s is %v, want %v", name, what, x[0], x[1])
			}
		}
		if c.e.headroom() != c.headroom || c.e.varies() != c.varies {
			t.Errorf("%s: headroom %v, varies %v", name, c.e.headroom(), c.e.varies())
		}
	}
}

// The order of completions must not decide between two candidates: sums in another order differ in the last bit.
func TestDeviationHasTheSameBitsInAnyOrder(t *testing.T) {
	x := []float64{0.1, 0.7, 1.0 / 3, 0.9, 0.2, 1, 0.6, 0.3}
	want := deviation(slices.Clone(x))
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		random.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
		if got := deviation(slices.Clone(x)); got != want {
			t.Fatalf("%v has the deviation %v, in another order %v", x, got, want)
		}
	}
}
