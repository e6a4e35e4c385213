package main

import "testing"

// Counted by hand for width 576, feed-forward width 1536, 9 and 3 heads of 64, vocabulary 49152: a layer has 3538944
// weights, its projections' inputs are 4992 and their outputs 5184 wide, without the last one 3456 and 4608.
func TestOperations(t *testing.T) {
	const (
		layer = 4*3538944*4 + 8*(8*4992+6*5184)*4 + 14*576*10
		head  = 6 * 49152 * 576 * 1
		again = 2*(3538944-576*1536)*4 + 2*8*(3456+4608)*4 + 4*576*10
	)
	for _, c := range []struct {
		layers, sequences int
		recompute         bool
		want              float64
	}{
		{1, 1, false, layer + head},
		{1, 1, true, layer + head}, // the last layer is not computed again
		{2, 1, true, 2*layer + head + again},
		{2, 3, true, 3 * (2*layer + head + again)},
	} {
		p := point{"SmolLM2-135M", c.layers, c.sequences, 4, c.recompute, 1}
		if got := operations(p); got != c.want {
			t.Errorf("%+v: %.0f operations, want %.0f", p, got, c.want)
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

func TestRate(t *testing.T) {
	at := func(operations, seconds float64, threads int) *result {
		return &result{point{Threads: threads}, figures{Seconds: []float64{seconds}}, cost{Operations: operations}, "", ""}
	}
	if got := rate([]*result{at(8, 1, 1), at(8, 2, 2)}); got < 3.99 || got > 4.01 { // of 8 and 2
		t.Errorf("rate %v, want 4", got)
	}
}
