package configs

const (
	noVLLM     = "the engine that trains also samples, there is no vLLM"
	exact      = "changes speed or memory there, never the numbers here"
	noMeaning  = "has no counterpart here and does not change the numbers"
	float32Say = "model.dtype says how weights are kept, model.compute_dtype how they are multiplied"
	noHub      = "nothing is uploaded: remove it and upload the run's folder yourself"
	ownInt4    = "model.dtype int4 has whole numbers with a scale and a minimum for every 32 weights"
)

// trlNames are the names that TRL 1.16's GRPOConfig adds to TrainingArguments.
func trlNames() []alias {
	return []alias{
		{name: "model_init_kwargs", def: "null", refuse: "set model.dtype and the other keys of model instead"},
		{name: "trust_remote_code", def: "false", ignore: "code in a model folder is never run"},
		{name: "router_aux_loss_coef", def: "null", refuse: "models with experts are not supported: remove it"},
		{name: "disable_dropout", def: "false", refuse: "set lora.dropout to 0, its default: the model itself has no dropout"},
		{name: "cast_lm_head_to_fp32", def: "false", ignore: "the head always computes in float32"},
		{name: "num_generations", def: "8", path: "grpo.num_generations"},
		{name: "num_generations_eval", def: "null", path: "eval.num_generations_eval"},
		{name: "max_completion_length", def: "512", path: "rollout.max_completion_length"},
		{name: "ds3_gather_for_generation", def: "true", ignore: exact},
		{name: "shuffle_dataset", def: "true", path: "data.shuffle"},
		{name: "pad_to_multiple_of", def: "auto", ignore: "there is no padding"},
		{name: "generation_batch_size", def: "null", path: "grpo.generation_batch_size"},
		{name: "steps_per_generation", def: "null", path: "grpo.steps_per_generation"},
		{name: "temperature", def: "1.0", path: "rollout.temperature"},
		{name: "top_p", def: "1.0", path: "rollout.top_p"},
		{name: "top_k", def: "0", path: "rollout.top_k"},
		{name: "min_p", def: "null", path: "rollout.min_p"},
		{name: "generation_kwargs", def: "null", refuse: "set the keys of rollout instead (stop_strings is rollout.stop)"},
		{name: "chat_template_kwargs", def: "null", path: "data.chat_template_kwargs"},
		{name: "repetition_penalty", def: "1.0", path: "rollout.repetition_penalty"},
		{name: "cache_implementation", def: "null", ignore: "the key/value cache is always exact"},
		{name: "use_vllm", def: "false", ignore: noVLLM},
		{name: "vllm_mode", def: "colocate", ignore: noVLLM},
		{name: "vllm_model_impl", def: "vllm", ignore: noVLLM},
		{name: "vllm_enable_sleep_mode", def: "false", ignore: noVLLM},
		{name: "vllm_structured_outputs_regex", def: "null", refuse: "sampling inside a pattern is not supported: remove it and let a reward check the form"},
		{name: "vllm_server_base_url", def: "null", ignore: noVLLM},
		{name: "vllm_server_host", def: "0.0.0.0", ignore: noVLLM},
		{name: "vllm_server_port", def: "8000", ignore: noVLLM},
		{name: "vllm_server_timeout", def: "240.0", ignore: noVLLM},
		{name: "vllm_group_port", def: "51216", ignore: noVLLM},
		{name: "vllm_gpu_memory_utilization", def: "0.3", ignore: noVLLM},
		{name: "vllm_max_model_length", def: "null", ignore: noVLLM},
		{name: "vllm_tensor_parallel_size", def: "1", ignore: noVLLM},
		{name: "beta", def: "0.0", path: "grpo.beta"},
		{name: "num_iterations", def: "1", path: "grpo.num_iterations"},
		{name: "epsilon", def: "0.2", path: "grpo.epsilon"},
		{name: "delta", def: "null", path: "grpo.delta"},
		{name: "epsilon_high", def: "null", path: "grpo.epsilon_high"},
		{name: "sapo_temperature_neg", def: "1.05", path: "grpo.sapo_temperature_neg"},
		{name: "sapo_temperature_pos", def: "1.0", path: "grpo.sapo_temperature_pos"},
		{name: "vespo_k_pos", def: "2.0", path: "grpo.vespo_k_pos"},
		{name: "vespo_lambda_pos", def: "3.0", path: "grpo.vespo_lambda_pos"},
		{name: "vespo_k_neg", def: "3.0", path: "grpo.vespo_k_neg"},
		{name: "vespo_lambda_neg", def: "2.0", path: "grpo.vespo_lambda_neg"},
		{name: "importance_sampling_level", def: "token", path: "grpo.importance_sampling_level"},
		{name: "reward_weights", def: "null", path: "reward.weight or the weights of reward.parts", special: (*loader).rewardWeights},
		{name: "multi_objective_aggregation", def: "sum_then_normalize", path: "grpo.multi_objective_aggregation"},
		{name: "scale_rewards", def: "group", path: "grpo.scale_rewards", convert: otherwise(choose("true=group", "false=none"))},
		{name: "loss_type", def: "dapo", path: "grpo.loss_type"},
		{name: "mask_truncated_completions", def: "false", path: "grpo.mask_truncated_completions"},
		{name: "sync_ref_model", def: "false", refuse: "a reference that follows the policy is not supported: set grpo.reference"},
		{name: "ref_model_mixup_alpha", def: "0.6", ignore: "only sync_ref_model uses it"},
		{name: "ref_model_sync_steps", def: "512", ignore: "only sync_ref_model uses it"},
		{name: "top_entropy_quantile", def: "1.0", path: "grpo.top_entropy_quantile"},
		{name: "entropy_coef", def: "0.0", path: "grpo.entropy_coef"},
		{name: "use_adaptive_entropy", def: "false", path: "grpo.use_adaptive_entropy"},
		{name: "entropy_coef_min", def: "0.0", path: "grpo.entropy_coef_min"},
		{name: "entropy_coef_max", def: "1.0", path: "grpo.entropy_coef_max"},
		{name: "entropy_coef_delta", def: "0.005", path: "grpo.entropy_coef_delta"},
		{name: "entropy_target", def: "0.2", path: "grpo.entropy_target"},
		{name: "max_tool_calling_iterations", def: "null", refuse: "tools are not supported: remove it"},
		{name: "vllm_importance_sampling_correction", def: "true", path: "grpo.importance_sampling_correction"},
		{name: "vllm_importance_sampling_mode", def: "sequence_mask", path: "grpo.importance_sampling_mode"},
		{name: "vllm_importance_sampling_clip_max", def: "3.0", path: "grpo.importance_sampling_clip_max"},
		{name: "vllm_importance_sampling_clip_min", def: "null", path: "grpo.importance_sampling_clip_min"},
		{name: "off_policy_mask_threshold", def: "null", path: "grpo.off_policy_mask_threshold"},
		{name: "use_bias_correction_kl", def: "true", path: "grpo.use_bias_correction_kl"},
		{name: "log_completions", def: "false", path: "track.log_completions"},
		{name: "log_multimodal", def: "true", ignore: "there is only text"},
		{name: "num_completions_to_print", def: "null", path: "track.num_completions_to_print"},
		{name: "log_unique_prompts", def: "false", path: "track.log_unique_prompts"},
		{name: "log_completions_hub_repo", def: "null", refuse: noHub},
		{name: "use_transformers_continuous_batching", def: "false", ignore: "sampling is always batched continuously"},
		{name: "transformers_continuous_batching_config", def: "null", ignore: "sampling is always batched continuously; see rollout.max_batch"},
		{name: "use_transformers_paged", def: "false", ignore: "sampling is always batched continuously"},
		{name: "vllm_importance_sampling_cap", def: "null", path: "grpo.importance_sampling_clip_max"},
		{name: "max_prompt_length", def: "null", path: "data.max_prompt_length"}, // until TRL 0.26
	}
}

