package health

import "fmt"

// adapterUnchanged finds parameters that no step has moved in a whole window: their norm has the same bits.
func adapterUnchanged(h *history) string {
	if h.size == 0 || len(h.recent) < h.size {
		return ""
	}
	window := h.recent[len(h.recent)-h.size:]
	norm, ok := window[0].Values["param_norm"]
	for _, r := range window {
		if v, there := r.Values["param_norm"]; !ok || !there || v != norm {
			return ""
		}
	}
	why := "rubicon config print shows what is trained"
	rate, stepped := h.now("learning_rate")
	grad, _ := h.now("grad_norm")
	switch {
	case !stepped:
		why = "no step had anything to learn from: take tasks that the policy solves sometimes"
	case rate == 0:
		why = "the learning rate is 0: set optim.learning_rate, and look at optim.warmup_steps and lr_scheduler_type"
	case grad == 0:
		why = "every gradient is 0, because no group has rewards that differ: take tasks that the policy solves sometimes"
	}
	return fmt.Sprintf("the trained parameters have not changed since step %d; %s", window[0].Step, why)
}

const (
	freeAlways      = 1.0 // GB
	freeCheckpoints = 2.0 // that must still fit
)

func diskNearlyFull(h *history) string {
	free, ok := h.last("perf/disk_free_gb")
	need, _ := h.last("perf/checkpoint_gb")
	if !ok || free >= max(freeAlways, freeCheckpoints*need) {
		return ""
	}
	return fmt.Sprintf("the disk of the run's folder has %.2f GB left, a checkpoint takes about %.2f: free some, or set checkpoint.save_total_limit", free, need)
}
