package configs

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

func verlData() []alias {
	return slices.Concat([]alias{
		{name: "data.train_batch_size", def: "1024", path: "data.train_batch_size"},
		{name: "data.max_prompt_length", def: "512", path: "data.max_prompt_length"},
		{name: "data.max_response_length", def: "512", path: "rollout.max_completion_length", special: keep},
		{name: "data.shuffle", def: "true", path: "data.shuffle"},
		{name: "data.seed", def: "null", path: "data.seed"},
		{name: "data.train_files", path: "data.train_files"},
		{name: "data.val_files", path: "eval.files"},
		{name: "data.val_max_samples", def: "-1", path: "eval.max_rows", convert: otherwise(choose("-1=0"))},
		{name: "data.train_max_samples", def: "-1", refuse: "all rows of a file are used: give a file with fewer"},
		{name: "data.prompt_key", def: "prompt", path: "data.prompt_column"},
		{name: "data.truncation", def: "error", path: "nothing: prompts are never cut", convert: choose("error=")},
		{name: "data.filter_overlong_prompts", def: "false", path: "data.on_long_prompt", convert: choose("true=skip", "false=fail")},
		{name: "data.apply_chat_template_kwargs", def: "{}", path: "data.chat_template_kwargs"},
		{name: "data.tokenizer", def: "null", refuse: "the tokenizer is read from the model's folder: put it there"},
		{name: "data.tool_config_path", def: "null", refuse: useEnv},
		{name: "data.function_tool_path", def: "null", refuse: useEnv},
		{name: "data.custom_cls.path", def: "null", refuse: "rows come from files: write them as .jsonl or .parquet"},
		{name: "data.custom_cls.name", def: "null", ignore: "only custom_cls.path uses it"},
		{name: "data.datagen" + below, ignore: "rows come from files"},
	},
		ignored("data.", "prompts are drawn data.train_batch_size at a time; see grpo.dynamic_sampling", "gen_batch_size=null"),
		ignored("data.", "a reward sees all columns of a row", "reward_fn_key=data_source", "return_raw_input_ids=false", "return_raw_chat=true",
			"return_full_prompt=false"),
		ignored("data.", "results of an evaluation do not depend on it; see rollout.max_batch", "val_batch_size=null", "validation_shuffle=false"),
		ignored("data.", onlyText, "image_key=images", "video_key=videos", "audio_key=audios", "image_patch_size=14",
			"return_multi_modal_inputs=true", "mm_processor_kwargs={}"),
		ignored("data.", "code in a model folder is never run", "trust_remote_code=false"),
		ignored("data.", exact, "use_shm=false", "dataloader_num_workers=8", "filter_overlong_prompts_workers=1"),
	)
}

func verlReward() []alias {
	manager := choose("naive=", "dapo=", "batch=", "prime=")
	table := []alias{
		{name: "reward.custom_reward_function.name", def: "compute_score", ignore: "only custom_reward_function.path uses it"},
		{name: "reward.reward_manager.name", def: "naive", path: "nothing: reward.kind says what scores", convert: manager},
		{name: "reward.reward_manager.module.path", def: "null", refuse: useReward},
		{name: "reward.reward_manager.module.name", def: "custom_reward_manager", ignore: "only reward_manager.module.path uses it"},
		{name: "reward.reward_manager.source", def: "register", path: "nothing: reward.kind says what scores", convert: choose("register=")},
		{name: "reward.reward_model.enable", def: "false", refuse: useServer},
		{name: "reward.reward_model" + below, ignore: "only reward_model.enable uses it"},
		{name: "reward.num_workers", def: "8", ignore: "the options of the reward say how many it scores at a time"},
		{name: "reward.sandbox_fusion" + below, ignore: "a reward of your own runs what it wants"},
		{name: "custom_reward_function.name", def: "null", ignore: "only custom_reward_function.path uses it"},
		{name: "reward_model.reward_manager", def: "null", path: "nothing: reward.kind says what scores", convert: manager},
		{name: "reward_model.enable", def: "null", path: "nothing: reward.kind says what scores", convert: chooseOr(useServer, "false=")},
		{name: "reward_model.reward_loop_module_path", def: "null", refuse: useReward},
		{name: "reward_model" + below, ignore: "only reward_model.enable uses it"},
		{name: "sandbox_fusion" + below, ignore: "a reward of your own runs what it wants"},
	}
	for _, at := range []string{"", "reward."} {
		table = append(table, alias{name: at + "custom_reward_function.path", def: "null", refuse: useReward})
	}
	for _, at := range []string{"reward.reward_kwargs.overlong_buffer_cfg.", "reward_model.reward_kwargs.overlong_buffer_cfg.", "reward_model.overlong_buffer."} {
		table = append(table,
			alias{name: at + "enable", def: "false", path: "grpo.soft_punish_cache", special: keepAs("overlong.enable")},
			alias{name: at + "len", def: "4096", path: "grpo.soft_punish_cache", special: keepAs("overlong.len")},
			alias{name: at + "penalty_factor", def: "1.0", refuse: "the punishment grows to 1: weigh the reward itself with reward.weight"},
			alias{name: at + "log", def: "false", ignore: "what is taken away is always logged"})
	}
	return table
}