// trainingNames are the names of transformers' TrainingArguments, with TRL's defaults.
func trainingNames() []alias {
	return append(lengthNames(), machineNames()...)
}

// lengthNames are those of the run: its length, optimiser, logs, checkpoints and evaluation.
func lengthNames() []alias {
	return []alias{
		{name: "output_dir", def: "null", path: "output_dir"},
		{name: "run_name", def: "null", path: "run_name"},
		{name: "seed", def: "42", path: "seed"},
		{name: "data_seed", def: "null", path: "data.seed"},
		{name: "per_device_train_batch_size", def: "8", path: "optim.per_device_train_batch_size"},
		{name: "gradient_accumulation_steps", def: "1", path: "optim.gradient_accumulation_steps"},
		{name: "num_train_epochs", def: "3.0", path: "optim.num_train_epochs"},
		{name: "max_steps", def: "-1", path: "optim.max_steps"},
		{name: "learning_rate", def: "1e-06", path: "optim.learning_rate"},
		{name: "lr_scheduler_type", def: "linear", path: "optim.lr_scheduler_type"},
		{name: "lr_scheduler_kwargs", def: "null", path: "optim.lr_scheduler_kwargs"},
		{name: "warmup_steps", def: "0", path: "optim.warmup_steps"},
		{name: "optim", def: "adamw_torch_fused", path: "nothing: the optimiser is AdamW", convert: choose(
			"adamw_torch_fused=", "adamw_torch=", "adamw_hf=", "adamw_apex_fused=", "adamw_torch_xla=", "adamw_torch_npu_fused=", "adamw=")},
		{name: "optim_args", def: "null", refuse: "set the keys of optim instead"},
		{name: "optim_target_modules", def: "null", refuse: "the optimiser is AdamW on everything that learns: remove it"},
		{name: "weight_decay", def: "0.0", path: "optim.weight_decay"},
		{name: "adam_beta1", def: "0.9", path: "optim.adam_beta1"},
		{name: "adam_beta2", def: "0.999", path: "optim.adam_beta2"},
		{name: "adam_epsilon", def: "1e-08", path: "optim.adam_epsilon"},
		{name: "max_grad_norm", def: "1.0", path: "optim.max_grad_norm"},
		{name: "label_smoothing_factor", def: "0.0", refuse: "smoothed labels are not supported: remove it"},
		{name: "neftune_noise_alpha", def: "null", refuse: "noise on embeddings is not supported: remove it"},
		{name: "average_tokens_across_devices", def: "true", ignore: "denominators always count the tokens of all processes"},
		{name: "gradient_checkpointing", def: "true", path: "model.gradient_checkpointing"},
		{name: "gradient_checkpointing_kwargs", def: "null", ignore: noMeaning},
		{name: "activation_checkpointing", def: "null", path: "model.gradient_checkpointing"},
		{name: "activation_checkpointing_kwargs", def: "null", ignore: noMeaning},
		{name: "auto_find_batch_size", def: "false", refuse: "it would change the batch: set data.train_batch_size or optim.per_device_train_batch_size"},

		{name: "logging_strategy", def: "steps", path: "track.logging_steps", special: strategy("track.logging_steps")},
		{name: "logging_steps", def: "10", path: "track.logging_steps"},
		{name: "logging_first_step", def: "false", path: "track.logging_first_step"},
		{name: "log_on_each_node", def: "true", ignore: noMeaning},
		{name: "logging_nan_inf_filter", def: "true", ignore: "a step that is not finite changes nothing and is reported; see optim.max_bad_steps"},
		{name: "include_num_input_tokens_seen", def: "no", ignore: "num_tokens is always logged"},
		{name: "log_level", def: "passive", ignore: noMeaning},
		{name: "log_level_replica", def: "warning", ignore: noMeaning},
		{name: "disable_tqdm", def: "null", path: "track.progress", convert: choose("true=plain", "false=auto")},
		{name: "report_to", def: "none", path: "track.to", convert: reportTo},
		{name: "project", def: "huggingface", ignore: "only trackio uses it; see track.project"},
		{name: "trackio_space_id", def: "null", ignore: "only trackio uses it"},
		{name: "trackio_bucket_id", def: "null", ignore: "only trackio uses it"},
		{name: "trackio_static_space_id", def: "null", ignore: "only trackio uses it"},

		{name: "eval_strategy", def: "no", path: "eval.eval_steps", special: strategy("eval.eval_steps")},
		{name: "eval_steps", def: "null", path: "eval.eval_steps"},
		{name: "eval_delay", def: "0", refuse: "evaluations begin with the run: remove it, or set eval.eval_steps"},
		{name: "per_device_eval_batch_size", def: "8", ignore: "results do not depend on it; see rollout.max_batch"},
		{name: "prediction_loss_only", def: "false", ignore: noMeaning},
		{name: "eval_on_start", def: "false", path: "eval.eval_on_start"},
		{name: "eval_do_concat_batches", def: "true", ignore: noMeaning},
		{name: "eval_use_gather_object", def: "false", ignore: noMeaning},
		{name: "eval_accumulation_steps", def: "null", ignore: exact},
		{name: "include_for_metrics", def: "[]", ignore: noMeaning},
		{name: "batch_eval_metrics", def: "false", ignore: noMeaning},

		{name: "save_strategy", def: "steps", path: "checkpoint.save_steps", special: strategy("checkpoint.save_steps")},
		{name: "save_steps", def: "500", path: "checkpoint.save_steps"},
		{name: "save_total_limit", def: "null", path: "checkpoint.save_total_limit"},
		{name: "save_only_model", def: "false", path: "checkpoint.save_only_model"},
		{name: "save_on_each_node", def: "false", ignore: noMeaning},
		{name: "enable_jit_checkpoint", def: "false", ignore: "an interrupted run finishes its step and saves in any case"},
		{name: "load_best_model_at_end", def: "false", ignore: "the best checkpoint is kept by checkpoint.metric_for_best_model and named at the end of the run"},
		{name: "metric_for_best_model", def: "null", path: "checkpoint.metric_for_best_model"},
		{name: "greater_is_better", def: "null", path: "checkpoint.greater_is_better"},
		{name: "resume_from_checkpoint", def: "null", path: "checkpoint.resume", convert: otherwise(choose("true=newest", "false="))},
		{name: "ignore_data_skip", def: "false", refuse: "a resumed run always goes on where its data was: remove it"},
		{name: "restore_callback_states_from_checkpoint", def: "false", ignore: "a checkpoint holds, and a resumed run restores, everything"},
	}
}

