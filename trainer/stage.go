package trainer

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
)

// enter begins a stage (optim.stages) if the step to come is its first. The data goes on where it was; epochs and the last, smaller step of a
// pass are counted from here.
func (t *Trainer) enter() error {
	from := t.base.StageAt(t.state.Step)
	if from == t.state.Stage {
		return nil
	}
	t.state.Passed, t.state.Stage, t.state.Micro = t.epoch(), from, 0
	return t.use(from)
}

// use puts the settings of a stage in force.
func (t *Trainer) use(stage int) error {
	cfg := t.base.At(stage)
	if cfg == t.Config {
		return nil
	}
	batching, err := cfg.Batching(t.Group.World())
	if err != nil {
		return err
	}
	objective, err := grpo.NewObjective(cfg.GRPO)
	if err != nil {
		return err
	}
	schedule, err := NewSchedule(cfg.Optim, t.total)
	if err != nil {
		return err
	}
	t.Config, t.rollouts.Config = cfg, cfg
	t.batching, t.objective, t.schedule = batching, objective, schedule
	t.micro, t.steps = batching.Epoch(len(t.Prompts))
	return nil
}

// checkStages refuses stages whose batches do not fit together: each begins with a generation of its own, so that none may be left over, and
// needs enough prompts for it. world is the number of processes.
func checkStages(c *configs.Config, world, prompts int) error {
	for _, s := range append([]configs.Stage{{}}, c.Optim.Stages...) {
		b, err := c.At(s.FromStep).Batching(world)
		if err != nil {
			return fmt.Errorf("optim.stages, from step %d: %w", s.FromStep, err)
		}
		if len(c.Optim.Stages) > 0 && b.GradAccum%b.MicroSteps() != 0 {
			return fmt.Errorf("optim.stages: a generation serves %d micro-steps and a step takes %d, so that a stage could begin within one: leave grpo.steps_per_generation unset and set grpo.num_iterations to 1", b.MicroSteps(), b.GradAccum)
		}
		if prompts < b.Prompts {
			return fmt.Errorf("%d training prompts are fewer than the %d of one generation: use more data, or a smaller batch (%s)", prompts, b.Prompts, b)
		}
	}
	return nil
}
