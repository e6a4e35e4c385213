package configs

// keyDoc is what a field of a struct that has no doc tags of ours means.
type keyDoc struct {
	doc  string
	enum string // allowed words, | between
	min  *float64
}

// grpoDocs describes the keys of section grpo; their checks are grpo's own.
func grpoDocs() map[string]keyDoc {
	zero, one := ptr(0.0), ptr(1.0)
	return map[string]keyDoc{
		"loss_type":                 {"Objective. dapo, bnpo, cispo, vespo: mean over all tokens; grpo, sapo: mean over completions; dr_grpo: sum over a constant; luspo: sum. grpo with sequence ratios is GSPO.", "grpo|bnpo|dr_grpo|dapo|luspo|cispo|sapo|vespo", nil},
		"importance_sampling_level": {"Ratio of new to old probability: one per token, or one per completion.", "token|sequence", nil},
		"epsilon":                   {"The ratio is clipped below at 1 - epsilon.", "", zero},
		"epsilon_high":              {"And above at 1 + epsilon_high (cispo: at epsilon_high itself). null: epsilon.", "", zero},
		"delta":                     {"Upper bound of the ratio also where a negative advantage leaves it unclipped. null: none.", "", zero},
		"sapo_temperature_pos":      {"sapo: temperature for positive advantages.", "", zero},
		"sapo_temperature_neg":      {"sapo: temperature for the others.", "", zero},
		"vespo_k_pos":               {"vespo: power of the weight, positive advantages.", "", zero},
		"vespo_lambda_pos":          {"vespo: decay of the weight, positive advantages.", "", zero},
		"vespo_k_neg":               {"vespo: power of the weight, negative advantages.", "", zero},
		"vespo_lambda_neg":          {"vespo: decay of the weight, negative advantages.", "", zero},

		"beta":                   {"Weight of the KL divergence from the reference. 0: no reference is computed.", "", zero},
		"kl_estimator":           {"KL of one token, d = log ratio of policy to reference: k1 is d, k2 is d*d/2, k3 is exp(-d)+d-1. verl's kl, mse, low_var_kl mean the same.", "k1|k2|k3|kl|mse|low_var_kl", nil},
		"use_bias_correction_kl": {"Weigh k3 in the loss by the ratio.", "", nil},
		"kl_in_reward":           {"Take the KL from the reward instead of adding it to the loss.", "", nil},
		"reference":              {"initial: the adapter that the run started from. base: the model without adapter. The same for a new adapter.", "initial|base", nil},

		"advantage":                   {"group: reward minus the group's mean. rloo: minus the mean of the others. reinforce_pp: whitened over the batch; reinforce_pp_baseline: after taking the group's mean away.", "group|rloo|reinforce_pp|reinforce_pp_baseline", nil},
		"scale_rewards":               {"Divide by the standard deviation of the group, of the batch, or not at all. true is group, false is none.", "group|batch|none|true|false", nil},
		"multi_objective_aggregation": {"Several rewards: weigh and sum, then normalise; or normalise each in its group, then weigh and sum (GDPO).", "sum_then_normalize|normalize_then_sum", nil},

		"turn_return":             {"Where the reward values each turn of an episode: what its advantage is made of. sum: the values of the turns to come; avg: their mean; discounted: their sum with turn_gamma.", "sum|avg|discounted", nil},
		"turn_gamma":              {"discounted: what a turn later counts.", "", zero},
		"turn_baseline":           {"What is taken away. position: the mean over the turns of the same turn_bucket in the batch; batch: over all turns.", "position|batch", nil},
		"turn_bucket":             {"Turns that are comparable. search: the n-th search, or the end of an episode; turn: the n-th turn; all.", "search|turn|all", nil},
		"turn_leave_one_out":      {"A turn is not in its own mean.", "", nil},
		"turn_fallback_to_global": {"A turn alone in its bucket is compared with all turns; else it has no advantage.", "", nil},
		"turn_scale":              {"What these advantages are multiplied by.", "", nil},

		"top_entropy_quantile": {"Share of the tokens, those of highest entropy, that learn. 1: all.", "", zero},
		"entropy_coef":         {"Weight of the entropy bonus. 0: none.", "", nil},
		"use_adaptive_entropy": {"Move entropy_coef so that entropy stays near entropy_target.", "", nil},
		"entropy_coef_min":     {"Lowest adaptive entropy_coef.", "", nil},
		"entropy_coef_max":     {"Highest adaptive entropy_coef.", "", nil},
		"entropy_coef_delta":   {"Its change in one step.", "", nil},
		"entropy_target":       {"Entropy to keep, nats per token.", "", nil},

		"importance_sampling_correction": {"Correct for a sampler whose log-probabilities are not the trainer's. The own engine's are, so nothing is corrected.", "", nil},
		"importance_sampling_mode":       {"Ratio of trainer to sampler per token or per completion; out of bounds it is cut to the bound or the loss is left out.", "token_truncate|token_mask|sequence_truncate|sequence_mask", nil},
		"importance_sampling_clip_max":   {"Upper bound of that ratio. null: none.", "", nil},
		"importance_sampling_clip_min":   {"Lower bound of that ratio. null: none.", "", nil},
		"off_policy_mask_threshold":      {"Leave out completions of negative advantage that the policy has left by more than this, nats per token. null: none.", "", nil},

		"mask_truncated_completions": {"Leave out of the loss what the length limit cut off.", "", nil},
		"dynamic_sampling":           {"Replace groups whose rewards are all equal by those of new prompts.", "", nil},
		"max_num_gen_batches":        {"Draws of prompts in one step at most, with dynamic_sampling.", "", one},
		"soft_punish_cache":          {"Tokens before max_completion_length over which the reward falls by up to 1 (DAPO). 0: off.", "", zero},

		"num_generations":       {"Completions of each prompt. 1 is possible with advantage reinforce_pp, also where the reward values turns.", "", one},
		"num_iterations":        {"Times that each batch of completions is learnt from.", "", one},
		"steps_per_generation":  {"Backward passes that one batch of completions is cut into. null: optim.gradient_accumulation_steps, or what the other sizes give.", "", one},
		"generation_batch_size": {"Completions sampled at a time, all processes. null: from steps_per_generation. Set only one of the two.", "", one},
	}
}

// grpoCopies are fields of grpo.Config that are no keys: copies of keys in other sections, made by complete.
func grpoCopies() []string { return []string{"max_completion_length", "num_generations_eval"} }

// complete makes those copies.
func (c *Config) complete() {
	c.GRPO.MaxCompletionLength = c.Rollout.MaxCompletionLength
	c.GRPO.NumGenerationsEval = ptr(c.Eval.NumGenerationsEval)
}

func ptr[T any](x T) *T { return &x }
