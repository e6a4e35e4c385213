package configs

import (
	"math"
	"strings"
	"testing"
)

// Each row is a configuration that would fail late or do something other than what it says; the fault names the key and what to do.
func TestValidate(t *testing.T) {
	for overrides, want := range map[string]string{
		"device=tpu":                                 `device is "tpu": set it to one of auto, cpu`,
		"model.dtype=float16":                        `model.dtype is "float16"`,
		"model.dtype=bfloat1":                        "did you mean bfloat16?",
		"model.trainable=full model.dtype=int8":      "set model.trainable to lora",
		"lora.r=0":                                   "lora.r is 0: set it to at least 1",
		"lora.alpha=0":                               "lora.alpha is 0: set it above 0",
		"lora.dropout=1":                             "lora.dropout is 1: set it to at most 0.99",
		"lora.target_modules=[]":                     "lora.target_modules is empty",
		"model.init=random":                          "model.init is random, but model.trainable is lora",
		"model.adapter=a model.trainable=full":       "model.adapter is set, but model.trainable is full",
		"rollout.max_completion_length=0":            "rollout.max_completion_length is 0",
		"temperature=0":                              "rollout.temperature is 0",
		"rollout.top_p=0":                            "rollout.top_p is 0: set it above 0",
		`rollout.stop=["a",""]`:                      "rollout.stop has an empty text",
		"eval.num_generations_eval=2":                "eval.temperature 0 samples the same completion",
		"optim.max_steps=-2":                         "optim.max_steps is -2: set it to at least -1",
		"rollout.kv_tokens=4611686018427387904":      "rollout.kv_tokens is 4.611686018427388e+18: set it to at most 2147483647",
		"optim.num_train_epochs=1e300":               "optim.num_train_epochs is 1e+300: set it to at most 2147483647",
		"eval.num_generations_eval=1000000":          "eval.num_generations_eval is 1000000: set it to at most 65536",
		"optim.warmup_steps=1e300":                   "optim.warmup_steps is 1e+300: set it to at most 2147483647",
		"optim.max_steps=0":                          "optim.max_steps is 0",
		"optim.num_train_epochs=0":                   "optim.num_train_epochs is 0",
		"optim.adam_beta2=1":                         "optim.adam_beta2 is 1",
		"optim.adam_beta1=1":                         "optim.adam_beta1 is 1",
		"optim.warmup_steps=1.5":                     "optim.warmup_steps is 1.5: set it to whole steps",
		"checkpoint.save_steps=2.5":                  "checkpoint.save_steps is 2.5: set it to whole steps",
		"per_device_train_batch_size=0":              "optim.per_device_train_batch_size is 0",
		"gradient_accumulation_steps=0":              "optim.gradient_accumulation_steps is 0",
		"optim.max_bad_steps=0":                      "optim.max_bad_steps is 0",
		"data.on_bad_row=ignore":                     "data.on_bad_row is",
		"grpo.loss_type=ppo":                         `grpo.loss_type: "ppo"`,
		"grpo.soft_punish_cache=513":                 "grpo.soft_punish_cache: 513",
		"grpo.delta=-1 grpo.epsilon=-1":              "grpo.delta: -1",
		"reward.kind=mix":                            "reward.parts is empty",
		`optim.stages=[{"from_step":3}]`:             "optim.stages needs a run of a known length: set optim.max_steps",
		`max_steps=9 optim.stages=[{"from_step":0}]`: "optim.stages[0].from_step is 0: set it above 0",
		`max_steps=9 optim.stages=[{"from_step":3},{"from_step":3}]`:              "optim.stages[1].from_step is 3: set it above 3",
		`max_steps=9 optim.stages=[{"from_step":3,"learning_rate":-1}]`:           "optim.stages[0].learning_rate is -1",
		`max_steps=9 optim.stages=[{"from_step":3,"num_generations":1}]`:          "optim.stages[0] does not fit: grpo.num_generations",
		`max_steps=9 optim.stages=[{"from_step":3,"advantage":"best"}]`:           "optim.stages[0] does not fit: grpo.advantage",
		`reward.parts=[{"kind":"verify"}]`:                                        "reward.parts is only for kind mix",
		`reward.kind=mix reward.parts=[{"kind":"nix"}]`:                           `reward.parts[0].kind is "nix"`,
		`reward.kind=mix reward.parts=[{"kind":"mix"}]`:                           "reward.parts[0].kind is mix",
		`reward.kind=mix reward.parts=[{"kind":"verify"},{"kind":"verify"}]`:      "reward.parts[1].name verify is taken",
		`reward.kind=mix reward.options={"a":1} reward.parts=[{"kind":"verify"}]`: "reward.options has no effect",
		"metric_for_best_model=eval_reward":                                       "set eval.files",
		"metric_for_best_model=eval_reward eval.files=a":                          "set eval.eval_steps",
		"eval_steps=5":                               "eval.eval_steps is set, but there is nothing",
		"eval_on_start=true":                         "eval.eval_on_start is set, but there is nothing",
		"optim.lr_scheduler_kwargs.power=2":          "power has no meaning for linear",
		"optim.lr_scheduler_type=cosine_with_min_lr": "just one of them, must be set",
		"optim.lr_scheduler_type=cosine_with_min_lr optim.lr_scheduler_kwargs.min_lr=1":         "min_lr is not below",
		"optim.lr_scheduler_type=warmup_stable_decay":                                           "num_decay_steps is needed",
		"optim.lr_scheduler_type=polynomial learning_rate=1e-8":                                 "lr_end is 1e-07, not below",
		"optim.lr_scheduler_type=cosine_with_restarts optim.lr_scheduler_kwargs.num_cycles=1.5": "num_cycles is not whole",
		"optim.lr_scheduler_type=reduce_lr_on_plateau":                                          "optim.lr_scheduler_type is",
	} {
		_, _, err := Load(nil, strings.Fields(overrides), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\nerror %v\nwant %q", overrides, err, want)
		}
	}
}

