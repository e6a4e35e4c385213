package configs

import (
	"slices"
	"strings"
	"testing"
)

// Each setting that people regret is named, by that name alone; the defaults with held-out prompts are not.
func TestWarnings(t *testing.T) {
	base := []string{"eval.files=[a.jsonl]", "eval.eval_steps=10", "metric_for_best_model=eval_reward"}
	for args, want := range map[string]string{
		"":                     "",
		"learning_rate=1e-6":   "optim.learning_rate",
		"learning_rate=5e-6":   "",
		"model.trainable=full": "",
		"model.trainable=full learning_rate=1e-4": "optim.learning_rate",
		"max_grad_norm=0":                         "optim.max_grad_norm",
		"lora.dropout=0.05":                       "lora.dropout",
		"model.trainable=full lora.dropout=0.05":  "",
		"num_generations=2":                       "grpo.num_generations",
		"optim.max_bad_steps=100":                 "optim.max_bad_steps",
		"temperature=0.3":                         "rollout.temperature",
		"top_p=0.9":                               "rollout.top_p",
		"top_k=50":                                "rollout.top_k",
		"min_p=0.1":                               "rollout.min_p",
		"repetition_penalty=1.1":                  "rollout.repetition_penalty",
		"grpo.dynamic_sampling=true grpo.max_num_gen_batches=20": "grpo.max_num_gen_batches",
		"save_steps=0":         "checkpoint.save_steps",
		"save_only_model=true": "checkpoint.save_only_model",
		"eval.files=[] eval.eval_steps=0 metric_for_best_model=":              "eval.files",
		"metric_for_best_model=":                                              "checkpoint.metric_for_best_model",
		"eval.temperature=1":                                                  "eval.num_generations_eval",
		"eval.temperature=1 num_generations_eval=4":                           "",
		"reward.max_unscorable=0.9":                                           "reward.max_unscorable",
		"judge.temperature=0.7":                                               "",
		"reward.kind=rubric judge.temperature=0.7":                            "judge.temperature",
		`reward.kind=mix reward.parts=[{"kind":"rare"}] judge.prompt_price=1`: "judge.budget_money",
		"reward.kind=rubric judge.prompt_price=1 judge.budget_tokens=10":      "",
	} {
		c, _ := mustLoad(t, nil, append(slices.Clone(base), strings.Fields(args)...), nil)
		var got []string
		for _, n := range c.Warnings() {
			got = append(got, n.Key)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: warnings about %q, want %q", args, got, want)
		}
	}
}
