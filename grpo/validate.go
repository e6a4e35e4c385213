package grpo

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// faults collects what is wrong with a configuration.
type faults []error

// check adds a fault unless ok.
func (f *faults) check(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf("grpo."+format, args...))
	}
}

// oneOf adds a fault unless value is among allowed.
func (f *faults) oneOf(key, value string, allowed ...string) {
	for _, a := range allowed {
		if value == a {
			return
		}
	}
	f.check(false, "%s: %q, which is not known; set it to one of %s", key, value, strings.Join(allowed, ", "))
}

// Validate returns all faults of c, joined, each saying what to set; nil if there are none.
func (c Config) Validate() error {
	var f faults
	c.checkObjective(&f)
	c.checkKL(&f)
	c.checkAdvantage(&f)
	c.checkTurns(&f)
	c.checkEntropy(&f)
	c.checkOffPolicy(&f)
	c.checkFilters(&f)
	c.checkBatching(&f)
	return errors.Join(f...)
}

// ValidateSampler returns the fault that matters only if samples come from an engine whose log-probabilities differ
// from the trainer's, so that Inputs.Sampling will be given.
func (c Config) ValidateSampler() error {
	if c.LossType == "vespo" && c.ImportanceSamplingCorrection && sequenceMode(c.ImportanceSamplingMode) {
		return fmt.Errorf("grpo.importance_sampling_mode: %s cannot be folded into the weights of loss_type vespo; "+
			"set it to token_truncate or token_mask", c.ImportanceSamplingMode)
	}
	return nil
}

func (c Config) checkObjective(f *faults) {
	f.oneOf("loss_type", c.LossType, "grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo")
	f.oneOf("importance_sampling_level", c.ImportanceSamplingLevel, "token", "sequence")
	f.check(c.Epsilon >= 0 && finite(c.Epsilon), "epsilon: %v; set it to a number >= 0, such as 0.2", c.Epsilon)
	f.check(c.EpsilonHigh == nil || *c.EpsilonHigh >= 0 && finite(*c.EpsilonHigh),
		"epsilon_high: %v; set it to a number >= 0 or leave it out", deref(c.EpsilonHigh))
	f.check(c.Delta == nil || *c.Delta > 0 && finite(*c.Delta),
		"delta: %v; set it to a number > 1+epsilon_high or leave it out", deref(c.Delta))
	f.check(c.SAPOTemperaturePos > 0 && finite(c.SAPOTemperaturePos), "sapo_temperature_pos: %v; set it > 0", c.SAPOTemperaturePos)
	f.check(c.SAPOTemperatureNeg > 0 && finite(c.SAPOTemperatureNeg), "sapo_temperature_neg: %v; set it > 0", c.SAPOTemperatureNeg)
	for _, v := range []struct {
		key   string
		value float64
	}{{"k_pos", c.VESPOKPos}, {"lambda_pos", c.VESPOLambdaPos}, {"k_neg", c.VESPOKNeg}, {"lambda_neg", c.VESPOLambdaNeg}} {
		f.check(v.value >= 0 && finite(v.value), "vespo_%s: %v; set it >= 0", v.key, v.value)
	}
}

func (c Config) checkKL(f *faults) {
	f.check(c.Beta >= 0 && finite(c.Beta), "beta: %v; set it >= 0 (0: no KL term)", c.Beta)
	f.oneOf("kl_estimator", c.KLEstimator, "k1", "k2", "k3", "kl", "mse", "low_var_kl")
	f.oneOf("reference", c.Reference, "initial", "base")
	f.check(!c.KLInReward || c.Beta != 0, "kl_in_reward: true, without effect while beta is 0; set beta > 0")
}

func (c Config) checkAdvantage(f *faults) {
	f.oneOf("advantage", c.Advantage, "group", "rloo", "reinforce_pp", "reinforce_pp_baseline")
	f.oneOf("scale_rewards", c.ScaleRewards, "group", "batch", "none", "true", "false")
	f.oneOf("multi_objective_aggregation", c.MultiObjectiveAggregation, "sum_then_normalize", "normalize_then_sum")
	f.check(c.Advantage == "group" || c.MultiObjectiveAggregation != "normalize_then_sum",
		"multi_objective_aggregation: normalize_then_sum, which is for advantage group and not %s; set it to sum_then_normalize", c.Advantage)
}

func (c Config) checkTurns(f *faults) {
	f.oneOf("turn_return", c.TurnReturn, "sum", "avg", "discounted")
	f.oneOf("turn_baseline", c.TurnBaseline, "position", "batch")
	f.oneOf("turn_bucket", c.TurnBucket, "search", "turn", "all")
	f.check(c.TurnGamma >= 0 && c.TurnGamma <= 1, "turn_gamma: %v; set it between 0 and 1", c.TurnGamma)
	f.check(c.TurnScale > 0 && finite(c.TurnScale), "turn_scale: %v; set it > 0", c.TurnScale)
}

func (c Config) checkEntropy(f *faults) {
	f.check(c.TopEntropyQuantile >= 0 && c.TopEntropyQuantile <= 1,
		"top_entropy_quantile: %v; set it between 0 and 1 (1: all tokens)", c.TopEntropyQuantile)
	f.check(finite(c.EntropyCoef), "entropy_coef: %v; set it to a number", c.EntropyCoef)
	if !c.UseAdaptiveEntropy {
		return
	}
	f.check(c.EntropyCoefMin <= c.EntropyCoefMax, "entropy_coef_min: %v, above entropy_coef_max %v; lower it",
		c.EntropyCoefMin, c.EntropyCoefMax)
	f.check(c.EntropyCoefDelta > 0 && finite(c.EntropyCoefDelta), "entropy_coef_delta: %v; set it > 0", c.EntropyCoefDelta)
	f.check(finite(c.EntropyTarget), "entropy_target: %v; set it to a number of nats", c.EntropyTarget)
}

