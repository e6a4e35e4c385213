package grpo

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// Every field that TRL has carries TRL 1.16's default, and every TRL field of the objective is there.
func TestDefaultsAreTRLs(t *testing.T) {
	var g struct {
		Specific map[string]string `json:"grpo_specific"`
	}
	readGolden(t, "config_defaults.json", &g)
	ours := map[string]bool{ // what TRL has not
		"kl_estimator": true, "kl_in_reward": true, "reference": true, "advantage": true,
		"dynamic_sampling": true, "max_num_gen_batches": true, "soft_punish_cache": true,
		"turn_return": true, "turn_gamma": true, "turn_baseline": true, "turn_bucket": true, "turn_leave_one_out": true,
		"turn_fallback_to_global": true, "turn_scale": true,
	}
	elsewhere := "model_init_kwargs trust_remote_code router_aux_loss_coef disable_dropout cast_lm_head_to_fp32 ds3_gather_for_generation " +
		"shuffle_dataset pad_to_multiple_of temperature top_p top_k min_p generation_kwargs chat_template_kwargs repetition_penalty " +
		"cache_implementation use_vllm reward_weights sync_ref_model ref_model_mixup_alpha ref_model_sync_steps max_tool_calling_iterations " +
		"log_completions log_multimodal num_completions_to_print log_unique_prompts log_completions_hub_repo " +
		"use_transformers_continuous_batching transformers_continuous_batching_config use_transformers_paged vllm_importance_sampling_cap "
	cfg := Default()
	v := reflect.ValueOf(cfg)
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		key := tag.Get("yaml")
		if key == "" || tag.Get("mapstructure") != key {
			t.Errorf("field %s: tags %q", v.Type().Field(i).Name, tag)
		}
		name := key
		if strings.HasPrefix(key, "importance_sampling_") && key != "importance_sampling_level" {
			name = "vllm_" + key
		}
		want, ok := g.Specific[name]
		if ok == ours[key] {
			t.Errorf("%s: in TRL %v", key, ok)
		}
		if ok && python(v.Field(i)) != want {
			t.Errorf("%s is %s, in TRL %s", key, python(v.Field(i)), want)
		}
		delete(g.Specific, name)
	}
	for name := range g.Specific {
		if !strings.Contains(elsewhere, name+" ") && !strings.HasPrefix(name, "vllm_") {
			t.Errorf("TRL's %s is missing", name)
		}
	}
}

