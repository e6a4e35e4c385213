package grpo

import (
	"fmt"
	"strings"
)

// Sizes are the settings outside of section `grpo` that batch arithmetic needs. Zero means unset.
type Sizes struct {
	PerDeviceTrainBatchSize   int // completions per process in one micro-step; unset: 8
	GradientAccumulationSteps int // micro-steps per optimiser step; unset: 1, or one optimiser step per generation with TrainBatchSize
	TrainBatchSize            int // prompts per generation over all processes (verl's data.train_batch_size)
	World                     int // processes; unset: 1
}

// Batching is the resolved arithmetic of TRL's GRPOTrainer. A generation batch is sampled and scored at once, shuffled,
// cut into StepsPerGeneration micro-batches of PerDevice rows per process, and gone through Iterations times.
type Batching struct {
	PerDevice          int // rows per process in one micro-step
	World              int
	GradAccum          int // micro-steps per optimiser step
	StepsPerGeneration int // micro-batches in a generation batch
	Iterations         int // passes over a generation batch
	Generations        int // completions per prompt
	GenerationBatch    int // completions per generation, all processes
	Prompts            int // prompts per generation, all processes
}

const defaultPerDevice = 8

// Batching resolves c and s. An error says which setting to change.
func (c Config) Batching(s Sizes) (Batching, error) {
	var f faults
	c.checkBatching(&f)
	if len(f) > 0 {
		return Batching{}, f[0]
	}
	if err := c.checkSizes(s); err != nil {
		return Batching{}, err
	}
	b := Batching{
		PerDevice:   s.PerDeviceTrainBatchSize,
		World:       max(s.World, 1),
		GradAccum:   s.GradientAccumulationSteps,
		Iterations:  c.NumIterations,
		Generations: c.NumGenerations,
	}
	resolve := b.fromCompletions
	if s.TrainBatchSize > 0 {
		resolve = b.fromPrompts
	}
	b, err := resolve(c, s)
	if err != nil {
		return Batching{}, err
	}
	b.GenerationBatch = b.PerDevice * b.World * b.StepsPerGeneration
	if b.GenerationBatch%b.Generations != 0 {
		return Batching{}, fmt.Errorf("a generation batch of %d completions (per_device_train_batch_size %d x %d processes x "+
			"steps_per_generation %d) does not hold whole groups of num_generations %d: set grpo.num_generations to one of %s, "+
			"or make the batch a multiple of %d", b.GenerationBatch, b.PerDevice, b.World, b.StepsPerGeneration,
			b.Generations, divisors(b.GenerationBatch), b.Generations)
	}
	b.Prompts = b.GenerationBatch / b.Generations
	return b, nil
}

// checkSizes bounds what is multiplied, so that no product overflows.
func (c Config) checkSizes(s Sizes) error {
	const most = 1 << 20
	orZero := func(p *int) int {
		if p == nil {
			return 0
		}
		return *p
	}
	for _, x := range []struct {
		name string
		n    int
	}{
		{"per_device_train_batch_size", s.PerDeviceTrainBatchSize}, {"gradient_accumulation_steps", s.GradientAccumulationSteps},
		{"data.train_batch_size", s.TrainBatchSize}, {"the number of processes", s.World},
		{"grpo.num_generations", c.NumGenerations}, {"grpo.num_iterations", c.NumIterations},
		{"grpo.steps_per_generation", orZero(c.StepsPerGeneration)}, {"grpo.generation_batch_size", orZero(c.GenerationBatchSize)},
	} {
		if x.n < 0 || x.n > most {
			return fmt.Errorf("%s is %d: it must not be negative, nor above %d", x.name, x.n, most)
		}
	}
	return nil
}

// fromCompletions is TRL's rule: everything counts completions.
func (b Batching) fromCompletions(c Config, s Sizes) (Batching, error) {
	if b.PerDevice == 0 {
		b.PerDevice = defaultPerDevice
	}
	b.GradAccum = max(b.GradAccum, 1)
	micro := b.PerDevice * b.World
	switch {
	case c.GenerationBatchSize != nil:
		if *c.GenerationBatchSize%micro != 0 {
			return b, fmt.Errorf("grpo.generation_batch_size %d is not a multiple of one micro-step, per_device_train_batch_size "+
				"%d x %d processes = %d: set it to a multiple of %d", *c.GenerationBatchSize, b.PerDevice, b.World, micro, micro)
		}
		b.StepsPerGeneration = *c.GenerationBatchSize / micro
	case c.StepsPerGeneration != nil:
		b.StepsPerGeneration = *c.StepsPerGeneration
	default:
		b.StepsPerGeneration = b.GradAccum
	}
	return b, nil
}

