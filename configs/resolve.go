package configs

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
)

// resolve decides what depends on other keys or on what was set at all.
func (l *loader) resolve(c *Config, files []string) {
	l.resolveVerl(c)
	l.resolveOpenRLHF(c)
	if c.RunName == "" {
		c.RunName = "run"
		if len(files) > 0 {
			base := filepath.Base(files[0])
			c.RunName = strings.TrimSuffix(base, filepath.Ext(base))
		}
	}
	if c.OutputDir == "" {
		c.OutputDir = filepath.Join("runs", c.RunName)
	}
	if !l.isSet("optim.learning_rate") && c.Model.Trainable == "full" {
		c.Optim.LearningRate = fullLearningRate
		l.note("optim.learning_rate", "is %v, because all weights are trained", fullLearningRate)
	}
	if c.Data.TrainBatchSize > 0 {
		l.derive("optim.per_device_train_batch_size", &c.Optim.PerDeviceTrainBatchSize)
		l.derive("optim.gradient_accumulation_steps", &c.Optim.GradientAccumulationSteps)
	}
	if l.pending.evaluate && !l.isSet("eval.eval_steps") {
		c.Eval.EvalSteps = c.Track.LoggingSteps
		l.note("eval.eval_steps", "is %v, that of track.logging_steps", float64(c.Eval.EvalSteps))
	}
	l.resolveWeights(c)
	c.complete()
}

func (l *loader) note(key, format string, args ...any) {
	l.notes = append(l.notes, Note{Key: key, Text: fmt.Sprintf(format, args...)})
}

// derive sets a size that nobody set to 0, which is to derive it from data.train_batch_size.
func (l *loader) derive(path string, size *int) {
	if !l.isSet(path) {
		*size = 0
	}
}

// resolveWeights gives reward_weights to the rewards.
func (l *loader) resolveWeights(c *Config) {
	w := l.pending.weights
	if w == nil {
		return
	}
	n := len(c.Reward.Parts)
	if c.Reward.Kind != "mix" {
		n = 1
	}
	if len(w) != n {
		l.fail(l.pending.weightsFrom, "reward_weights", "has %d weights for %d rewards: give one for each", len(w), n)
		return
	}
	if c.Reward.Kind != "mix" {
		c.Reward.Weight = w[0]
		return
	}
	for i := range w {
		c.Reward.Parts[i].Weight = w[i]
	}
}

// Batching is the arithmetic of the run's batches in world processes. An error says which key to change.
func (c *Config) Batching(world int) (grpo.Batching, error) {
	return c.GRPO.Batching(grpo.Sizes{
		PerDeviceTrainBatchSize:   c.Optim.PerDeviceTrainBatchSize,
		GradientAccumulationSteps: c.Optim.GradientAccumulationSteps,
		TrainBatchSize:            c.Data.TrainBatchSize,
		World:                     world,
	})
}
