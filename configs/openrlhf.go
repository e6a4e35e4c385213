package configs

import "slices"

// openRLHFNames are the flags of OpenRLHF's train_ppo_ray from 0.10 on, without their dashes and with their defaults.
func openRLHFNames() []alias {
	return slices.Concat(openRLHFActor(), openRLHFRollout(), openRLHFRun(), openRLHFMachine())
}

func openRLHFActor() []alias {
	return slices.Concat([]alias{
		{name: "actor.model_name_or_path", def: "null", path: "model.path"},
		{name: "actor.eps_clip", def: "0.2", path: "grpo.epsilon", special: keep},
		{name: "actor.eps_clip_low_high", def: "null", path: "grpo.epsilon and grpo.epsilon_high", special: keep},
		{name: "actor.dual_clip", def: "null", path: "grpo.delta"},
		{name: "actor.policy_loss_type", def: "ppo", path: "grpo.importance_sampling_level", special: keep},
		{name: "actor.entropy_coef", def: "null", path: "grpo.entropy_coef"},
		{name: "actor.aux_loss_coef", def: "0", refuse: "models with experts are not supported: remove it"},
		{name: "actor.gradient_checkpointing_enable", def: "false", path: "model.gradient_checkpointing"},
		{name: "actor.optim", def: "adam", path: "nothing: the optimiser is AdamW", convert: choose("adam=")},
		{name: "actor.adam.lr", def: "1e-06", path: "optim.learning_rate"},
		{name: "actor.adam.betas", def: "[0.9, 0.95]", path: "optim.adam_beta1 and optim.adam_beta2", special: betas},
		{name: "actor.adam.eps", def: "1e-08", path: "optim.adam_epsilon"},
		{name: "actor.adam.weight_decay", def: "0.0", path: "optim.weight_decay"},
		{name: "actor.lr_scheduler", def: "cosine_with_min_lr", path: "optim.lr_scheduler_type"},
		{name: "actor.lr_warmup_ratio", def: "0.03", path: "optim.warmup_steps"},
		{name: "actor.min_lr_ratio", def: "0.1", path: "optim.lr_scheduler_kwargs.min_lr_rate"},
		{name: "actor.max_norm", def: "1.0", path: "optim.max_grad_norm"},
		{name: "algo.kl.init_coef", def: "0.01", path: "grpo.beta", special: keep},
		{name: "algo.kl.use_loss", def: "false", path: "grpo.kl_in_reward", special: keep},
		{name: "algo.kl.estimator", def: "k1", path: "grpo.kl_estimator"},
		{name: "algo.kl.target", def: "null", refuse: "grpo.beta does not change: remove it"},
		{name: "algo.advantage.estimator", def: "gae", path: "grpo.advantage", special: keep},
		{name: "algo.advantage.no_std_norm", def: "false", refuse: "it is about the whole batch: set grpo.scale_rewards (group, batch or none)"},
		{name: "algo.advantage.gamma", def: "1", refuse: "a completion has one reward, at its end: remove it"},
		{name: "algo.dynamic_filtering_enable", def: "false", path: "grpo.dynamic_sampling"},
		{name: "algo.dynamic_filtering_range", def: "(0, 1)", refuse: "groups whose rewards are all equal are replaced, others never: remove it"},
	},
		ignored("actor.", exact, "gradient_checkpointing_reentrant=false"),
		ignored("actor.", onlyText, "freeze_visual_encoder=false"),
		ignored("actor.", ownLauncher, "num_nodes=1", "num_gpus_per_node=8"),
		ignored("algo.", "only an adaptive KL uses it", "kl.horizon=10000"),
		ignored("algo.", onlyGAE, "advantage.lambd=1"),
		ignored("algo.", ownSampler, "advantage.is_correction_enable=false", "advantage.is_correction_threshold=[0.5, 5.0]", "advantage.is_correction_type=tis"),
	)
}