// fromPrompts is verl's rule: data.train_batch_size prompts are sampled at once; what is left open follows from it.
func (b Batching) fromPrompts(c Config, s Sizes) (Batching, error) {
	if c.GenerationBatchSize != nil {
		return b, fmt.Errorf("data.train_batch_size (%d prompts) and grpo.generation_batch_size (%d completions) both say how much "+
			"is sampled at once: set only one of them", s.TrainBatchSize, *c.GenerationBatchSize)
	}
	total := s.TrainBatchSize * b.Generations
	if total%b.World != 0 {
		return b, fmt.Errorf("data.train_batch_size %d x num_generations %d = %d completions cannot be shared equally by %d "+
			"processes: make the product a multiple of %d", s.TrainBatchSize, b.Generations, total, b.World, b.World)
	}
	local := total / b.World
	switch {
	case c.StepsPerGeneration != nil:
		b.StepsPerGeneration = *c.StepsPerGeneration
	case b.PerDevice == 0:
		b.PerDevice = largestDivisor(local, defaultPerDevice)
		b.StepsPerGeneration = local / b.PerDevice
	default:
		b.StepsPerGeneration = max(local/b.PerDevice, 1)
	}
	if b.PerDevice == 0 {
		b.PerDevice = max(local/b.StepsPerGeneration, 1)
	}
	if b.PerDevice*b.StepsPerGeneration != local {
		return b, fmt.Errorf("data.train_batch_size %d x num_generations %d = %d completions per process are not "+
			"per_device_train_batch_size %d x steps_per_generation %d: set per_device_train_batch_size to one of %s and leave "+
			"grpo.steps_per_generation out", s.TrainBatchSize, b.Generations, local, b.PerDevice, b.StepsPerGeneration, divisors(local))
	}
	if b.GradAccum == 0 {
		b.GradAccum = b.StepsPerGeneration
	}
	return b, nil
}

// MicroSteps is the number of micro-steps that one generation batch serves.
func (b Batching) MicroSteps() int { return b.StepsPerGeneration * b.Iterations }

// NeedsOld reports whether log-probabilities at the start of the update are needed: the policy moves while a generation
// batch is in use. Otherwise the ratio is 1 by definition and Inputs.Old stays nil.
func (b Batching) NeedsOld() bool { return b.GradAccum%b.MicroSteps() != 0 }

// Epoch returns the micro-steps and optimiser steps of one pass over a data set; prompts that do not fill a generation
// batch are left out, as in TRL.
func (b Batching) Epoch(prompts int) (microSteps, optimSteps int) {
	microSteps = prompts / b.Prompts * b.MicroSteps()
	return microSteps, (microSteps + b.GradAccum - 1) / b.GradAccum
}

// Accumulation is the number of micro-steps in the optimiser step to which micro-step k of an epoch with microSteps
// belongs: GradAccum, or fewer in the last one.
func (b Batching) Accumulation(k, microSteps int) int {
	first := k / b.GradAccum * b.GradAccum
	return min(b.GradAccum, microSteps-first)
}

// String is the arithmetic in one line.
func (b Batching) String() string {
	s := fmt.Sprintf("%d prompts x %d completions = %d per generation = %d rows x %d processes x %d micro-batches",
		b.Prompts, b.Generations, b.GenerationBatch, b.PerDevice, b.World, b.StepsPerGeneration)
	if b.Iterations > 1 {
		s += fmt.Sprintf(", gone through %d times", b.Iterations)
	}
	return s + fmt.Sprintf("; an optimiser step every %d micro-steps", b.GradAccum)
}

// divisors lists the divisors of n from 2 up to a size that a group may well have.
func divisors(n int) string {
	const most = 1024
	var out []string
	for d := 2; d <= min(n, most); d++ {
		if n%d == 0 {
			out = append(out, fmt.Sprint(d))
		}
	}
	if n == 1 {
		return "nothing (the batch is a single completion)"
	}
	if out == nil {
		return fmt.Sprintf("nothing up to %d", most)
	}
	return strings.Join(out, ", ")
}

// largestDivisor is the largest divisor of n up to limit.
func largestDivisor(n, limit int) int {
	for d := min(n, limit); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}