func (c Config) checkOffPolicy(f *faults) {
	f.oneOf("importance_sampling_mode", c.ImportanceSamplingMode, "token_truncate", "token_mask", "sequence_truncate", "sequence_mask")
	low, high := c.ImportanceSamplingClipMin, c.ImportanceSamplingClipMax
	f.check(low == nil || finite(*low), "importance_sampling_clip_min: %v; set it to a number or leave it out", deref(low))
	f.check(high == nil || finite(*high), "importance_sampling_clip_max: %v; set it to a number or leave it out", deref(high))
	f.check(low == nil || high == nil || *low < *high,
		"importance_sampling_clip_min: %v, not below importance_sampling_clip_max %v; lower it", deref(low), deref(high))
	f.check(!c.ImportanceSamplingCorrection || !truncateMode(c.ImportanceSamplingMode) || low != nil || high != nil,
		"importance_sampling_mode: %s without a bound; set importance_sampling_clip_max or importance_sampling_clip_min",
		c.ImportanceSamplingMode)
	f.check(c.OffPolicyMaskThreshold == nil || finite(*c.OffPolicyMaskThreshold),
		"off_policy_mask_threshold: %v; set it to a number of nats per token or leave it out", deref(c.OffPolicyMaskThreshold))
}

func (c Config) checkFilters(f *faults) {
	f.check(!c.DynamicSampling || c.MaxNumGenBatches >= 1, "max_num_gen_batches: %d; set it >= 1", c.MaxNumGenBatches)
	f.check(c.MaxCompletionLength >= 1, "max_completion_length: %d; set it >= 1", c.MaxCompletionLength)
	f.check(c.SoftPunishCache >= 0 && (c.SoftPunishCache == 0 || c.SoftPunishCache <= c.MaxCompletionLength),
		"soft_punish_cache: %d; set it between 0 (off) and max_completion_length %d", c.SoftPunishCache, c.MaxCompletionLength)
}

func (c Config) checkBatching(f *faults) {
	f.check(c.NumGenerations >= 2 || c.NumGenerations == 1 && c.Advantage == "reinforce_pp",
		"num_generations: %d, but advantages compare completions of one prompt; set it >= 2, or to 1 with advantage reinforce_pp, which compares those of a batch", c.NumGenerations)
	f.check(c.NumGenerationsEval == nil || *c.NumGenerationsEval >= 1, "num_generations_eval: %v; set it >= 1 or leave it out", deref(c.NumGenerationsEval))
	f.check(c.NumIterations >= 1, "num_iterations: %d; set it >= 1", c.NumIterations)
	f.check(c.StepsPerGeneration == nil || *c.StepsPerGeneration >= 1, "steps_per_generation: %v; set it >= 1 or leave it out", deref(c.StepsPerGeneration))
	f.check(c.GenerationBatchSize == nil || *c.GenerationBatchSize >= 1, "generation_batch_size: %v; set it >= 1 or leave it out", deref(c.GenerationBatchSize))
	f.check(c.StepsPerGeneration == nil || c.GenerationBatchSize == nil,
		"generation_batch_size: set together with steps_per_generation, although each determines the other; set only one of them")
}

// Warnings returns what is allowed but probably not meant.
func (c Config) Warnings() []string {
	var w []string
	warn := func(when bool, format string, args ...any) {
		if when {
			w = append(w, fmt.Sprintf("grpo."+format, args...))
		}
	}
	warn(c.LossType == "luspo" && !c.sequenceLevel(),
		"loss_type luspo is defined on sequence ratios; set importance_sampling_level: sequence")
	warn(c.LossType == "vespo" && c.sequenceLevel(),
		"loss_type vespo makes its own sequence weights; set importance_sampling_level: token")
	switch c.LossType {
	case "bnpo", "dr_grpo", "dapo", "cispo":
		warn(c.sequenceLevel(), "loss_type %s sums over tokens, so that with importance_sampling_level sequence each "+
			"sequence counts by its length; set loss_type: grpo for GSPO", c.LossType)
	}
	warn(c.LossType == "cispo" && c.EpsilonHigh == nil, "epsilon_high is the cap of the ratio itself in loss_type cispo, "+
		"not an excess over 1; it defaults to epsilon = %v, set it to 5.0 as in ScaleRL", c.Epsilon)
	warn(c.Delta != nil && *c.Delta <= 1+c.epsilonHigh(), "delta %v is not above 1+epsilon_high = %v and so clips before "+
		"the usual clip does", deref(c.Delta), 1+c.epsilonHigh())
	warn(c.klInLoss() && klEstimator(c.KLEstimator) == klK1, "kl_estimator k1 in the loss has a gradient in which the "+
		"reference does not appear; use k2 or k3, or set kl_in_reward: true")
	warn(c.Advantage == "reinforce_pp" && c.DynamicSampling, "dynamic_sampling drops groups of equal rewards, which have a signal "+
		"with advantage reinforce_pp; set advantage: reinforce_pp_baseline")
	warn(c.Advantage != "group" && c.scale() != "group", "scale_rewards is not used by advantage %s", c.Advantage)
	return w
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// deref is the value of an optional number for a message.
func deref[T any](p *T) any {
	if p == nil {
		return "unset"
	}
	return *p
}
