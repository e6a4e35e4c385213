package verify

import (
	"errors"
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/grpo"
)

// outcome is the kind of check that takes what an environment says has become of an episode, such as em or f1.
type outcome struct {
	Metric string `json:"metric"`
}

func (k *outcome) compile(*grpo.Prompt) (Check, error) {
	if k.Metric == "" {
		return nil, errors.New("metric is empty: name an outcome of the environment, such as em")
	}
	return func(c *grpo.Completion) (float64, string) {
		if c.Episode == nil {
			return math.NaN(), "the completion is no episode: set env.kind"
		}
		v, known := c.Episode.Outcome[k.Metric]
		if !known {
			return math.NaN(), fmt.Sprintf("the environment tells no %q: set metric to one of its outcomes, which are in the completions' files", k.Metric)
		}
		return min(max(v, 0), 1), fmt.Sprintf("%s %.3g after %d turns", k.Metric, v, len(c.Episode.Steps))
	}, nil
}