func verlAlgorithm() []alias {
	return slices.Concat([]alias{
		{name: "algorithm.adv_estimator", def: "gae", path: "grpo.advantage", special: estimator},
		{name: "algorithm.norm_adv_by_std_in_grpo", def: "true", path: "grpo.scale_rewards", convert: choose("true=group", "false=none")},
		{name: "algorithm.use_kl_in_reward", def: "false", path: "grpo.kl_in_reward", special: keep},
		{name: "algorithm.kl_penalty", def: "kl", path: "grpo.kl_estimator", special: keep},
		{name: "algorithm.kl_ctrl.kl_coef", def: "0.001", path: "grpo.beta", special: keep},
		{name: "algorithm.kl_ctrl.type", def: "fixed", path: "nothing: grpo.beta does not change", convert: choose("fixed=")},
		{name: "algorithm.filter_groups.enable", def: "false", path: "grpo.dynamic_sampling"},
		{name: "algorithm.filter_groups.max_num_gen_batches", def: "0", path: "grpo.max_num_gen_batches", convert: otherwise(choose("0="))},
		{name: "algorithm.filter_groups.metric", def: "null", path: "nothing: groups are compared by reward", convert: choose("acc=", "score=", "reward=", "seq_reward=", "seq_final_reward=")},
		{name: "algorithm.gamma", def: "1.0", refuse: "a completion has one reward, at its end: remove it"},
		{name: "algorithm.use_pf_ppo", def: "false", refuse: "PF-PPO is not supported: remove it"},
		{name: "algorithm.rollout_correction" + below, ignore: ownSampler},
		{name: "algorithm.pf_ppo" + below, ignore: "only use_pf_ppo uses it"},
	},
		ignored("algorithm.", onlyGAE, "lam=1.0"),
		ignored("algorithm.", "only an adaptive kl_ctrl uses it", "kl_ctrl.horizon=10000", "kl_ctrl.target_kl=0.1"),
		ignored("algorithm.", exact, "filter_groups.max_inflight_gen_batches=1"),
	)
}

func verlTrainer() []alias {
	const rollouts = "every rollout is in completions/ and eval/ in the run's folder"
	return slices.Concat([]alias{
		{name: "trainer.total_epochs", def: "30", path: "optim.num_train_epochs"},
		{name: "trainer.total_training_steps", def: "null", path: "optim.max_steps", special: keep},
		{name: "trainer.save_freq", def: "-1", path: "checkpoint.save_steps", special: keep},
		{name: "trainer.test_freq", def: "-1", path: "eval.eval_steps", special: keep},
		{name: "trainer.val_before_train", def: "true", path: "eval.eval_on_start"},
		{name: "trainer.val_only", def: "false", refuse: "the command rubicon eval measures a model"},
		{name: "trainer.experiment_name", path: "run_name"},
		{name: "trainer.default_local_dir", path: "output_dir"},
		{name: "trainer.max_actor_ckpt_to_keep", def: "null", path: "checkpoint.save_total_limit"},
		{name: "trainer.resume_mode", def: "auto", path: "checkpoint.resume", special: keep},
		{name: "trainer.resume_from_path", def: "null", path: "checkpoint.resume", special: keep},
		{name: "trainer.device", def: "cuda", path: "device", convert: choose("cuda=", "cpu=cpu")},
		{name: "trainer.v1.trainer_mode", def: "sync", path: "nothing: sampling and training take turns", convert: choose("sync=")},
		{name: "trainer.v1" + below, ignore: exact},
		{name: "critic" + below, ignore: onlyGAE},
		{name: "ray_kwargs" + below, ignore: "there is no Ray"},
		{name: "ray_init" + below, ignore: "there is no Ray"},
		{name: "global_profiler" + below, ignore: exact},
		{name: "transfer_queue" + below, ignore: exact},
		{name: "trainer.logger", ignore: "metrics.jsonl is always written; see track.to"},
		{name: "trainer.project_name", path: "track.project"},
	},
		ignored("trainer.", ownLauncher, "nnodes=", "n_gpus_per_node="),
		ignored("trainer.", onlyGAE, "critic_warmup=0", "max_critic_ckpt_to_keep=null"),
		ignored("trainer.", rollouts, "log_val_generations=0", "rollout_data_dir=null", "validation_data_dir=null"),
		ignored("trainer.", "nothing is copied elsewhere, nor deleted", "default_hdfs_dir=null", "del_local_ckpt_after_load=false"),
		ignored("trainer.", "an interrupted run finishes its step and saves in any case", "esi_redundant_time=0"),
		ignored("trainer.", "there is no Ray", "ray_wait_register_center_timeout=300"),
		ignored("trainer.", exact, "balance_batch=true", "use_v1=true"),
	)
}

// estimator reads algorithm.adv_estimator.
func estimator(l *loader, a alias, n *yaml.Node, from string) error {
	ours := map[string]string{"grpo": "group", "grpo_vectorized": "group", "gdpo": "group", "rloo": "rloo", "rloo_vectorized": "rloo",
		"reinforce_plus_plus": "reinforce_pp", "reinforce_plus_plus_baseline": "reinforce_pp_baseline"}[n.Value]
	switch {
	case n.Value == "gae":
		return fmt.Errorf("is gae, which needs a critic, and there is none: set %s to grpo, or grpo.advantage", a.name)
	case ours == "":
		return fmt.Errorf("is %q, want one of grpo, rloo, reinforce_plus_plus, reinforce_plus_plus_baseline, gdpo", n.Value)
	case n.Value == "gdpo":
		f, _ := l.schema.field("grpo.multi_objective_aggregation")
		l.set(f, scalar("!!str", "normalize_then_sum"), a.name, from)
	}
	f, _ := l.schema.field("grpo.advantage")
	l.set(f, scalar("!!str", ours), a.name, from)
	return nil
}

// chooseOr is choose with an error of its own for any other value.
func chooseOr(help string, pairs ...string) func(*yaml.Node) (*yaml.Node, error) {
	convert := choose(pairs...)
	return func(n *yaml.Node) (*yaml.Node, error) {
		v, err := convert(n)
		if err != nil {
			return nil, fmt.Errorf("is %q: %s", n.Value, help)
		}
		return v, nil
	}
}
