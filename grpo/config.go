package grpo

// Config is the section `grpo` of a run's configuration. Names, meanings and defaults are those of TRL 1.16's
// GRPOConfig where TRL has the option; an optional number is a pointer, nil meaning unset.
type Config struct {
	// Objective. LossType is grpo, bnpo, dr_grpo, dapo, luspo, cispo, sapo or vespo. ImportanceSamplingLevel is token or
	// sequence; with sequence, loss_type grpo is GSPO (arXiv:2507.18071).
	LossType                string `yaml:"loss_type" mapstructure:"loss_type"`
	ImportanceSamplingLevel string `yaml:"importance_sampling_level" mapstructure:"importance_sampling_level"`

	// The ratio is clipped to [1-epsilon, 1+epsilon_high] (unset: epsilon); for cispo epsilon_high is the cap itself.
	// Delta bounds the unclipped ratio (unset: no bound).
	Epsilon     float64  `yaml:"epsilon" mapstructure:"epsilon"`
	EpsilonHigh *float64 `yaml:"epsilon_high" mapstructure:"epsilon_high"`
	Delta       *float64 `yaml:"delta" mapstructure:"delta"`

	SAPOTemperaturePos float64 `yaml:"sapo_temperature_pos" mapstructure:"sapo_temperature_pos"`
	SAPOTemperatureNeg float64 `yaml:"sapo_temperature_neg" mapstructure:"sapo_temperature_neg"`
	VESPOKPos          float64 `yaml:"vespo_k_pos" mapstructure:"vespo_k_pos"`
	VESPOLambdaPos     float64 `yaml:"vespo_lambda_pos" mapstructure:"vespo_lambda_pos"`
	VESPOKNeg          float64 `yaml:"vespo_k_neg" mapstructure:"vespo_k_neg"`
	VESPOLambdaNeg     float64 `yaml:"vespo_lambda_neg" mapstructure:"vespo_lambda_neg"`

	// KL to the reference policy, with weight Beta (0: no reference is needed). Reference is initial (the adapter that
	// the run started from) or base (no adapter); the two are the same for a new adapter. KLInReward subtracts beta times
	// the KL from the reward instead of adding it to the loss. UseBiasCorrectionKL multiplies k3 in the loss by the ratio.
	Beta                float64 `yaml:"beta" mapstructure:"beta"`
	KLEstimator         string  `yaml:"kl_estimator" mapstructure:"kl_estimator"`
	UseBiasCorrectionKL bool    `yaml:"use_bias_correction_kl" mapstructure:"use_bias_correction_kl"`
	KLInReward          bool    `yaml:"kl_in_reward" mapstructure:"kl_in_reward"`
	Reference           string  `yaml:"reference" mapstructure:"reference"`

	// Advantage is group, rloo, reinforce_pp or reinforce_pp_baseline. ScaleRewards (group | batch | none, also true
	// and false) and MultiObjectiveAggregation (sum_then_normalize | normalize_then_sum) belong to group.
	Advantage                 string `yaml:"advantage" mapstructure:"advantage"`
	ScaleRewards              string `yaml:"scale_rewards" mapstructure:"scale_rewards"`
	MultiObjectiveAggregation string `yaml:"multi_objective_aggregation" mapstructure:"multi_objective_aggregation"`

	// Turns. Where the reward values each turn of an episode, those give the advantages: TurnReturn over the turns to come (sum |
	// avg | discounted, with TurnGamma), minus TurnBaseline (position: the mean of the turn's bucket in the batch | batch: of all turns),
	// times TurnScale. TurnBucket is search (the n-th search, or the end), turn (the n-th turn) or all; TurnLeaveOneOut leaves
	// the turn itself out of its bucket's mean, TurnFallbackToGlobal compares one that is alone in it with all. (ARCO, sec. 3.2;
	// defaults are its public code's.)
	TurnReturn           string  `yaml:"turn_return" mapstructure:"turn_return"`
	TurnGamma            float64 `yaml:"turn_gamma" mapstructure:"turn_gamma"`
	TurnBaseline         string  `yaml:"turn_baseline" mapstructure:"turn_baseline"`
	TurnBucket           string  `yaml:"turn_bucket" mapstructure:"turn_bucket"`
	TurnLeaveOneOut      bool    `yaml:"turn_leave_one_out" mapstructure:"turn_leave_one_out"`
	TurnFallbackToGlobal bool    `yaml:"turn_fallback_to_global" mapstructure:"turn_fallback_to_global"`
	TurnScale            float64 `yaml:"turn_scale" mapstructure:"turn_scale"`

	// Entropy, in nats. Only the TopEntropyQuantile share of tokens with the highest entropy gives gradients (1: all).
	// EntropyCoef is the weight of the entropy bonus; see EntropyControl for the adaptive one.
	TopEntropyQuantile float64 `yaml:"top_entropy_quantile" mapstructure:"top_entropy_quantile"`
	EntropyCoef        float64 `yaml:"entropy_coef" mapstructure:"entropy_coef"`
	UseAdaptiveEntropy bool    `yaml:"use_adaptive_entropy" mapstructure:"use_adaptive_entropy"`
	EntropyCoefMin     float64 `yaml:"entropy_coef_min" mapstructure:"entropy_coef_min"`
	EntropyCoefMax     float64 `yaml:"entropy_coef_max" mapstructure:"entropy_coef_max"`
	EntropyCoefDelta   float64 `yaml:"entropy_coef_delta" mapstructure:"entropy_coef_delta"`
	EntropyTarget      float64 `yaml:"entropy_target" mapstructure:"entropy_target"`

	// Off-policy. The correction (TRL's vllm_importance_sampling_*) acts when the sampler's own log-probabilities are
	// known to differ from the trainer's; its mode is token_truncate, token_mask, sequence_truncate or sequence_mask. The
	// mask drops rows with a negative advantage that drifted further than the threshold (nats per token; unset: none).
	ImportanceSamplingCorrection bool     `yaml:"importance_sampling_correction" mapstructure:"importance_sampling_correction"`
	ImportanceSamplingMode       string   `yaml:"importance_sampling_mode" mapstructure:"importance_sampling_mode"`
	ImportanceSamplingClipMax    *float64 `yaml:"importance_sampling_clip_max" mapstructure:"importance_sampling_clip_max"`
	ImportanceSamplingClipMin    *float64 `yaml:"importance_sampling_clip_min" mapstructure:"importance_sampling_clip_min"`
	OffPolicyMaskThreshold       *float64 `yaml:"off_policy_mask_threshold" mapstructure:"off_policy_mask_threshold"`

	// Filters. DynamicSampling draws until every group has signal or MaxNumGenBatches draws are spent. SoftPunishCache
	// tokens before MaxCompletionLength DAPO's soft overlong punishment begins (arXiv:2503.14476, eq. 13; 0: off).
	MaskTruncatedCompletions bool `yaml:"mask_truncated_completions" mapstructure:"mask_truncated_completions"`
	DynamicSampling          bool `yaml:"dynamic_sampling" mapstructure:"dynamic_sampling"`
	MaxNumGenBatches         int  `yaml:"max_num_gen_batches" mapstructure:"max_num_gen_batches"`
	MaxCompletionLength      int  `yaml:"max_completion_length" mapstructure:"max_completion_length"`
	SoftPunishCache          int  `yaml:"soft_punish_cache" mapstructure:"soft_punish_cache"`

	// Batching; see there. NumGenerations is completions per prompt (NumGenerationsEval unset: the same), NumIterations
	// passes over one generation batch, GenerationBatchSize completions; at most one of the last two is set.
	NumGenerations      int  `yaml:"num_generations" mapstructure:"num_generations"`
	NumGenerationsEval  *int `yaml:"num_generations_eval" mapstructure:"num_generations_eval"`
	NumIterations       int  `yaml:"num_iterations" mapstructure:"num_iterations"`
	StepsPerGeneration  *int `yaml:"steps_per_generation" mapstructure:"steps_per_generation"`
	GenerationBatchSize *int `yaml:"generation_batch_size" mapstructure:"generation_batch_size"`
}

