package health

import (
	"fmt"
	"strings"
)

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
	for _, name := range h.below(prefix) {
		if share, ok := h.now(name); ok && share >= full {
			out = append(out, strings.TrimPrefix(name, prefix))
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
	for _, name := range h.below(prefix + "ops/") {
		sum += h.both(name)
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
