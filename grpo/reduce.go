package grpo

import (
	"fmt"
	"math"
)

// reduction is how token losses become one number. Each divides by the accumulated micro-steps, so that the sum over an
// optimiser step is the loss.
type reduction int

const (
	perSequence reduction = iota // mean over rows of the mean over tokens
	perToken                     // mean over the trained tokens of the micro-batch
	perLength                    // sum over rows*max_completion_length
	perBatch                     // sum over the trained tokens of the generation batch's share of this optimiser step
	perRow                       // mean over rows of the sum over tokens
)

// reduceWeights sets the weight of each trained token's loss; others have weight 0.
func (o *Objective) reduceWeights(b *batch) error {
	rows, tokens := b.size()
	accumulation := b.accumulation()
	scale := 1 / accumulation
	switch o.family.reduce {
	case perSequence, perRow:
		scale /= rows
	case perToken:
		scale /= math.Max(tokens, 1)
	case perLength:
		scale /= rows * float64(o.cfg.MaxCompletionLength)
	case perBatch:
		if b.own > 0 && !(b.in.NumItems >= 1) {
			return fmt.Errorf("NumItems is %v with %v trained tokens in the micro-batch: pass the number of trained tokens of the "+
				"whole generation batch", b.in.NumItems, b.own)
		}
		scale = 1 / math.Max(b.in.NumItems, 1)
		if !b.in.Eval {
			scale *= float64(b.in.StepsPerGen) / accumulation
		}
	}
	b.weight = make([]float64, b.tokens)
	for i, start := range b.starts {
		w := scale
		if o.family.reduce == perSequence {
			w *= b.inverse[i]
		}
		for t := start; t < start+b.rows[i]; t++ {
			b.weight[t] = w * b.lane[laneOwn][t]
		}
	}
	return nil
}

// size is the number of rows and of trained tokens of the micro-batch, over all processes that share it.
func (b *batch) size() (rows, tokens float64) {
	if w := b.in.Whole; w != nil {
		return float64(w.Rows), w.Tokens
	}
	return float64(len(b.rows)), b.own
}