// What looks like a fault but is none.
func TestValidateAccepts(t *testing.T) {
	for _, overrides := range []string{
		"model.init=random model.trainable=full",
		"eval.num_generations_eval=4 eval.temperature=1",
		"optim.max_steps=10 optim.num_train_epochs=0",
		"optim.warmup_steps=0.05 save_steps=0.5 logging_steps=0",
		"metric_for_best_model=eval_reward eval.files=a eval_steps=5 save_steps=10",
		"eval.files=a",
		"data.train_batch_size=3",
		"optim.lr_scheduler_type=cosine_with_min_lr optim.lr_scheduler_kwargs.min_lr_rate=0.1",
		`reward.kind=mix reward.parts=[{"kind":"verify","name":"a"},{"kind":"verify","name":"b","weight":-1}]`,
		"optim.learning_rate=0",
	} {
		if _, _, err := Load(nil, strings.Fields(overrides), nil); err != nil {
			t.Errorf("%s: %v", overrides, err)
		}
	}
}

// Values that no file can hold, but a program can.
func TestValidateNotFinite(t *testing.T) {
	c := Default()
	c.Optim.LearningRate = math.NaN()
	c.Reward = Reward{RewardPart: RewardPart{Kind: "mix"}, Parts: []RewardPart{{Kind: "verify", Weight: math.Inf(1)}}}
	err := c.Validate()
	for _, want := range []string{"optim.learning_rate is NaN: set it to a finite number", "reward.parts[0].weight is +Inf"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A fault found by a check is told with the place that set the key.
func TestFaultPlace(t *testing.T) {
	file := write(t, "f.yaml", "seed: 1\nrollout:\n  top_p: 2\n")
	_, _, err := Load([]string{file}, nil, nil)
	if want := file + ":3: rollout.top_p is 2: set it to at most 1"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestPeriod(t *testing.T) {
	for _, tt := range []struct {
		p           Period
		total, want int
	}{{0, 100, 0}, {1, 100, 1}, {50, 100, 50}, {0.1, 100, 10}, {0.1, 101, 11}, {0.001, 10, 1}} {
		if got := tt.p.Every(tt.total); got != tt.want {
			t.Errorf("%v of %d steps: every %d, want %d", tt.p, tt.total, got, tt.want)
		}
	}
}
