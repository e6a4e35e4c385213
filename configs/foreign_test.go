package configs

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What verl's and OpenRLHF's names mean, where that is more than another name.
func TestForeignNames(t *testing.T) {
	const (
		actor, optim = "actor_rollout_ref.actor.", "actor_rollout_ref.actor.optim."
		sampler      = "actor_rollout_ref.rollout."
	)
	batch := []string{"data.train_batch_size=16", sampler + "n=4", actor + "ppo_mini_batch_size=8", actor + "ppo_micro_batch_size_per_gpu=16"}
	mini := func(c *Config) { // 16 prompts of 4: two mini-batches of 8 prompts, 32 completions, in two passes of 16
		c.Data.TrainBatchSize, c.GRPO.NumGenerations = 16, 4
		c.Optim.PerDeviceTrainBatchSize, c.Optim.GradientAccumulationSteps = 16, 2
	}
	for name, tt := range map[string]struct {
		args []string
		set  func(c *Config)
	}{
		"verl": {[]string{"data.max_response_length=9", sampler + "n=2", "algorithm.adv_estimator=reinforce_plus_plus", sampler + "top_k=-1", actor + "loss_agg_mode=token-mean", "trainer.save_freq=-1"}, func(c *Config) {
			c.Rollout.MaxCompletionLength, c.GRPO.NumGenerations, c.GRPO.Advantage, c.Checkpoint.SaveSteps = 9, 2, "reinforce_pp", 0
		}},
		"all weights": {[]string{"actor_rollout_ref.model.lora_rank=0", optim + "lr=1e-5"}, func(c *Config) { c.Model.Trainable = "full" }},
		"adapter":     {[]string{"actor_rollout_ref.model.lora_rank=64"}, func(c *Config) { c.LoRA.R = 64 }},
		"mini-batch":  {batch, mini},
		"periods count generations": {append(slices.Clone(batch), "trainer.save_freq=5", "trainer.total_training_steps=100", optim+"lr_warmup_steps=10", optim+"lr_scheduler_type=constant"), func(c *Config) {
			mini(c)
			c.Checkpoint.SaveSteps, c.Optim.MaxSteps, c.Optim.WarmupSteps, c.Optim.LRSchedulerType = 10, 200, 20, "constant_with_warmup"
		}},
		"clip low wins":  {[]string{actor + "clip_ratio=0.2", actor + "clip_ratio_low=0.1", actor + "clip_ratio_high=0.3"}, func(c *Config) { c.GRPO.Epsilon, c.GRPO.EpsilonHigh = 0.1, ptr(0.3) }},
		"kl in the loss": {[]string{actor + "use_kl_loss=True", actor + "kl_loss_coef=0.01"}, func(c *Config) { c.GRPO.Beta, c.GRPO.UseBiasCorrectionKL = 0.01, false }},
		"kl off":         {[]string{actor + "use_kl_loss=False", actor + "kl_loss_coef=0.01"}, func(*Config) {}},
		"kl with k2 slope": {[]string{actor + "use_kl_loss=True", actor + "kl_loss_type=k1+"}, func(c *Config) {
			c.GRPO.Beta, c.GRPO.UseBiasCorrectionKL, c.GRPO.KLEstimator = 0.001, false, "k2"
		}},
		"kl in the reward": {[]string{"algorithm.use_kl_in_reward=true"}, func(c *Config) { c.GRPO.Beta, c.GRPO.KLInReward, c.GRPO.KLEstimator = 0.001, true, "k1" }},
		"gspo":             {[]string{actor + "policy_loss.loss_mode=gspo", actor + "loss_agg_mode=seq-mean-token-mean"}, func(c *Config) { c.GRPO.LossType, c.GRPO.ImportanceSamplingLevel = "grpo", "sequence" }},
		"cosine": {[]string{optim + "lr_scheduler_type=cosine", optim + "min_lr_ratio=0.1"}, func(c *Config) {
			c.Optim.LRSchedulerType, c.Optim.LRSchedulerKwargs.MinLRRate = "cosine_with_min_lr", ptr(0.1)
		}},
		"dapo": {[]string{"reward.reward_kwargs.overlong_buffer_cfg.enable=true", "reward.reward_kwargs.overlong_buffer_cfg.len=128", "algorithm.filter_groups.enable=true"}, func(c *Config) {
			c.GRPO.SoftPunishCache, c.GRPO.DynamicSampling = 128, true
		}},
		"a later layer wins": {append(slices.Clone(batch), "optim.max_steps=7"), func(c *Config) { mini(c); c.Optim.MaxSteps = 7 }},

		"OpenRLHF": {[]string{"rollout.batch_size=16", "rollout.n_samples_per_prompt=4", "train.batch_size=32", "train.micro_batch_size=16", "actor.adam.lr=2e-6", "algo.advantage.estimator=group_norm", "ckpt.save_steps=5", "vllm.num_engines=4"}, func(c *Config) {
			mini(c)
			c.Optim.LearningRate, c.Checkpoint.SaveSteps = 2e-6, 10
		}},
		"OpenRLHF's optimiser": {[]string{"actor.adam.betas=[0.9, 0.95]", "actor.adam.weight_decay=0.01", "actor.lr_scheduler=cosine_with_min_lr", "actor.min_lr_ratio=0.1", "actor.lr_warmup_ratio=0.03", "actor.max_norm=0.5"}, func(c *Config) {
			c.Optim.AdamBeta2, c.Optim.WeightDecay, c.Optim.WarmupSteps, c.Optim.MaxGradNorm = 0.95, 0.01, 0.03, 0.5
			c.Optim.LRSchedulerType, c.Optim.LRSchedulerKwargs.MinLRRate = "cosine_with_min_lr", ptr(0.1)
		}},
		"OpenRLHF's kl":      {[]string{"algo.kl.init_coef=0.01"}, func(c *Config) { c.GRPO.Beta, c.GRPO.KLInReward = 0.01, true }},
		"OpenRLHF's kl loss": {[]string{"algo.kl.init_coef=0.01", "algo.kl.use_loss=true", "algo.kl.estimator=k3"}, func(c *Config) { c.GRPO.Beta = 0.01 }},
		"OpenRLHF's clip":    {[]string{"actor.eps_clip_low_high=[0.2, 0.27]"}, func(c *Config) { c.GRPO.Epsilon, c.GRPO.EpsilonHigh = 0.2, ptr(0.27) }},
		"OpenRLHF's dr_grpo": {[]string{"algo.advantage.estimator=dr_grpo", "ds.lora.rank=8"}, func(c *Config) { c.GRPO.ScaleRewards, c.LoRA.R = "none", 8 }},
	} {
		t.Run(name, func(t *testing.T) {
			c, notes := mustLoad(t, nil, tt.args, nil)
			want := Default()
			want.RunName, want.OutputDir = "run", "runs/run"
			tt.set(want)
			want.complete()
			if !reflect.DeepEqual(c, want) {
				t.Errorf("got %+v\nwant %+v", c, want)
			}
			for _, arg := range tt.args { // each is noted
				key, _, _ := strings.Cut(arg, "=")
				_, own := newSchema().field(key)
				if !own && !slices.ContainsFunc(notes, func(n Note) bool { return n.Key == key || strings.HasPrefix(key, strings.TrimSuffix(n.Key, "*")) }) {
					t.Errorf("%s is not noted: %v", key, notes)
				}
			}
		})
	}
}

