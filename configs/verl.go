package configs

import (
	"reflect"

	"go.yaml.in/yaml/v3"
)

// verlNames are names of verl that have a clear equal. Their defaults are not taken over: only what is written counts.
func verlNames() []alias {
	table := []alias{
		{name: "data.max_response_length", path: "rollout.max_completion_length"},
		{name: "data.val_files", path: "eval.files"},
		{name: "data.prompt_key", path: "data.prompt_column"},
		{name: "data.truncation", path: "nothing: prompts are never cut", convert: choose("error=")},
		{name: "data.filter_overlong_prompts", path: "data.on_long_prompt", convert: choose("true=skip", "false=fail")},

		{name: "rollout.n", path: "grpo.num_generations"},
		{name: "actor_rollout_ref.rollout.n", path: "grpo.num_generations"},
		{name: "actor_rollout_ref.rollout.temperature", path: "rollout.temperature"},
		{name: "actor_rollout_ref.rollout.top_p", path: "rollout.top_p"},
		{name: "actor_rollout_ref.rollout.top_k", path: "rollout.top_k", convert: otherwise(choose("-1=0"))},
		{name: "actor_rollout_ref.rollout.response_length", path: "rollout.max_completion_length"},
		{name: "actor_rollout_ref.rollout.max_num_seqs", path: "rollout.max_batch"},

		{name: "actor_rollout_ref.model.path", path: "model.path"},
		{name: "actor_rollout_ref.model.lora_rank", path: "lora.r, or model.trainable if 0", special: loraRank},
		{name: "actor_rollout_ref.model.lora_alpha", path: "lora.alpha"},
		{name: "actor_rollout_ref.model.target_modules", path: "lora.target_modules"},
		{name: "actor_rollout_ref.model.lora_adapter_path", path: "model.adapter"},
		{name: "actor_rollout_ref.model.enable_gradient_checkpointing", path: "model.gradient_checkpointing"},

		{name: "actor_rollout_ref.actor.optim.lr", path: "optim.learning_rate"},
		{name: "actor_rollout_ref.actor.optim.weight_decay", path: "optim.weight_decay"},
		{name: "actor_rollout_ref.actor.optim.lr_scheduler_type", path: "optim.lr_scheduler_type"},
		{name: "actor_rollout_ref.actor.optim.lr_warmup_steps", path: "optim.warmup_steps", convert: otherwise(choose("-1="))},
		{name: "actor_rollout_ref.actor.grad_clip", path: "optim.max_grad_norm"},
		{name: "actor_rollout_ref.actor.ppo_epochs", path: "grpo.num_iterations"},
		{name: "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", path: "optim.per_device_train_batch_size"},
		{name: "actor_rollout_ref.actor.ppo_mini_batch_size", refuse: "it counts prompts: set optim.gradient_accumulation_steps, which counts backward passes"},
		{name: "actor_rollout_ref.actor.clip_ratio", path: "grpo.epsilon"},
		{name: "actor_rollout_ref.actor.clip_ratio_low", path: "grpo.epsilon"},
		{name: "actor_rollout_ref.actor.clip_ratio_high", path: "grpo.epsilon_high"},
		{name: "actor_rollout_ref.actor.clip_ratio_c", path: "grpo.delta"},
		{name: "actor_rollout_ref.actor.entropy_coeff", path: "grpo.entropy_coef"},
		{name: "actor_rollout_ref.actor.use_kl_loss", refuse: "set grpo.beta: 0 is no KL term"},
		{name: "actor_rollout_ref.actor.kl_loss_coef", refuse: "set grpo.beta: 0 is no KL term"},
		{name: "actor_rollout_ref.actor.kl_loss_type", path: "grpo.kl_estimator"},
		{name: "actor_rollout_ref.actor.loss_agg_mode", path: "grpo.loss_type",
			convert: choose("token-mean=dapo", "seq-mean-token-mean=grpo", "seq-mean-token-sum-norm=dr_grpo")},

		{name: "algorithm.adv_estimator", path: "grpo.advantage", convert: choose("grpo=group", "rloo=rloo",
			"reinforce_plus_plus=reinforce_pp", "reinforce_plus_plus_baseline=reinforce_pp_baseline")},
		{name: "algorithm.norm_adv_by_std_in_grpo", path: "grpo.scale_rewards", convert: choose("true=group", "false=none")},
		{name: "algorithm.use_kl_in_reward", path: "grpo.kl_in_reward"},
		{name: "algorithm.filter_groups.enable", path: "grpo.dynamic_sampling"},
		{name: "algorithm.filter_groups.max_num_gen_batches", path: "grpo.max_num_gen_batches"},

		{name: "trainer.total_epochs", path: "optim.num_train_epochs"},
		{name: "trainer.total_training_steps", path: "optim.max_steps"},
		{name: "trainer.save_freq", path: "checkpoint.save_steps", convert: otherwise(choose("-1=0"))},
		{name: "trainer.test_freq", path: "eval.eval_steps", convert: otherwise(choose("-1=0"))},
		{name: "trainer.val_before_train", path: "eval.eval_on_start"},
		{name: "trainer.experiment_name", path: "run_name"},
		{name: "trainer.default_local_dir", path: "output_dir"},
		{name: "trainer.resume_mode", path: "checkpoint.resume", convert: choose("auto=auto", "disable=")},
		{name: "trainer.logger", ignore: "metrics.jsonl is always written; see track.to"},
		{name: "trainer.project_name", path: "track.project"},
	}
	for _, name := range []string{"trainer.nnodes", "trainer.n_gpus_per_node"} {
		table = append(table, alias{name: name, ignore: "the launcher decides how many processes there are"})
	}
	for _, name := range []string{"name", "gpu_memory_utilization", "tensor_model_parallel_size"} {
		table = append(table, alias{name: "actor_rollout_ref.rollout." + name, ignore: noVLLM})
	}
	return table
}

// loraRank reads verl's lora_rank, where 0 is full training.
func loraRank(l *loader, n *yaml.Node, from string) error {
	v, err := decode(n, reflect.TypeFor[int]())
	if err != nil {
		return err
	}
	path, value := "lora.r", n
	if v.Int() == 0 {
		path, value = "model.trainable", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "full"}
	}
	f, _ := l.schema.field(path)
	l.set(f, value, "actor_rollout_ref.model.lora_rank", from)
	return nil
}