// machineNames are those of machines, data loading and uploads.
func machineNames() []alias {
	table := []alias{
		{name: "bf16", def: "null", path: "model.compute_dtype", convert: choose("true=bfloat16", "false=float32")},
		{name: "fp16", def: "false", ignore: float32Say},
		{name: "bf16_full_eval", def: "false", ignore: float32Say},
		{name: "fp16_full_eval", def: "false", ignore: float32Say},
		{name: "tf32", def: "null", ignore: float32Say},
		{name: "torch_compile", def: "false", ignore: exact},
		{name: "torch_compile_backend", def: "null", ignore: exact},
		{name: "torch_compile_mode", def: "null", ignore: exact},
		{name: "use_liger_kernel", def: "false", ignore: exact},
		{name: "liger_kernel_config", def: "null", ignore: exact},
		{name: "use_cache", def: "false", ignore: exact},
		{name: "torch_empty_cache_steps", def: "null", ignore: exact},
		{name: "full_determinism", def: "false", ignore: "a run is always deterministic"},
		{name: "use_cpu", def: "false", path: "device", convert: choose("true=cpu", "false=")},
		{name: "accelerator_config", def: "null", refuse: "it can change how batches are split: remove it"},
		{name: "parallelism_config", def: "null", refuse: "models are not split over devices: remove it"},
		{name: "fsdp", def: "null", ignore: "weights are not sharded"},
		{name: "fsdp_config", def: "null", ignore: "weights are not sharded"},
		{name: "deepspeed", def: "null", ignore: "weights are not sharded"},
		{name: "local_rank", def: "-1", ignore: "it is taken from the launcher's environment"},
		{name: "ddp_timeout", def: "1800", ignore: exact},
		{name: "debug", def: "", ignore: noMeaning},
		{name: "skip_memory_metrics", def: "true", ignore: "memory is always measured"},
		{name: "do_train", def: "false", ignore: "the command says what is done"},
		{name: "do_eval", def: "false", ignore: "the command says what is done; see eval"},
		{name: "do_predict", def: "false", ignore: "the command says what is done"},
		{name: "remove_unused_columns", def: "false", refuse: "rewards see all columns: remove it"},
		{name: "label_names", def: "null", ignore: noMeaning},
		{name: "train_sampling_strategy", def: "random", refuse: "set data.shuffle to false for the files' order, or remove it"},
		{name: "length_column_name", def: "length", ignore: noMeaning},
		{name: "dataloader_drop_last", def: "false", ignore: "an incomplete batch of prompts is always dropped, as in GRPOTrainer"},
		{name: "dataloader_pin_memory", def: "true", ignore: exact},
		{name: "dataloader_in_order", def: "true", ignore: exact},
		{name: "dataloader_num_workers", def: "0", ignore: exact},
		{name: "dataloader_persistent_workers", def: "false", ignore: exact},
		{name: "push_to_hub", def: "false", refuse: noHub},
		{name: "hub_always_push", def: "false", ignore: "only push_to_hub uses it"},
		{name: "hub_strategy", def: "every_save", ignore: "only push_to_hub uses it"},
	}
	for _, name := range []string{"hub_token", "hub_private_repo", "hub_model_id", "hub_revision"} {
		table = append(table, alias{name: name, def: "null", ignore: "only push_to_hub uses it"})
	}
	for _, name := range []string{"dataloader_prefetch_factor", "dataloader_multiprocessing_context", "ddp_find_unused_parameters",
		"ddp_bucket_cap_mb", "ddp_broadcast_buffers", "ddp_static_graph", "ddp_backend"} {
		table = append(table, alias{name: name, def: "null", ignore: exact})
	}
	return table
}