func openRLHFRollout() []alias {
	return slices.Concat([]alias{
		{name: "rollout.batch_size", def: "1024", path: "data.train_batch_size"},
		{name: "rollout.n_samples_per_prompt", def: "1", path: "grpo.num_generations"},
		{name: "rollout.max_new_tokens", def: "null", path: "rollout.max_completion_length"},
		{name: "rollout.temperature", def: "1.0", path: "rollout.temperature"},
		{name: "rollout.top_p", def: "1.0", path: "rollout.top_p"},
		{name: "data.max_len", def: "2048", refuse: "prompt and completion have their own bounds: set data.max_prompt_length and rollout.max_completion_length"},
		{name: "data.max_samples", refuse: "all rows of a file are used: give a file with fewer"},
		{name: "data.prompt_dataset", def: "null", path: "data.train_files"},
		{name: "data.prompt_probs", def: "null", refuse: "files are read one after the other and shuffled: write a row as often as it is to count"},
		{name: "data.prompt_split", def: "train", refuse: "give the file of that split in data.train_files"},
		{name: "data.input_key", def: "input", path: "data.prompt_column"},
		{name: "data.label_key", def: "null", refuse: "name the column where the reward reads it, for instance column of reward.options.checks"},
		{name: "data.input_template", def: "null", refuse: "write the prompts out in the file, or set data.chat for the model's chat template"},
		{name: "data.apply_chat_template", def: "false", path: "data.chat"},
		{name: "reward.remote_url", def: "null", refuse: "set reward.kind to http and reward.options.url (docs/rewards.md has the form of its requests)"},
		{name: "reward.model_name_or_path", def: "null", refuse: useServer},
		{name: "reward.normalize_enable", def: "false", refuse: "rewards are taken as they are, advantages normalise them: remove it"},
		{name: "reward.clip_range", def: "(-10, 10)", refuse: "rewards are taken as they are: bound them where they are made"},
		{name: "reward.overlong_buffer_len", def: "null", path: "grpo.soft_punish_cache"},
		{name: "reward.overlong_penalty_factor", def: "1", refuse: "the punishment grows to 1: weigh the reward itself with reward.weight"},
		{name: "reward.stop_properly_penalty_coef", def: "null", refuse: "set grpo.soft_punish_cache, or grpo.mask_truncated_completions to leave cut off completions out"},
		{name: "eval.dataset", def: "null", path: "eval.files"},
		{name: "eval.split", def: "train", refuse: "give the file of that split in eval.files"},
		{name: "eval.steps", def: "-1", path: "eval.eval_steps", special: keep},
		{name: "eval.temperature", def: "0.6", path: "eval.temperature"},
		{name: "eval.n_samples_per_prompt", def: "4", path: "eval.num_generations_eval"},
	},
		ignored("rollout.", exact, "vllm_generate_batch_size=null", "micro_batch_size=1", "max_tokens_per_gpu=null"),
		ignored("data.", exact, "disable_fast_tokenizer=false"),
		ignored("data.", onlyText, "max_images_per_prompt=0"),
		ignored("reward.", ownLauncher, "num_nodes=1", "num_gpus_per_node=8"),
		ignored("reward.", exact, "offload=false"),
	)
}

func openRLHFRun() []alias {
	return slices.Concat([]alias{
		{name: "train.batch_size", def: "128", path: "optim.gradient_accumulation_steps", special: keep},
		{name: "train.micro_batch_size", def: "1", path: "optim.per_device_train_batch_size"},
		{name: "train.max_epochs", def: "1", path: "grpo.num_iterations"},
		{name: "train.num_episodes", def: "1", path: "optim.num_train_epochs"},
		{name: "train.seed", def: "42", path: "seed"},
		{name: "train.enable_ema", def: "false", refuse: "a moving average of the weights is not supported: remove it"},
		{name: "train.async_enable", def: "false", refuse: "sampling and training take turns: remove it"},
		{name: "train.partial_rollout_enable", def: "false", refuse: "completions are always sampled to their end: remove it"},
		{name: "train.agent_func_path", def: "null", refuse: useEnv},
		{name: "ckpt.output_dir", def: "./ckpt", path: "output_dir"},
		{name: "ckpt.path", def: "./ckpt/checkpoints_ppo_ray", path: "checkpoint.dir"},
		{name: "ckpt.save_steps", def: "-1", path: "checkpoint.save_steps", special: keep},
		{name: "ckpt.max_num", def: "3", path: "checkpoint.save_total_limit"},
		{name: "ckpt.load_enable", def: "false", path: "checkpoint.resume", convert: choose("true=auto", "false=")},
		{name: "ckpt.best_metric_key", refuse: "metrics have other names: set checkpoint.metric_for_best_model, for instance to eval_reward"},
		{name: "logger.logging_steps", def: "1", path: "track.logging_steps"},
	},
		ignored("train.", "only async_enable uses it", "async_queue_size=1"),
		ignored("train.", "only enable_ema uses it", "ema_beta=0.992"),
		ignored("train.", "a run is always deterministic", "full_determinism_enable=false"),
		ignored("train.", "passes are counted in completions", "dynamic_batch_enable=false", "max_tokens_per_gpu=16192"),
		ignored("train.", exact, "colocate_actor_ref=false", "colocate_critic_reward=false", "colocate_all=false"),
		ignored("ckpt.", "checkpoints are bounded by number, checkpoint.save_total_limit", "max_mem="),
		ignored("ckpt.", "the adapter of every checkpoint is a PEFT folder", "save_hf=false", "disable_ds=false"),
		ignored("logger.", "metrics.jsonl is always written; see track.to", "wandb"+below, "tensorboard_dir=null"),
	)
}