// Default returns TRL 1.16's defaults; what TRL lacks is off, except for the bound on dynamic sampling, which is that
// of the DAPO recipe.
func Default() Config {
	clipMax := 3.0
	return Config{
		LossType:                     "dapo",
		ImportanceSamplingLevel:      "token",
		Epsilon:                      0.2,
		SAPOTemperaturePos:           1.0,
		SAPOTemperatureNeg:           1.05,
		VESPOKPos:                    2,
		VESPOLambdaPos:               3,
		VESPOKNeg:                    3,
		VESPOLambdaNeg:               2,
		KLEstimator:                  "k3",
		UseBiasCorrectionKL:          true,
		Reference:                    "initial",
		Advantage:                    "group",
		ScaleRewards:                 "group",
		MultiObjectiveAggregation:    "sum_then_normalize",
		TurnReturn:                   "sum",
		TurnGamma:                    0.9,
		TurnBaseline:                 "position",
		TurnBucket:                   "search",
		TurnFallbackToGlobal:         true,
		TurnScale:                    0.5,
		TopEntropyQuantile:           1,
		EntropyCoefMax:               1,
		EntropyCoefDelta:             0.005,
		EntropyTarget:                0.2,
		ImportanceSamplingCorrection: true,
		ImportanceSamplingMode:       "sequence_mask",
		ImportanceSamplingClipMax:    &clipMax,
		MaxNumGenBatches:             10,
		MaxCompletionLength:          512,
		NumGenerations:               8,
		NumIterations:                1,
	}
}

// epsilonHigh is epsilon_high with its default.
func (c Config) epsilonHigh() float64 {
	if c.EpsilonHigh != nil {
		return *c.EpsilonHigh
	}
	return c.Epsilon
}

// sequenceLevel reports whether the importance ratio is one per sequence.
func (c Config) sequenceLevel() bool { return c.ImportanceSamplingLevel == "sequence" }

// scale is scale_rewards with TRL's boolean spellings resolved.
func (c Config) scale() string {
	switch c.ScaleRewards {
	case "true":
		return "group"
	case "false":
		return "none"
	}
	return c.ScaleRewards
}

// NeedsReference reports whether log-probabilities under the reference policy are needed.
func (c Config) NeedsReference() bool { return c.Beta != 0 }

// klInLoss reports whether the loss has a KL term.
func (c Config) klInLoss() bool { return c.Beta != 0 && !c.KLInReward }

// entropyBonus reports whether the loss has an entropy term.
func (c Config) entropyBonus() bool { return c.EntropyCoef != 0 || c.UseAdaptiveEntropy }

// NeedsEntropy reports whether Inputs.Entropy must be given; otherwise it only serves the metric of that name.
func (c Config) NeedsEntropy() bool { return c.entropyBonus() || c.TopEntropyQuantile < 1 }
