package grpo

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ratio is the importance ratio of each token: exp(logp - old), or for importance_sampling_level sequence the geometric
// mean of these over the trained tokens of the row (GSPO, arXiv:2507.18071, eq. 7).
func (x *expr) ratio() *node {
	if x.shared == nil {
		x.shared = x.ratioOf(laneLogP)
	}
	return x.shared
}

// ratioOf is ratio with another lane for logp.
func (x *expr) ratioOf(logp lane) *node {
	shift := x.sub(x.lane(logp), x.lane(laneOld))
	if x.o.cfg.sequenceLevel() {
		masked := x.mul(shift, x.lane(laneOwn))
		shift = x.apply(func(n *node) (*node, error) { return gorgonia.ApplyOp(segmentMean{x.segments}, n) }, masked)
	}
	return x.exp(shift)
}

// logRatio is the logarithm of the ratio: per token, or per row at sequence level.
func (b *batch) logRatio() []float64 {
	logp, old := b.lane[laneLogP], b.lane[laneOld]
	if !b.sequence {
		out := make([]float64, b.tokens)
		for t := range out {
			out[t] = logp[t] - old[t]
		}
		return out
	}
	out := make([]float64, len(b.rows))
	for i, start := range b.starts {
		for t := start; t < start+b.rows[i]; t++ {
			out[i] += logp[t] - old[t]
		}
		out[i] *= b.inverse[i]
	}
	return out
}

// shiftAt is the log ratio that applies to token t of a row.
func (b *batch) shiftAt(row, t int) float64 {
	if b.sequence {
		return b.shift[row]
	}
	return b.shift[t]
}

// segments are the rows of the chunk that a graph runs on.
type segments struct {
	ends    []int
	inverse []float64 // 1/max(1, trained tokens) of each
}

func (s *segments) set(b *batch, row, end int) {
	s.ends, s.inverse = s.ends[:0], s.inverse[:0]
	for i := row; i < end; i++ {
		s.ends = append(s.ends, b.starts[i]+b.rows[i]-b.starts[row])
		s.inverse = append(s.inverse, b.inverse[i])
	}
}

// segmentMean replaces every token's value by the sum over its segment times the segment's inverse; tokens beyond the
// last segment become 0. As a matrix it is symmetric, so it is its own derivative.
type segmentMean struct{ segments *segments }

func (segmentMean) Arity() int { return 1 }

func (segmentMean) Type() hm.Type {
	a := hm.TypeVariable('a')
	return hm.NewFnType(a, a)
}

func (segmentMean) InferShape(inputs ...gorgonia.DimSizer) (tensor.Shape, error) {
	return inputs[0].(tensor.Shape).Clone(), nil
}

func (op segmentMean) Do(inputs ...gorgonia.Value) (gorgonia.Value, error) {
	if len(inputs) != 1 {
		return nil, fmt.Errorf("segment mean of %d values", len(inputs))
	}
	in, ok := inputs[0].Data().([]float64)
	if !ok {
		return nil, fmt.Errorf("segment mean of %T", inputs[0].Data())
	}
	out := make([]float64, len(in))
	start := 0
	for i, end := range op.segments.ends {
		sum := 0.0
		for _, v := range in[start:end] {
			sum += v
		}
		sum *= op.segments.inverse[i]
		for t := start; t < end; t++ {
			out[t] = sum
		}
		start = end
	}
	return tensor.New(tensor.WithShape(len(in)), tensor.WithBacking(out)), nil
}

func (segmentMean) ReturnsPtr() bool         { return false }
func (segmentMean) CallsExtern() bool        { return false }
func (segmentMean) OverwritesInput() int     { return -1 }
func (op segmentMean) String() string        { return "segmentMean" }
func (op segmentMean) WriteHash(h hash.Hash) { fmt.Fprint(h, op.String()) }

func (op segmentMean) Hashcode() uint32 {
	h := fnv.New32a()
	op.WriteHash(h)
	return h.Sum32()
}

func (segmentMean) DiffWRT(inputs int) []bool { return []bool{true} }

func (op segmentMean) SymDiff(_ gorgonia.Nodes, _, grad *node) (gorgonia.Nodes, error) {
	n, err := gorgonia.ApplyOp(op, grad)
	return gorgonia.Nodes{n}, err
}
