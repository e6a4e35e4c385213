package configs

import (
	"fmt"
	"math"
)

// StageAt is the first step of the stage to which a step belongs; 0: what the sections say.
func (c *Config) StageAt(step int) int {
	from := 0
	for _, s := range c.Optim.Stages {
		if s.FromStep <= step {
			from = s.FromStep
		}
	}
	return from
}

// At is the configuration that is in force at a step; c itself before the first stage.
func (c *Config) At(step int) *Config {
	from, out := c.StageAt(step), *c
	for _, s := range c.Optim.Stages {
		if s.FromStep == from {
			put(&out.Optim.LearningRate, s.LearningRate)
			put(&out.GRPO.NumGenerations, s.NumGenerations)
			put(&out.GRPO.Advantage, s.Advantage)
			put(&out.GRPO.Beta, s.Beta)
			return &out
		}
	}
	return c
}

// put sets a value to one that is given.
func put[T any](dst *T, v *T) {
	if v != nil {
		*dst = *v
	}
}

// NeedsReference reports whether any step needs the reference policy.
func (c *Config) NeedsReference() bool {
	needs := c.GRPO.NeedsReference()
	for _, s := range c.Optim.Stages {
		needs = needs || c.At(s.FromStep).GRPO.NeedsReference()
	}
	return needs
}

// stages checks that they follow each other, and that what each of them puts in force is possible.
func (fs *faulty) stages(c *Config) {
	const at = "optim.stages"
	fs.check(len(c.Optim.Stages) == 0 || c.Optim.MaxSteps > 0, at, "needs a run of a known length: set optim.max_steps")
	last := 0
	for i, s := range c.Optim.Stages {
		path := fmt.Sprintf("%s[%d]", at, i)
		fs.check(s.FromStep > last, path+".from_step", "is %d: set it above %d, where the stage before begins", s.FromStep, last)
		last = max(last, s.FromStep)
		rate := c.At(s.FromStep).Optim.LearningRate
		fs.check(rate >= 0 && !math.IsInf(rate, 0), path+".learning_rate", "is %v: set it to 0 or more", rate)
		if err := c.At(s.FromStep).GRPO.Validate(); err != nil {
			fs.check(c.GRPO.Validate() != nil, path, "does not fit: %v", err) // what is wrong without it is said elsewhere
		}
	}
}
