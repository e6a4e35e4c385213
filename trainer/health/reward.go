package health

import (
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// rewardCourse is the reward since the rubric was last another one: rewards of different rubrics do not compare.
type rewardCourse struct {
	versions string // of the rubrics
	lines    int    // since they are these
	known    bool   // there was a window of them
	start    float64
	best     float64
	bestStep int
	spread   float64 // standard deviation of the rewards in the best window
}

func (c *rewardCourse) add(h *history, r track.Record) {
	versions := ""
	for _, name := range h.named("version") {
		versions += fmt.Sprint(r.Values[name], " ")
	}
	if versions != c.versions {
		*c = rewardCourse{versions: versions}
	}
	c.lines++
	now, ok := h.now("reward")
	if !ok || c.lines < h.size {
		return
	}
	if !c.known {
		c.known, c.start = true, now
		c.best = math.Inf(-1)
	}
	if now > c.best {
		c.best, c.bestStep = now, r.Step
		c.spread, _ = h.now("reward_std")
	}
}

const lostGain = 0.5 // share of what the reward had gained

func rewardCollapse(h *history) string {
	now, ok := h.now("reward")
	c := h.reward
	if !ok || !c.known || c.lines < 2*h.size {
		return ""
	}
	if lost := c.best - now; lost <= max(lostGain*(c.best-c.start), c.spread, 0.1*math.Abs(c.best)) {
		return ""
	}
	return fmt.Sprintf("the reward has fallen from %.3g at step %d to %.3g: go back to a checkpoint before that and lower optim.learning_rate, or raise grpo.beta",
		c.best, c.bestStep, now)
}

const flatGroups = 0.8 // share of the groups

func noSignal(h *history) string {
	share, ok := h.now("frac_reward_zero_std")
	if !ok || share < flatGroups {
		return ""
	}
	reward, _ := h.now("reward")
	return fmt.Sprintf("%.0f%% of the groups have equal rewards (%.3g on average), from which nothing is learnt: take tasks that the policy solves sometimes, "+
		"set grpo.dynamic_sampling, or raise grpo.num_generations", 100*share, reward)
}
