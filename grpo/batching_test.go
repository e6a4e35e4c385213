package grpo

import (
	"strings"
	"testing"
)

// Sizes as TRL's GRPOConfig resolves them; run/* are the settings of recorded runs.
func TestBatching(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   func(*Config)
		sizes Sizes
		want  Batching
		old   bool
	}{
		"defaults": {func(*Config) {}, Sizes{}, Batching{8, 1, 1, 1, 1, 8, 8, 1}, false},
		"accumulation": {func(c *Config) { c.NumGenerations = 4 }, Sizes{PerDeviceTrainBatchSize: 2, GradientAccumulationSteps: 4, World: 2},
			Batching{2, 2, 4, 4, 1, 4, 16, 4}, false},
		"run/lora_linear_dapo": {func(c *Config) { c.NumGenerations, c.NumIterations = 4, 2 }, Sizes{PerDeviceTrainBatchSize: 4, GradientAccumulationSteps: 2},
			Batching{4, 1, 2, 2, 2, 4, 8, 2}, true},
		"generation batch": {func(c *Config) { c.GenerationBatchSize = ptr(64) }, Sizes{GradientAccumulationSteps: 4},
			Batching{8, 1, 4, 8, 1, 8, 64, 8}, true},
		"short generations": {func(c *Config) { c.StepsPerGeneration = ptr(1) }, Sizes{GradientAccumulationSteps: 4},
			Batching{8, 1, 4, 1, 1, 8, 8, 1}, false},
		"prompts": {func(c *Config) { c.NumGenerations = 6 }, Sizes{TrainBatchSize: 10}, Batching{6, 1, 10, 10, 1, 6, 60, 10}, false},
		"prompts and rows": {func(*Config) {}, Sizes{TrainBatchSize: 16, PerDeviceTrainBatchSize: 4, GradientAccumulationSteps: 8, World: 2},
			Batching{4, 2, 8, 16, 1, 8, 128, 16}, true},
		"prompts and steps": {func(c *Config) { c.StepsPerGeneration = ptr(4) }, Sizes{TrainBatchSize: 8},
			Batching{16, 1, 4, 4, 1, 8, 64, 8}, false},
	} {
		cfg := with(c.cfg)
		got, err := cfg.Batching(c.sizes)
		if err != nil || got != c.want || got.NeedsOld() != c.old {
			t.Errorf("%s: %+v, old %v, %v, want %+v", name, got, got.NeedsOld(), err, c.want)
		}
	}
}

func TestBatchingRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		cfg   func(*Config)
		sizes Sizes
	}{
		"set grpo.num_generations to one of 2, 4, 8":                {func(c *Config) { c.NumGenerations = 3 }, Sizes{}},
		"set it to a multiple of 16":                                {func(c *Config) { c.GenerationBatchSize = ptr(24) }, Sizes{World: 2}},
		"set only one of them":                                      {func(c *Config) { c.GenerationBatchSize, c.StepsPerGeneration = ptr(8), ptr(1) }, Sizes{}},
		"both say how much":                                         {func(c *Config) { c.GenerationBatchSize = ptr(8) }, Sizes{TrainBatchSize: 4}},
		"make the product a multiple of 3":                          {func(*Config) {}, Sizes{TrainBatchSize: 4, World: 3}},
		"set per_device_train_batch_size to one of 2, 4, 8, 16, 32": {func(*Config) {}, Sizes{TrainBatchSize: 4, PerDeviceTrainBatchSize: 5}},
		"per_device_train_batch_size 4 x steps_per_generation 2":    {func(c *Config) { c.StepsPerGeneration = ptr(2) }, Sizes{TrainBatchSize: 4, PerDeviceTrainBatchSize: 4}},
		"must not be negative":                                      {func(*Config) {}, Sizes{World: -1}},
		"gradient_accumulation_steps is 4611686018427387904":        {func(*Config) {}, Sizes{GradientAccumulationSteps: 1 << 62}},
		"grpo.num_iterations is 1048577":                            {func(c *Config) { c.NumIterations = 1<<20 + 1 }, Sizes{}},
		"to one of nothing up to 1024":                              {func(*Config) {}, Sizes{PerDeviceTrainBatchSize: 1000003}},
		"num_generations: 1":                                        {func(c *Config) { c.NumGenerations = 1 }, Sizes{}},
	} {
		if _, err := with(c.cfg).Batching(c.sizes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// An epoch of the recorded run: 8 prompts, 2 per generation of 4 micro-steps, 2 micro-steps per optimiser step.
func TestEpoch(t *testing.T) {
	b, err := with(func(c *Config) { c.NumGenerations, c.NumIterations = 4, 2 }).Batching(Sizes{PerDeviceTrainBatchSize: 4, GradientAccumulationSteps: 2})
	if err != nil {
		t.Fatal(err)
	}
	if micro, optim := b.Epoch(9); micro != 16 || optim != 8 {
		t.Errorf("9 prompts give %d micro-steps and %d optimiser steps", micro, optim)
	}
	b.GradAccum = 3
	micro, optim := b.Epoch(8)
	if optim != 6 {
		t.Errorf("%d optimiser steps of 16/3", optim)
	}
	for k, want := range map[int]int{0: 3, 2: 3, 14: 3, 15: 1} {
		if got := b.Accumulation(k, micro); got != want {
			t.Errorf("micro-step %d is one of %d, want %d", k, got, want)
		}
	}
	if s := b.String(); s != "2 prompts x 4 completions = 8 per generation = 4 rows x 1 processes x 2 micro-batches, gone through 2 times; an optimiser step every 3 micro-steps" {
		t.Error(s)
	}
}
