package arco

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	// Gorgonia refuses to start on a Go release that is newer than this module's version. The import keeps the
	// version that asks the running release instead of a list.
	_ "go4.org/unsafe/assume-no-moving-gc"
)

// hidden are the widths of the score head's inner layers (public code).
var hidden = [...]int{512, 128}

// Head is the rubric model's score head: from a step's mean last hidden state [H] to a score in [-1,1] of each of K criteria, by three linear
// layers H -> 512 -> 128 -> K with GELU (exact) between them and tanh behind, in float32. It is a Gorgonia graph for each number of
// rows up to the next power of two.
type Head struct {
	// Params are weights and biases, layer by layer; a weight is [in, out], row-major.
	Params []float32

	widths []int
	graphs map[int]*headGraph
}

// headGraph is the compiled graph for so many rows.
type headGraph struct {
	x, g   []float32 // [N,H] inputs; [N,K] gradient of the loss in the scores
	vm     gorgonia.VM
	scores gorgonia.Value
	dx     gorgonia.Value
	grads  []gorgonia.Value // of Params, in their order
}

// NewHead makes a head for hidden states of width h and k criteria, with random weights as torch's Linear begins with: uniform within
// 1/sqrt(inputs).
func NewHead(h, k int, seed uint64) (*Head, error) {
	if h < 1 || k < 1 {
		return nil, fmt.Errorf("arco: a score head from %d to %d numbers", h, k)
	}
	e := &Head{widths: []int{h, hidden[0], hidden[1], k}, graphs: map[int]*headGraph{}}
	random := rand.New(rand.NewPCG(seed, 0))
	for l := range len(e.widths) - 1 {
		in, out := e.widths[l], e.widths[l+1]
		bound := 1 / math.Sqrt(float64(in))
		for range (in + 1) * out {
			e.Params = append(e.Params, float32(bound*(2*random.Float64()-1)))
		}
	}
	return e, nil
}

// Scores are [N,K] of hidden states [N,H].
func (e *Head) Scores(x [][]float32) ([][]float32, error) {
	scores, _, _, err := e.run(x, nil)
	return scores, err
}

// Backward returns the scores of hidden states x, and the gradients of a loss whose gradient in the scores is g: in x, and in Params.
func (e *Head) Backward(x, g [][]float32) (scores, dx [][]float32, grad []float32, err error) {
	if len(g) != len(x) {
		return nil, nil, nil, fmt.Errorf("arco: gradients of %d rows of scores for %d hidden states", len(g), len(x))
	}
	return e.run(x, g)
}

func (e *Head) run(x, g [][]float32) (scores, dx [][]float32, grad []float32, err error) {
	if len(x) == 0 {
		return nil, nil, make([]float32, len(e.Params)), nil
	}
	graph, err := e.graph(1 << bits.Len(uint(len(x)-1)))
	if err != nil {
		return nil, nil, nil, err
	}
	h, k := e.widths[0], e.widths[len(e.widths)-1]
	if err := fill(graph.x, x, h); err != nil {
		return nil, nil, nil, err
	}
	if err := fill(graph.g, g, k); err != nil {
		return nil, nil, nil, err
	}
	err = graph.vm.RunAll()
	graph.vm.Reset() // without it the next RunAll would do nothing
	if err != nil {
		return nil, nil, nil, fmt.Errorf("arco: score head: %w", err)
	}
	for _, v := range graph.grads {
		grad = append(grad, v.Data().([]float32)...)
	}
	return rows(graph.scores, len(x), k), rows(graph.dx, len(x), h), grad, nil
}

// fill writes rows of a width to the front of dst, and zeros behind.
func fill(dst []float32, list [][]float32, width int) error {
	for i, row := range list {
		if len(row) != width {
			return fmt.Errorf("arco: score head: a row has %d numbers, want %d", len(row), width)
		}
		copy(dst[i*width:], row)
	}
	clear(dst[len(list)*width:])
	return nil
}

// rows copies the first n rows out of a value, which the next run overwrites.
func rows(v gorgonia.Value, n, width int) [][]float32 {
	flat := append([]float32(nil), v.Data().([]float32)[:n*width]...)
	out := make([][]float32, n)
	for i := range out {
		out[i] = flat[i*width : (i+1)*width : (i+1)*width]
	}
	return out
}

func (e *Head) graph(n int) (*headGraph, error) {
	if e.graphs[n] == nil {
		g, err := e.compile(n)
		if err != nil {
			return nil, fmt.Errorf("arco: compiling the score head for %d rows: %w", n, err)
		}
		e.graphs[n] = g
	}
	return e.graphs[n], nil
}

// matrix is an input whose storage is values: what stands in them when the graph runs is its value. Gorgonia takes inputs of one name
// and shape for one, so names differ.
func matrix(g *gorgonia.ExprGraph, name string, rows, cols int, values []float32) *gorgonia.Node {
	t := tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(values))
	return gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(rows, cols), gorgonia.WithName(name), gorgonia.WithValue(t))
}

// compile builds and differentiates the graph for n rows. The loss is the sum of scores times their given gradients, so that its
// gradients are those that are wanted.
func (e *Head) compile(n int) (out *headGraph, err error) {
	defer func() { // the compiler panics on graphs that it cannot handle
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("%v", r)
		}
	}()
	h, k := e.widths[0], e.widths[len(e.widths)-1]
	out = &headGraph{x: make([]float32, n*h), g: make([]float32, n*k), grads: make([]gorgonia.Value, 2*(len(e.widths)-1))}
	graph := gorgonia.NewGraph()
	x := matrix(graph, "x", n, h, out.x)
	a, wrt := x, gorgonia.Nodes{x}
	at := 0
	for l := range len(e.widths) - 1 {
		in, width := e.widths[l], e.widths[l+1]
		w := matrix(graph, fmt.Sprint("w", l), in, width, e.Params[at:at+in*width])
		b := matrix(graph, fmt.Sprint("b", l), 1, width, e.Params[at+in*width:at+(in+1)*width])
		at += (in + 1) * width
		wrt = append(wrt, w, b)
		if a, err = linear(a, w, b); err != nil {
			return nil, err
		}
		if l < len(e.widths)-2 {
			a, err = gorgonia.ApplyOp(geluOp{}, a)
		} else {
			a, err = gorgonia.Tanh(a)
		}
		if err != nil {
			return nil, err
		}
	}
	gorgonia.Read(a, &out.scores)
	weighted, err := gorgonia.HadamardProd(a, matrix(graph, "g", n, k, out.g))
	if err != nil {
		return nil, err
	}
	loss, err := gorgonia.Sum(weighted)
	if err != nil {
		return nil, err
	}
	grads, err := gorgonia.Grad(loss, wrt...)
	if err != nil {
		return nil, err
	}
	if len(grads) != len(wrt) {
		return nil, errors.New("gradients are missing")
	}
	gorgonia.Read(grads[0], &out.dx)
	for i := range out.grads {
		gorgonia.Read(grads[i+1], &out.grads[i])
	}
	out.vm = gorgonia.NewTapeMachine(graph)
	return out, nil
}

// linear is a·w + b.                                                     a [N,in], w [in,out], b [1,out] -> [N,out]
func linear(a, w, b *gorgonia.Node) (*gorgonia.Node, error) {
	y, err := gorgonia.Mul(a, w)
	if err != nil {
		return nil, err
	}
	return gorgonia.BroadcastAdd(y, b, nil, []byte{0})
}