func TestForeignNamesRefused(t *testing.T) {
	for args, want := range map[string]string{
		"actor_rollout_ref.actor.ppo_mini_batch_size=8":                                       "set that too",
		"actor_rollout_ref.actor.ppo_mini_batch_size=5 data.train_batch_size=16":              "does not divide data.train_batch_size 16",
		"algorithm.adv_estimator=gae":                                                         "needs a critic",
		"algorithm.adv_estimator=remax":                                                       "want one of grpo",
		"actor_rollout_ref.actor.policy_loss.loss_mode=cispo":                                 "grpo.epsilon_high",
		"actor_rollout_ref.actor.use_kl_loss=true algorithm.use_kl_in_reward=true":            "one KL term",
		"actor_rollout_ref.actor.ppo_micro_batch_size=8":                                      "ppo_micro_batch_size_per_gpu",
		"actor_rollout_ref.rollout.multi_turn.enable=true":                                    "env.kind",
		"reward.custom_reward_function.path=r.py":                                             "kind exec",
		"actor_rollout_ref.actor.clip_ratio_hihg=0.3":                                         "clip_ratio_high",
		"train.batch_size=100 rollout.batch_size=16 rollout.n_samples_per_prompt=4":           "does not divide the 64 completions",
		"train.batch_size=32":                                                                 "set that too",
		"actor.optim=muon":                                                                    "want one of adam",
		"algo.advantage.gamma=0.9":                                                            "one reward",
		"reward.remote_url=http://x":                                                          "reward.options.url",
		"actor_rollout_ref.actor.ppo_mini_batch_size=x data.train_batch_size=16":              "want a whole number",
		"data.train_batch_size=16 actor_rollout_ref.actor.ppo_mini_batch_size=8 rollout.n=-1": "grpo.num_generations",
	} {
		if _, _, err := Load(nil, strings.Fields(args), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", args, err, want)
		}
	}
}

// Sections of verl's files are read as such, and one key under two names is an error.
func TestVerlFile(t *testing.T) {
	const text = `
data: {train_batch_size: 16, train_files: a.parquet, val_files: b.parquet}
actor_rollout_ref:
  model: {path: m, lora_rank: 8}
  rollout: {n: 4, name: vllm}
  actor: {clip_ratio_high: 0.28, optim: {lr: 3.0e-6}}
algorithm: {adv_estimator: grpo}
`
	c, notes := mustLoad(t, []string{write(t, "v.yaml", text)}, nil, nil)
	if c.Data.TrainBatchSize != 16 || c.Eval.Files[0] != "b.parquet" || c.Model.Path != "m" || c.LoRA.R != 8 ||
		c.GRPO.NumGenerations != 4 || *c.GRPO.EpsilonHigh != 0.28 || c.Optim.LearningRate != 3e-6 {
		t.Errorf("got %+v", c)
	}
	if i := slices.IndexFunc(notes, func(n Note) bool { return strings.HasPrefix(n.Text, "ignored: ") }); len(notes) != 8 || i < 0 || notes[i].Key != "actor_rollout_ref.rollout.name" {
		t.Errorf("notes %v", notes)
	}
	_, _, err := Load([]string{write(t, "v.yaml", text+"rollout: {n: 4}\n")}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "rollout.n: sets grpo.num_generations, which") {
		t.Errorf("error %v", err)
	}
}