// python writes a value as Python's repr does.
func python(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "None"
		}
		return python(v.Elem())
	case reflect.Bool:
		return map[bool]string{true: "True", false: "False"}[v.Bool()]
	case reflect.String:
		return "'" + v.String() + "'"
	case reflect.Float64:
		if s := strconv.FormatFloat(v.Float(), 'g', -1, 64); strings.ContainsAny(s, ".e") {
			return s
		}
		return strconv.FormatFloat(v.Float(), 'f', 1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// Each fault is found alone, names its key and says what to do; a default configuration has none.
func TestValidate(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	nan := math.NaN()
	for key, spoil := range map[string][]func(*Config){
		"loss_type":                    {func(c *Config) { c.LossType = "ppo" }},
		"importance_sampling_level":    {func(c *Config) { c.ImportanceSamplingLevel = "word" }},
		"epsilon":                      {func(c *Config) { c.Epsilon = -0.1 }, func(c *Config) { c.Epsilon = nan }},
		"epsilon_high":                 {func(c *Config) { c.EpsilonHigh = ptr(-0.1) }},
		"delta":                        {func(c *Config) { c.Delta = ptr(0.0) }, func(c *Config) { c.Delta = &nan }},
		"sapo_temperature_pos":         {func(c *Config) { c.SAPOTemperaturePos = 0 }},
		"sapo_temperature_neg":         {func(c *Config) { c.SAPOTemperatureNeg = -1 }},
		"vespo_k_pos":                  {func(c *Config) { c.VESPOKPos = -1 }},
		"vespo_lambda_neg":             {func(c *Config) { c.VESPOLambdaNeg = math.Inf(1) }},
		"beta":                         {func(c *Config) { c.Beta = -1 }, func(c *Config) { c.Beta = nan }},
		"kl_estimator":                 {func(c *Config) { c.KLEstimator = "k4" }},
		"kl_in_reward":                 {func(c *Config) { c.KLInReward = true }},
		"reference":                    {func(c *Config) { c.Reference = "last" }},
		"advantage":                    {func(c *Config) { c.Advantage = "gae" }},
		"scale_rewards":                {func(c *Config) { c.ScaleRewards = "1" }},
		"multi_objective_aggregation":  {func(c *Config) { c.MultiObjectiveAggregation = "sum" }, func(c *Config) { c.Advantage, c.MultiObjectiveAggregation = "rloo", "normalize_then_sum" }},
		"top_entropy_quantile":         {func(c *Config) { c.TopEntropyQuantile = 1.1 }, func(c *Config) { c.TopEntropyQuantile = nan }},
		"turn_return":                  {func(c *Config) { c.TurnReturn = "max" }},
		"turn_gamma":                   {func(c *Config) { c.TurnGamma = 1.1 }, func(c *Config) { c.TurnGamma = nan }},
		"turn_baseline":                {func(c *Config) { c.TurnBaseline = "" }},
		"turn_bucket":                  {func(c *Config) { c.TurnBucket = "step" }},
		"turn_scale":                   {func(c *Config) { c.TurnScale = 0 }},
		"entropy_coef":                 {func(c *Config) { c.EntropyCoef = nan }},
		"entropy_coef_min":             {func(c *Config) { c.UseAdaptiveEntropy, c.EntropyCoefMin = true, 2 }},
		"entropy_coef_delta":           {func(c *Config) { c.UseAdaptiveEntropy, c.EntropyCoefDelta = true, 0 }},
		"entropy_target":               {func(c *Config) { c.UseAdaptiveEntropy, c.EntropyTarget = true, nan }},
		"importance_sampling_mode":     {func(c *Config) { c.ImportanceSamplingMode = "none" }, func(c *Config) { c.ImportanceSamplingMode, c.ImportanceSamplingClipMax = "token_truncate", nil }},
		"importance_sampling_clip_min": {func(c *Config) { c.ImportanceSamplingClipMin = ptr(3.0) }},
		"importance_sampling_clip_max": {func(c *Config) { c.ImportanceSamplingClipMax = &nan }},
		"off_policy_mask_threshold":    {func(c *Config) { c.OffPolicyMaskThreshold = &nan }},
		"max_num_gen_batches":          {func(c *Config) { c.DynamicSampling, c.MaxNumGenBatches = true, 0 }},
		"max_completion_length":        {func(c *Config) { c.MaxCompletionLength = 0 }},
		"soft_punish_cache":            {func(c *Config) { c.SoftPunishCache = 513 }, func(c *Config) { c.SoftPunishCache = -1 }},
		"num_generations":              {func(c *Config) { c.NumGenerations = 1 }, func(c *Config) { c.Advantage, c.NumGenerations = "reinforce_pp", 0 }},
		"num_generations_eval":         {func(c *Config) { c.NumGenerationsEval = ptr(0) }},
		"num_iterations":               {func(c *Config) { c.NumIterations = 0 }},
		"steps_per_generation":         {func(c *Config) { c.StepsPerGeneration = ptr(0) }},
		"generation_batch_size":        {func(c *Config) { c.GenerationBatchSize = ptr(0) }, func(c *Config) { c.StepsPerGeneration, c.GenerationBatchSize = ptr(2), ptr(16) }},
	} {
		for _, f := range spoil {
			err := with(f).Validate()
			if err == nil || !strings.HasPrefix(err.Error(), "grpo."+key+": ") || !strings.Contains(err.Error(), "set ") && !strings.Contains(err.Error(), "lower it") {
				t.Errorf("%s: %v", key, err)
			}
			if err != nil && strings.Contains(err.Error(), "\n") && key != "importance_sampling_clip_max" {
				t.Errorf("%s: more than one fault: %v", key, err)
			}
		}
	}
	err := with(func(c *Config) { c.LossType, c.Beta, c.NumGenerations = "", -1, 0 }).Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("three faults: %v", err)
	}
	if _, err := NewObjective(with(func(c *Config) { c.LossType = "x" })); err == nil {
		t.Error("NewObjective takes a faulty configuration")
	}
}

func TestWarnings(t *testing.T) {
	if w := Default().Warnings(); w != nil {
		t.Error(w)
	}
	for want, change := range map[string]func(*Config){
		"luspo is defined on sequence": func(c *Config) { c.LossType = "luspo" },
		"vespo makes its own sequence": func(c *Config) { c.LossType, c.ImportanceSamplingLevel = "vespo", "sequence" },
		"loss_type dapo sums":          func(c *Config) { c.ImportanceSamplingLevel = "sequence" },
		"the cap of the ratio itself":  func(c *Config) { c.LossType = "cispo" },
		"delta 1.1 is not above":       func(c *Config) { c.Delta = ptr(1.1) },
		"k1 in the loss":               func(c *Config) { c.Beta, c.KLEstimator = 0.1, "kl" },
		"drops groups of equal":        func(c *Config) { c.Advantage, c.DynamicSampling = "reinforce_pp", true },
		"scale_rewards is not used":    func(c *Config) { c.Advantage, c.ScaleRewards = "rloo", "none" },
	} {
		w := with(change).Warnings()
		if len(w) != 1 || !strings.Contains(w[0], want) {
			t.Errorf("%q: %q", want, w)
		}
	}
}

// Rare settings have the meaning of their plain spelling.
func TestSpellings(t *testing.T) {
	same := map[string]string{"true": "group", "false": "none", "batch": "batch"}
	for given, want := range same {
		if got := with(func(c *Config) { c.ScaleRewards = given }).scale(); got != want {
			t.Errorf("scale_rewards %s is %s", given, got)
		}
	}
	for given, want := range map[string]klKind{"kl": klK1, "mse": klK2, "low_var_kl": klK3, "k1": klK1, "k2": klK2, "k3": klK3} {
		if klEstimator(given) != want {
			t.Errorf("kl_estimator %s is %d", given, klEstimator(given))
		}
	}
}
