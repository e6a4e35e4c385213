package arco

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
)

// number are the numbers of scripts/golden/arco_*.py.
func number(i int) float64 { return float64((i*7919+104729)%2003)/2003 - 0.5 }

// torchExample is that script's head, with its inputs and the gradient of the loss in the scores.
func torchExample(t *testing.T) (e *Head, x, g [][]float32) {
	t.Helper()
	const h, k, n = 6, 3, 5
	e, err := NewHead(h, k, 1)
	if err != nil {
		t.Fatal(err)
	}
	fillHead(e)
	for r := range n {
		x, g = append(x, make([]float32, h)), append(g, make([]float32, k))
		for i := range h {
			x[r][i] = float32(4 * number(9*r+i))
		}
		for i := range k {
			g[r][i] = float32(number(31*r + i))
		}
	}
	return e, x, g
}

// fillHead gives a head the scripts' weights.
func fillHead(e *Head) {
	at := 0
	for l := range len(e.widths) - 1 {
		in, out := e.widths[l], e.widths[l+1]
		for i := range (in + 1) * out {
			e.Params[at+i] = float32(2 / math.Sqrt(float64(in)) * number(at+i))
		}
		at += (in + 1) * out
	}
}

// closeTo: float32 through sums of 512 terms, against float64.
func closeTo(t *testing.T, what string, got float32, want, size float64) {
	t.Helper()
	if !(math.Abs(float64(got)-want) <= 1e-5*size) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestHeadIsTorchs(t *testing.T) {
	var want struct {
		Scores, DX [][]float64
		Grad       map[string]float64
		Norm       float64 `json:"grad_norm"`
	}
	b, err := os.ReadFile("testdata/head.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	e, x, g := torchExample(t)
	scores, dx, grad, err := e.Backward(x, g)
	if err != nil {
		t.Fatal(err)
	}
	for r := range want.Scores {
		for i, w := range want.Scores[r] {
			closeTo(t, "score", scores[r][i], w, 1)
		}
		for i, w := range want.DX[r] {
			closeTo(t, "dx", dx[r][i], w, 1)
		}
	}
	norm := 0.0
	for _, v := range grad {
		norm += float64(v) * float64(v)
	}
	if math.Abs(math.Sqrt(norm)-want.Norm) > 1e-5*want.Norm || len(want.Grad) < 60 {
		t.Errorf("norm of the gradient is %v, want %v", math.Sqrt(norm), want.Norm)
	}
	for name, w := range want.Grad {
		i, err := strconv.Atoi(name)
		if err != nil {
			t.Fatal(err)
		}
		closeTo(t, "gradient "+name, grad[i], w, 1)
	}
}

// The gradients are the slopes of the loss: central differences along a few random-looking directions, in which float32's rounding is
// small against the change.
func TestHeadGradientByDifferences(t *testing.T) {
	e, x, g := torchExample(t)
	_, dx, grad, err := e.Backward(x, g)
	if err != nil {
		t.Fatal(err)
	}
	loss := func() float64 {
		scores, err := e.Scores(x)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for r := range scores {
			for i, s := range scores[r] {
				sum += float64(s) * float64(g[r][i])
			}
		}
		return sum
	}
	for trial := range 3 {
		along := func(i int) float64 { return number(i*13 + 5000*trial + 7) }
		const step = 2e-2
		slope := 0.0
		move := func(by float64) {
			for i := range e.Params {
				e.Params[i] += float32(by * along(i))
			}
			for r := range x {
				for i := range x[r] {
					x[r][i] += float32(by * along(100000+10*r+i))
				}
			}
		}
		for i, v := range grad {
			slope += float64(v) * along(i)
		}
		for r := range dx {
			for i, v := range dx[r] {
				slope += float64(v) * along(100000+10*r+i)
			}
		}
		move(step / 2)
		up := loss()
		move(-step)
		down := loss()
		move(step / 2)
		if got := (up - down) / step; math.Abs(got-slope) > 2e-2*math.Max(1, math.Abs(slope)) {
			t.Errorf("direction %d: the loss changes by %v, the gradient says %v", trial, got, slope)
		}
	}
}

// A row's scores do not depend on how many rows there are, and a run leaves what an earlier one returned as it was.
func TestHeadRowsStandAlone(t *testing.T) {
	e, x, g := torchExample(t)
	all, dx, _, err := e.Backward(x, g)
	if err != nil {
		t.Fatal(err)
	}
	kept := dx[0][0]
	for r := range x {
		one, err := e.Scores(x[r : r+1])
		if err != nil {
			t.Fatal(err)
		}
		for i := range one[0] {
			closeTo(t, "score of a row alone", one[0][i], float64(all[r][i]), 0.1)
		}
	}
	if _, err := e.Scores(x[:4]); err != nil || dx[0][0] != kept {
		t.Errorf("%v; dx was %v and is %v", err, kept, dx[0][0])
	}
	if _, err := e.Scores([][]float32{{1}}); err == nil {
		t.Error("a row of another width is no error")
	}
}
