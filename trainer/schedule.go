package trainer

import (
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/configs"
)

// NewSchedule returns the learning rate of optimiser step s = 0, 1, ... of a run of totalSteps, as transformers'
// schedules of that name have it (numerics: the first step of a warm-up has rate 0).
func NewSchedule(o configs.Optim, totalSteps int) (func(step int) float64, error) {
	if totalSteps < 1 {
		return nil, fmt.Errorf("a run of %d steps has no learning rate: set optim.max_steps, or give more data", totalSteps)
	}
	w := warmupSteps(o, totalSteps)
	decay, err := decayOf(o, w, totalSteps)
	if err != nil {
		return nil, err
	}
	return func(step int) float64 {
		if step < w {
			return o.LearningRate * rise(o.LRSchedulerKwargs, float64(step)/float64(w))
		}
		return o.LearningRate * decay(step)
	}, nil
}

// warmupSteps is the length of the warm-up: below 1, warmup_steps is a share of all steps, rounded up.
func warmupSteps(o configs.Optim, totalSteps int) int {
	switch {
	case o.LRSchedulerType == "constant":
		return 0
	case o.WarmupSteps < 1:
		return int(math.Ceil(o.WarmupSteps * float64(totalSteps)))
	}
	return int(o.WarmupSteps)
}

// rise is the factor of the warm-up at progress x in [0,1); only warmup_stable_decay has another form than linear.
func rise(k configs.LRSchedulerKwargs, x float64) float64 {
	switch or(k.WarmupType, "linear") {
	case "cosine":
		x = 0.5 * (1 - math.Cos(math.Pi*x))
	case "1-sqrt":
		x = 1 - math.Sqrt(1-x)
	}
	low := or(k.MinLRRatio, 0)
	return x*(1-low) + low
}

// decayOf is the factor of the learning rate at a step after the warm-up of w steps.
func decayOf(o configs.Optim, w, totalSteps int) (func(step int) float64, error) {
	k := o.LRSchedulerKwargs
	progress := func(step int) float64 { return float64(step-w) / float64(max(1, totalSteps-w)) }
	switch o.LRSchedulerType {
	case "constant", "constant_with_warmup":
		return func(int) float64 { return 1 }, nil
	case "linear":
		return func(step int) float64 { return max(0, float64(totalSteps-step)/float64(max(1, totalSteps-w))) }, nil
	case "cosine", "cosine_with_min_lr":
		low := or(k.MinLRRate, 0)
		if k.MinLR != nil {
			low = *k.MinLR / o.LearningRate
		}
		return func(step int) float64 { return max(0, cosine(or(k.NumCycles, 0.5), progress(step))*(1-low)+low) }, nil
	case "cosine_with_restarts":
		return func(step int) float64 {
			if x := progress(step); x < 1 {
				return max(0, 0.5*(1+math.Cos(math.Pi*math.Mod(or(k.NumCycles, 1)*x, 1))))
			}
			return 0
		}, nil
	case "polynomial":
		return func(step int) float64 {
			end := or(k.LREnd, 1e-7) / o.LearningRate
			if step > totalSteps {
				return end
			}
			return (1-end)*math.Pow(1-progress(step), or(k.Power, 1)) + end
		}, nil
	case "inverse_sqrt":
		scale := float64(or(k.Timescale, w))
		if scale == 0 {
			scale = 10000
		}
		return func(step int) float64 { return 1 / math.Sqrt((float64(step-w)+scale)/scale) }, nil
	case "warmup_stable_decay":
		return stableDecay(k, w, totalSteps)
	}
	return nil, fmt.Errorf("optim.lr_scheduler_type %q is not known: see the configuration reference for those that are", o.LRSchedulerType)
}

// stableDecay keeps the highest rate until the last num_decay_steps.
func stableDecay(k configs.LRSchedulerKwargs, w, totalSteps int) (func(step int) float64, error) {
	if k.NumDecaySteps == nil {
		return nil, fmt.Errorf("lr_scheduler_type warmup_stable_decay needs optim.lr_scheduler_kwargs.num_decay_steps: set it")
	}
	n, low := *k.NumDecaySteps, or(k.MinLRRatio, 0)
	begin := w + or(k.NumStableSteps, totalSteps-w-n)
	return func(step int) float64 {
		if step < begin {
			return 1
		}
		if step >= begin+n {
			return low
		}
		x := float64(step-begin) / float64(max(1, n))
		switch or(k.DecayType, "cosine") {
		case "linear":
			x = 1 - x
		case "cosine":
			x = cosine(or(k.NumCycles, 0.5), x)
		case "1-sqrt":
			x = 1 - math.Sqrt(x)
		}
		return max(0, x*(1-low)+low)
	}, nil
}

// cosine is a wave that begins at 1: 0.5 cycles end at 0.
func cosine(cycles, x float64) float64 { return 0.5 * (1 + math.Cos(math.Pi*cycles*2*x)) }

// or is *p, or def if p is nil.
func or[T any](p *T, def T) T {
	if p != nil {
		return *p
	}
	return def
}