func openRLHFMachine() []alias {
	return slices.Concat([]alias{
		{name: "ds.lora.rank", def: "0", path: "lora.r, or model.trainable if 0", special: loraRank},
		{name: "ds.lora.alpha", def: "16", path: "lora.alpha"},
		{name: "ds.lora.target_modules", def: "all-linear", path: "lora.target_modules"},
		{name: "ds.lora.dropout", def: "0", path: "lora.dropout"},
		{name: "ds.load_in_4bit", def: "false", path: "model.dtype", convert: choose("true=int4", "false=")},
		{name: "ds.param_dtype", def: "bf16", path: "model.compute_dtype", convert: chooseOr("set model.compute_dtype to bfloat16 or float32", "bf16=bfloat16")},
		{name: "vllm" + below, ignore: noVLLM},
		{name: "ref" + below, ignore: "the reference is the run's own model, see grpo.reference"},
		{name: "use_ms", def: "false", ignore: "models and data are folders and files"},
	},
		ignored("ds.", noShards, "zero_stage=2", "zpg=1", "adam_offload=false", "use_universal_ckpt=false", "tensor_parallel_size=1",
			"ring_attn_size=1", "ring_attn_head_stride=1"),
		ignored("ds.", exact, "deepcompile=false", "attn_implementation=flash_attention_2", "use_liger_kernel=false", "grad_accum_dtype=null",
			"overlap_comm=false", "enable_sleep=false", "packing_samples=false"),
		ignored("ds.", "models with experts are not supported", "experts_implementation=null"),
		ignored("ds.", onlyGAE, "value_head_prefix=score"),
	)
}

// resolveOpenRLHF gives OpenRLHF's flags that mean something together their keys.
func (l *loader) resolveOpenRLHF(c *Config) {
	if pair, k, ok := take[[]float64](l, "actor.eps_clip_low_high"); ok && len(pair) == 2 {
		l.settle(c, "grpo.epsilon", pair[0], k)
		l.settle(c, "grpo.epsilon_high", pair[1], k)
	} else if ok {
		l.fail(k.from, k.name, "wants two numbers")
	} else if x, k, ok := take[float64](l, "actor.eps_clip"); ok {
		l.settle(c, "grpo.epsilon", x, k)
	}
	l.openRLHFObjective(c)
	perGeneration := c.GRPO.NumIterations
	if size, k, ok := take[int](l, "train.batch_size"); ok {
		all := c.Data.TrainBatchSize * c.GRPO.NumGenerations
		switch {
		case all == 0:
			l.fail(k.from, k.name, "counts completions of rollout.batch_size prompts: set that too")
		case size < 1 || all%size != 0:
			l.fail(k.from, k.name, "is %d, which does not divide the %d completions of a generation: set it to a divisor", size, all)
		default:
			l.accumulate(c, size, k)
			perGeneration *= all / size
		}
	}
	l.period(c, "ckpt.save_steps", "checkpoint.save_steps", perGeneration)
	l.period(c, "eval.steps", "eval.eval_steps", perGeneration)
}

func (l *loader) openRLHFObjective(c *Config) {
	if kind, k, ok := take[string](l, "actor.policy_loss_type"); ok && kind == "gspo" {
		l.settle(c, "grpo.importance_sampling_level", "sequence", k)
		l.settle(c, "grpo.loss_type", "grpo", k)
	} else if ok && kind != "ppo" {
		l.fail(k.from, k.name, "is %q, want one of ppo, gspo; or set grpo.loss_type", kind)
	}
	if kind, k, ok := take[string](l, "algo.advantage.estimator"); ok {
		ours := map[string]string{"group_norm": "group", "dr_grpo": "group", "rloo": "rloo", "reinforce": "reinforce_pp", "reinforce_baseline": "reinforce_pp_baseline"}[kind]
		switch kind {
		case "gae":
			l.fail(k.from, k.name, "is gae, which needs a critic, and there is none: set it to group_norm, or grpo.advantage")
		case "dr_grpo":
			l.settle(c, "grpo.scale_rewards", "none", k)
		}
		if ours != "" {
			l.settle(c, "grpo.advantage", ours, k)
		} else if kind != "gae" {
			l.fail(k.from, k.name, "is %q, want one of group_norm, dr_grpo, rloo, reinforce, reinforce_baseline", kind)
		}
	}
	coef, kc, okCoef := take[float64](l, "algo.kl.init_coef")
	if !okCoef {
		return
	}
	l.settle(c, "grpo.beta", coef, kc)
	if inLoss, ku, _ := take[bool](l, "algo.kl.use_loss"); !inLoss && coef != 0 {
		if ku.name == "" {
			ku = kc
		}
		l.settle(c, "grpo.kl_in_reward", true, ku)
	}
}
