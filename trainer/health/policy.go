package health

import "fmt"

// sampled reports whether the run samples completions: entropy and lengths of supervised examples are the data's.
func (h *history) sampled() bool {
	_, ok := h.last("completions/mean_length")
	return ok
}

const entropyLeft = 0.2 // share of the start's

func entropyCollapse(h *history) string {
	start, now, ok := h.sinceStart("entropy")
	if !ok || !h.sampled() || start <= 0 || now > entropyLeft*start {
		return ""
	}
	return fmt.Sprintf("the entropy is down to %.3g nats a token from %.3g: completions of a prompt become alike and nothing new is tried; set grpo.epsilon_high to 0.28, grpo.entropy_coef, or a lower optim.learning_rate",
		now, start)
}

const (
	entropyGrown = 3.0 // times the start's
	entropyMore  = 1.0 // nats a token above it
)

func entropyExplosion(h *history) string {
	start, now, ok := h.sinceStart("entropy")
	if !ok || !h.sampled() || now < entropyGrown*start || now < start+entropyMore {
		return ""
	}
	return fmt.Sprintf("the entropy is up to %.3g nats a token from %.3g: completions become noise; go back to a checkpoint before that and set a lower optim.learning_rate or grpo.entropy_coef",
		now, start)
}

const (
	longer    = 1.5  // times the start's length, if many are cut
	muchMore  = 3.0  // times, if the reward has not risen
	cut       = 0.25 // share of the completions that a limit cut
	cutBefore = 0.15 // more than at the start
)

func lengthExplosion(h *history) string {
	start, now, ok := h.sinceStart("completions/mean_length")
	cutStart, cutNow, _ := h.sinceStart("completions/clipped_ratio")
	if !ok || start <= 0 {
		return ""
	}
	const todo = "set grpo.soft_punish_cache, or give the reward a criterion about length"
	if now >= longer*start && cutNow >= cut && cutNow-cutStart >= cutBefore {
		return fmt.Sprintf("completions have %.0f tokens in place of %.0f, and %.0f%% of them are cut off (%.0f%% at the start): %s", now, start, 100*cutNow, 100*cutStart, todo)
	}
	rewardStart, reward, scored := h.sinceStart("reward")
	if now >= muchMore*start && scored && reward <= rewardStart {
		return fmt.Sprintf("completions have %.0f tokens in place of %.0f, and the reward has not risen with them (%.3g, %.3g at the start): %s", now, start, reward, rewardStart, todo)
	}
	return ""
}

const (
	klFar    = 1.0 // nats a token
	klNoted  = 0.1
	klGrowth = 4.0 // from one window to the next
)

func klRunaway(h *history) string {
	now, ok := h.now("kl")
	before, known := h.ago(1, "kl")
	switch {
	case ok && now >= klFar:
		return fmt.Sprintf("the policy is %.3g nats a token away from the reference: lower optim.learning_rate or raise grpo.beta", now)
	case ok && known && now >= klNoted && now >= klGrowth*before:
		return fmt.Sprintf("the KL to the reference grows fast, from %.3g to %.3g nats a token: lower optim.learning_rate or raise grpo.beta", before, now)
	}
	return ""
}

const (
	sampledApart = 0.05 // nats a token
	clippedShare = 0.3  // of the tokens
)

func offPolicyGap(h *history) string {
	if gap, ok := h.now("sampling/sampling_logp_difference/mean"); ok && gap >= sampledApart {
		return fmt.Sprintf("sampler and trainer differ by %.3g nats a token: set grpo.importance_sampling_correction, or model.compute_dtype to float32", gap)
	}
	if share, ok := h.now("clip_ratio/region_mean"); ok && share >= clippedShare {
		return fmt.Sprintf("%.0f%% of the tokens are clipped, because the policy has moved far from the one that sampled them: lower optim.learning_rate, grpo.steps_per_generation or grpo.num_iterations", 100*share)
	}
	return ""
}
