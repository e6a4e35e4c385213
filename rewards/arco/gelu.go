package arco

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// geluOp is x·Φ(x), with Φ the normal distribution (Hendrycks and Gimpel, arXiv:1606.08415; torch's GELU), elementwise on float32. With
// slope it is the derivative, Φ(x) + x·φ(x), which is not differentiated again.
type geluOp struct{ slope bool }

func gelu(x float64) float64 { return x * normal(x) }

func geluSlope(x float64) float64 {
	return normal(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

// normal is the distribution function of the normal distribution.
func normal(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

func (geluOp) Arity() int { return 1 }

func (geluOp) Type() hm.Type {
	a := hm.TypeVariable('a')
	return hm.NewFnType(a, a)
}

func (geluOp) InferShape(inputs ...gorgonia.DimSizer) (tensor.Shape, error) {
	return inputs[0].(tensor.Shape).Clone(), nil
}

func (op geluOp) Do(inputs ...gorgonia.Value) (gorgonia.Value, error) {
	if len(inputs) != 1 {
		return nil, fmt.Errorf("%s of %d values", op, len(inputs))
	}
	in, ok := inputs[0].Data().([]float32)
	if !ok {
		return nil, fmt.Errorf("%s of %T", op, inputs[0].Data())
	}
	f := gelu
	if op.slope {
		f = geluSlope
	}
	out := make([]float32, len(in))
	for i, x := range in {
		out[i] = float32(f(float64(x)))
	}
	return tensor.New(tensor.WithShape(inputs[0].Shape().Clone()...), tensor.WithBacking(out)), nil
}

func (geluOp) ReturnsPtr() bool     { return false }
func (geluOp) CallsExtern() bool    { return false }
func (geluOp) OverwritesInput() int { return -1 }

func (op geluOp) String() string {
	if op.slope {
		return "geluSlope"
	}
	return "gelu"
}

func (op geluOp) WriteHash(h hash.Hash) { fmt.Fprint(h, op.String()) }

func (op geluOp) Hashcode() uint32 {
	h := fnv.New32a()
	op.WriteHash(h)
	return h.Sum32()
}

func (op geluOp) DiffWRT(int) []bool { return []bool{!op.slope} }

// SymDiff implements gorgonia.SDOp.
func (geluOp) SymDiff(inputs gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	slope, err := gorgonia.ApplyOp(geluOp{slope: true}, inputs[0])
	if err != nil {
		return nil, err
	}
	n, err := gorgonia.HadamardProd(grad, slope)
	return gorgonia.Nodes{n}, err
}