// modelNames are the names of TRL's ModelConfig and of the arguments of its scripts.
func modelNames() []alias {
	return []alias{
		{name: "model_name_or_path", def: "null", path: "model.path"},
		{name: "model_revision", def: "main", refuse: "a model is read from a folder as it is: remove it and give the folder of that revision"},
		{name: "dtype", def: "float32", path: "model.dtype"},
		{name: "torch_dtype", def: "float32", path: "model.dtype"},
		{name: "attn_implementation", def: "null", ignore: exact},
		{name: "use_peft", def: "false", path: "model.trainable", convert: choose("true=lora", "false=full")},
		{name: "lora_r", def: "16", path: "lora.r"},
		{name: "lora_alpha", def: "32", path: "lora.alpha"},
		{name: "lora_dropout", def: "0.05", path: "lora.dropout"},
		{name: "lora_target_modules", def: "null", path: "lora.target_modules"},
		{name: "lora_target_parameters", def: "null", refuse: "adapters are on linear layers only: set lora.target_modules"},
		{name: "lora_modules_to_save", def: "null", refuse: "beside the adapter everything is frozen: remove it, or set model.trainable to full"},
		{name: "lora_task_type", def: "CAUSAL_LM", refuse: "only CAUSAL_LM is supported: remove it"},
		{name: "use_rslora", def: "false", path: "lora.rslora"},
		{name: "use_dora", def: "false", refuse: "DoRA is not supported: remove it"},
		{name: "load_in_8bit", def: "false", path: "model.dtype", convert: choose("true=int8", "false=")},
		{name: "load_in_4bit", def: "false", path: "model.dtype", convert: choose("true=int4", "false=")},
		{name: "bnb_4bit_quant_type", def: "nf4", ignore: ownInt4},
		{name: "use_bnb_nested_quant", def: "false", ignore: ownInt4},
		{name: "bnb_4bit_quant_storage", def: "null", ignore: ownInt4},
		{name: "dataset_name", def: "null", refuse: "give the files: data.train_files, eval.files"},
		{name: "reward_funcs", def: "null", refuse: "set reward.kind, or reward.kind to mix and reward.parts"},
	}
}

// sftNames are names of TRL's SFTConfig that GRPOConfig lacks, and an old one that many files still have.
func sftNames() []alias {
	return []alias{
		{name: "max_length", def: "1024", path: "data.max_length"},
		{name: "packing", def: "false", path: "data.packing"},
		{name: "completion_only_loss", def: "null", path: "nothing: with prompt and completion, loss is on the completion", convert: choose("true=")},
		{name: "assistant_only_loss", def: "null", path: "nothing: in a conversation, loss is on all assistant messages", convert: choose("true=")},
		{name: "warmup_ratio", def: "0.0", path: "optim.warmup_steps"},
	}
}
