package policy

import (
	"cmp"
	"slices"
)

// Change is a change to a run's options that may save memory.
type Change int

const (
	Recompute Change = iota // drop KeepAll: compute a layer's activations again in the backward pass
	HalfPass                // half as many tokens in a training pass
	HalfBatch               // half as many samples at a time in generation
	HalfRank                // an adapter of half the rank
	BFloat16                // weights of 16 bits
	Int8                    // weights of 8.5 bits
	Int4                    // weights of 5 bits
)

// Saving is how many bytes a Change saves.
type Saving struct {
	Change Change
	Bytes  int64
}

// Savings are the changes that make a run smaller, each alone and with a cache of the least size, the one that saves most
// first.
func Savings(c Config, o PlanOptions) ([]Saving, error) {
	o.Memory = 1
	now, err := MemoryPlan(c, o)
	if err != nil {
		return nil, err
	}
	var list []Saving
	for change := Recompute; change <= Int4; change++ {
		changed, possible := o.with(change)
		if !possible {
			continue
		}
		p, err := MemoryPlan(c, changed)
		if err != nil {
			return nil, err
		}
		if saved := now.Total() - p.Total(); saved > 0 {
			list = append(list, Saving{change, saved})
		}
	}
	slices.SortStableFunc(list, func(a, b Saving) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list, nil
}

// with is o with a change, and whether o allows it.
func (o PlanOptions) with(change Change) (changed PlanOptions, possible bool) {
	switch change {
	case Recompute:
		possible, o.KeepAll = o.KeepAll, false
	case HalfPass:
		possible = o.Tokens > 1
		o.Tokens, o.Scored = o.Tokens/2, o.Scored/2
	case HalfBatch:
		o.Generate = o.Generate.withDefaults()
		possible = o.Generate.MaxNewTokens > 0 && o.Generate.MaxBatch > 1
		o.Generate.MaxBatch /= 2
	case HalfRank:
		if possible = o.LoRA != nil && o.LoRA.R > 1; possible {
			lora := *o.LoRA
			lora.R /= 2
			o.LoRA = &lora
		}
	case BFloat16:
		possible, o.DType = true, "bfloat16"
	case Int8:
		possible, o.DType = o.Train != "full", "int8"
	case Int4:
		possible, o.DType = o.Train != "full", "int4"
	}
	return o, possible
}
