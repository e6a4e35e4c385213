package main

import (
	"math"
	"testing"
)

// Counted by hand for width 576, feed-forward width 1536, 9 and 3 heads of 64, vocabulary 49152: a layer has 3538944
// weights, its projections' inputs are 4992 and their outputs 5184 wide, without the last one 3456 and 4608.
func TestOperations(t *testing.T) {
	const (
		layer = 4*3538944*4 + 8*(8*4992+6*5184)*4
		again = 2*(3538944-576*1536)*4 + 2*8*(3456+4608)*4
		head  = 6 * 49152 * 576 * 1
		pair  = 2 * 576 * 10 // one product of attention over four tokens
	)
	for _, c := range []struct {
		layers, sequences int
		recompute         bool
		products, pairs   float64
	}{
		{1, 1, false, layer + head, 7 * pair},
		{1, 1, true, layer + head, 7 * pair}, // the last layer is not computed again
		{2, 1, true, 2*layer + head + again, 16 * pair},
		{2, 3, true, 3 * (2*layer + head + again), 48 * pair},
	} {
		p := point{"SmolLM2-135M", c.layers, c.sequences, 4, c.recompute, 1}
		if products, pairs := operations(p); products != c.products || pairs != c.pairs {
			t.Errorf("%+v: %.0f and %.0f operations, want %.0f and %.0f", p, products, pairs, c.products, c.pairs)
		}
	}
}

// The formulae of docs/performance.md are those of the plan, on sizes that it does not round.
func TestMemoryFormulae(t *testing.T) {
	for _, recompute := range []bool{true, false} {
		p := point{"SmolLM2-135M", 30, 1, 512, recompute, 1}
		c := p.config()
		n, l, d, f := p.tokens(), c.Layers, c.Width, c.Hidden
		a, o := (c.Heads+2*c.KVHeads)*c.HeadDim, c.Heads*c.HeadDim
		norms := (2*l + 1) * d
		want := 2*c.Size() + 2*norms + 16*lora.R*l*(4992+5184) + 8*p.scored()*d + 4*n*((l+9)*d+2*(a+o+3*f)+c.Heads)
		if !recompute {
			want += 4 * n * (l - 1) * (a + o + 2*f + d + c.Heads)
		}
		got, err := predict(p)
		if err != nil {
			t.Fatal(err)
		}
		if got.Device != int64(want) {
			t.Errorf("recompute %v: the plan has %d bytes, docs/performance.md %d", recompute, got.Device, want)
		}
	}
}

// Both rates are found again; points that are alike get one.
func TestFit(t *testing.T) {
	at := func(products, attention, seconds float64, threads int) *result {
		return &result{Point: point{Threads: threads}, Measured: figures{Seconds: []float64{seconds}}, Predicted: cost{Products: products, Attention: attention}}
	}
	for _, c := range []struct {
		points []*result
		want   rates
	}{
		{[]*result{at(40, 20, 20, 1), at(80, 10, 12.5, 2), at(4, 0, 1, 1)}, rates{4, 2}},
		{[]*result{at(40, 20, 10, 1)}, rates{6, 6}},
	} {
		if got := fit(c.points); math.Abs(got.Products-c.want.Products) > 1e-9 || math.Abs(got.Attention-c.want.Attention) > 1e-9 {
			t.Errorf("rates %v, want %v", got, c.want)
		}
	}
}
