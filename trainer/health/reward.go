package health

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// rewardCourse is the reward since the rubric was last another one: rewards of different rubrics do not compare.
type rewardCourse struct {
	versions string // of the rubrics
	lines    int    // since they are these
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
	if c.lines == h.size {
		c.start, c.best = now, math.Inf(-1)
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
	if !ok || c.lines < 2*h.size {
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

const full = 0.8 // share of (group, criterion) pairs, and of the groups for one criterion

func saturatedRubric(h *history) string {
	for _, name := range h.named("rubric/saturated_frac") {
		share, ok := h.now(name)
		if !ok || share < full {
			continue
		}
		text := fmt.Sprintf("all completions of a group meet %.0f%% of the criteria in full, so that the rubric tells them no longer apart: ask for more, or let amaris or rare change it", 100*share)
		if ids := h.full(strings.TrimSuffix(name, "_frac") + "/"); ids != nil {
			text += "; met in full: " + strings.Join(ids, ", ")
		}
		return text
	}
	return ""
}

// full are the criteria that almost every group meets in full, at most five of them.
func (h *history) full(prefix string) []string {
	var out []string
	for _, name := range h.recent[len(h.recent)-1].Names() {
		if id, ok := strings.CutPrefix(name, prefix); ok {
			if share, ok := h.now(name); ok && share >= full {
				out = append(out, id)
			}
		}
	}
	if len(out) > 5 {
		out = append(out[:5], "...")
	}
	return out
}

// staleRubric finds a rubric that is worked on and does not change.
func staleRubric(h *history) string {
	const stronger = "rubicon rubrics log shows the answers; set judge.tiers.update to a stronger model"
	for _, name := range h.named("amaris/updates") {
		prefix := strings.TrimSuffix(name, "updates")
		if updates := h.both(name); updates > 0 && h.operations(prefix) == 0 {
			return fmt.Sprintf("no update of the rubric has changed anything since step %d (of %.2g updates a step %.2g had no usable answer; %.2g operations a step were not valid): %s",
				h.recent[0].Step, updates, h.both(prefix+"unanswered"), h.both(prefix+"dropped_ops"), stronger)
		}
	}
	for _, name := range h.named("rare/switches") {
		kept := strings.TrimSuffix(name, "switches") + "kept"
		if h.both(kept) > 0 && h.both(name) == 0 {
			return fmt.Sprintf("criteria are saturated and none was replaced since step %d: %s", h.recent[0].Step, stronger)
		}
	}
	return ""
}

// operations are those that updates applied, a step.
func (h *history) operations(prefix string) float64 {
	sum := 0.0
	for _, name := range h.recent[len(h.recent)-1].Names() {
		if strings.HasPrefix(name, prefix+"ops/") {
			sum += h.both(name)
		}
	}
	return sum
}

// both is a metric's mean over the last two windows; 0 if they are not there yet.
func (h *history) both(name string) float64 {
	before, known := h.ago(1, name)
	now, ok := h.now(name)
	if !known || !ok {
		return 0
	}
	return (before + now) / 2
}

// auditCourse is what an independent judge said of samples.
type auditCourse struct {
	first, recent []audit // up to auditsCompared of each
	seen          int
}

type audit struct{ bias, difference float64 }

const (
	auditsCompared = 3
	drifted        = 0.15 // of a credit in [0,1]
)

func (c *auditCourse) add(r track.Record) {
	a := audit{r.Values["judge/audit/bias"], r.Values["judge/audit/difference"]}
	if _, there := r.Values["judge/audit/difference"]; !there || math.IsNaN(a.bias+a.difference) {
		return
	}
	c.seen++
	if len(c.first) < auditsCompared {
		c.first = append(c.first, a)
	}
	c.recent = append(slices.Clone(c.recent[max(0, len(c.recent)-auditsCompared+1):]), a)
}

func mean(list []audit) (m audit) {
	for _, a := range list {
		m.bias += a.bias / float64(len(list))
		m.difference += a.difference / float64(len(list))
	}
	return m
}

func judgeDrift(h *history) string {
	c := h.audits
	if c.seen < 2*auditsCompared {
		return ""
	}
	start, now := mean(c.first), mean(c.recent)
	switch {
	case now.bias-start.bias >= drifted:
		return fmt.Sprintf("the judge has become more generous than the independent one (by %+.2f of a credit, %+.2f at the start): the policy may be exploiting it; look at the completions with the highest rewards", now.bias, start.bias)
	case now.difference-start.difference >= drifted:
		return fmt.Sprintf("the judge and the independent one agree less than at the start (%.2f of a credit apart, %.2f at the start): look at the completions on which they differ", now.difference, start.difference)
	}
	return ""
}
