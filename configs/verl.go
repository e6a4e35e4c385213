package configs

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	onlyGAE     = "only an estimator with a critic uses it, and there is none"
	noShards    = "weights are not sharded"
	ownSampler  = "the sampler's probabilities are the trainer's, there is nothing to correct"
	ownLauncher = "the launcher decides how many processes there are"
	onlyText    = "there is only text"
	useEnv      = "set env.kind and env.options (docs/environments.md)"
	useReward   = "a Python function is a reward of kind exec (docs/coming-from-verl.md shows how)"
	useServer   = "serve the reward model and set reward.kind to http"
)

// verlNames are the names of verl's main_ppo, with the defaults of its ppo_trainer.yaml. Loading does not take those defaults over:
// only what is written counts. Defaults that name files or machines are left out.
func verlNames() []alias {
	return slices.Concat(verlActor(), verlOptim(), verlRollout(), verlModel(), verlData(), verlReward(), verlAlgorithm(), verlTrainer())
}

// ignored are names below prefix, each with its default ("name=default"), that have no effect here for one reason.
func ignored(prefix, why string, names ...string) []alias {
	var table []alias
	for _, x := range names {
		name, def, _ := strings.Cut(x, "=")
		table = append(table, alias{name: prefix + name, def: def, ignore: why})
	}
	return table
}

func verlActor() []alias {
	const at = "actor_rollout_ref.actor."
	return slices.Concat([]alias{
		{name: at + "ppo_mini_batch_size", def: "256", path: "optim.gradient_accumulation_steps", special: keep},
		{name: at + "ppo_micro_batch_size_per_gpu", def: "null", path: "optim.per_device_train_batch_size"},
		{name: at + "ppo_micro_batch_size", def: "null", refuse: "it counts over all GPUs: set actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"},
		{name: at + "ppo_epochs", def: "1", path: "grpo.num_iterations"},
		{name: at + "clip_ratio", def: "0.2", path: "grpo.epsilon", special: keep},
		{name: at + "clip_ratio_low", def: "0.2", path: "grpo.epsilon", special: keep},
		{name: at + "clip_ratio_high", def: "0.2", path: "grpo.epsilon_high"},
		{name: at + "clip_ratio_c", def: "3.0", path: "grpo.delta"},
		{name: at + "tau_pos", def: "1.0", path: "grpo.sapo_temperature_pos"},
		{name: at + "tau_neg", def: "1.05", path: "grpo.sapo_temperature_neg"},
		{name: at + "loss_agg_mode", def: "token-mean", path: "grpo.loss_type", special: keep},
		{name: at + "policy_loss.loss_mode", def: "vanilla", path: "grpo.loss_type and grpo.importance_sampling_level", special: keep},
		{name: at + "loss_scale_factor", def: "null", refuse: "dr_grpo divides by rollout.max_completion_length: remove it"},
		{name: at + "entropy_coeff", def: "0", path: "grpo.entropy_coef"},
		{name: at + "use_kl_loss", def: "false", path: "grpo.beta", special: keep},
		{name: at + "kl_loss_coef", def: "0.001", path: "grpo.beta", special: keep},
		{name: at + "kl_loss_type", def: "low_var_kl", path: "grpo.kl_estimator", special: keep},
		{name: at + "grad_clip", def: "1.0", path: "optim.max_grad_norm", special: keep},
		{name: at + "fsdp_config.dtype", def: "bfloat16", path: "model.compute_dtype", convert: choose("bfloat16=bfloat16", "bf16=bfloat16", "float32=float32", "fp32=float32")},
		{name: at + "fsdp_config.model_dtype", def: "fp32", ignore: float32Say},
		{name: at + "fsdp_config" + below, ignore: noShards},
		{name: at + "megatron" + below, ignore: noShards},
		{name: at + "profiler" + below, ignore: exact},
	},
		ignored(at, "a generation is always shuffled before it is cut into batches, as in TRL", "shuffle=false", "data_loader_seed=42"),
		ignored(at, "passes are counted in completions", "use_dynamic_bsz=false", "ppo_max_token_len_per_gpu=16384"),
		ignored(at, "entropy is always logged", "calculate_entropy=false"),
		ignored(at, "there is no padding", "use_remove_padding=", "pad_to_length=false"),
		ignored(at, onlyText, "freeze_vision_tower=false"),
		ignored(at, "actor_rollout_ref.rollout.n counts", "rollout_n="),
		ignored(at, noShards, "strategy=fsdp", "ulysses_sequence_parallel_size=1"),
		ignored(at, exact, "use_prefix_grouper=false", "use_torch_compile=true", "use_fused_kernels=", "entropy_from_logits_with_chunking=false",
			"entropy_from_logits_chunk_size=2048", "entropy_checkpointing=false"),
		ignored(at, noMeaning, "calculate_sum_pi_squared=false"),
		ignored(at+"policy_loss.", "only a loss_mode that is refused uses it", "clip_cov_ratio=0.0002", "clip_cov_lb=1.0", "clip_cov_ub=5.0",
			"kl_cov_ratio=0.0002", "ppo_kl_coef=0.1", "dro_beta=null"),
		ignored(at+"checkpoint.", "a checkpoint holds everything, of an adapter only the adapter; see checkpoint.save_only_model",
			"save_contents=['model', 'optimizer', 'extra']", "load_contents=${.save_contents}", "save_lora_only=false", "async_save=false", "strict=true"),
		ignored("actor_rollout_ref.", "the reference is the run's own model, see grpo.reference", "ref"+below),
		ignored("actor_rollout_ref.", noMeaning, "hybrid_engine=true", "nccl_timeout=600"),
	)
}

func verlOptim() []alias {
	const at = "actor_rollout_ref.actor.optim."
	return slices.Concat([]alias{
		{name: at + "optimizer", def: "AdamW", path: "nothing: the optimiser is AdamW", convert: choose("AdamW=")},
		{name: at + "optimizer_impl", def: "torch.optim", path: "nothing: the optimiser is AdamW", convert: choose("torch.optim=")},
		{name: at + "override_optimizer_config", def: "null", refuse: "set the keys of optim instead"},
		{name: at + "lr", def: "1e-06", path: "optim.learning_rate"},
		{name: at + "lr_warmup_steps", def: "-1", path: "optim.warmup_steps", special: keep},
		{name: at + "lr_warmup_steps_ratio", def: "0.0", path: "optim.warmup_steps", special: keep},
		{name: at + "lr_scheduler_type", def: "constant", path: "optim.lr_scheduler_type", special: keep},
		{name: at + "warmup_style", def: "null", path: "optim.lr_scheduler_type", special: keep},
		{name: at + "min_lr_ratio", def: "0.0", path: "optim.lr_scheduler_kwargs.min_lr_rate", special: keep},
		{name: at + "num_cycles", def: "0.5", path: "optim.lr_scheduler_kwargs.num_cycles", special: keep},
		{name: at + "total_training_steps", def: "-1", refuse: "the learning rate's course ends with the run: remove it, or set trainer.total_training_steps"},
		{name: at + "zero_indexed_step", def: "true", refuse: "the first step always has the rate of step 0, as in transformers: remove it"},
		{name: at + "weight_decay", def: "0.01", path: "optim.weight_decay"},
		{name: at + "betas", def: "[0.9, 0.999]", path: "optim.adam_beta1 and optim.adam_beta2", special: betas},
		{name: at + "clip_grad", def: "1.0", path: "optim.max_grad_norm", special: keep},
	})
}

func verlRollout() []alias {
	const at = "actor_rollout_ref.rollout."
	off := otherwise(choose("-1=0"))
	return slices.Concat([]alias{
		{name: "rollout.n", def: "1", path: "grpo.num_generations"},
		{name: at + "n", def: "1", path: "grpo.num_generations"},
		{name: at + "temperature", def: "1.0", path: "rollout.temperature"},
		{name: at + "top_p", def: "1", path: "rollout.top_p"},
		{name: at + "top_k", def: "-1", path: "rollout.top_k", convert: off},
		{name: at + "response_length", path: "rollout.max_completion_length", special: keep},
		{name: at + "max_num_seqs", path: "rollout.max_batch"},
		{name: at + "do_sample", def: "true", refuse: "training always samples: remove it"},
		{name: at + "ignore_eos", def: "false", refuse: "a completion ends at the model's end token: remove it"},
		{name: at + "quantization", def: "null", refuse: "the model that trains also samples: set model.dtype"},
		{name: at + "val_kwargs.top_k", def: "-1", path: "eval.top_k", convert: off},
		{name: at + "val_kwargs.top_p", def: "1.0", path: "eval.top_p"},
		{name: at + "val_kwargs.temperature", def: "0", path: "eval.temperature", special: keep},
		{name: at + "val_kwargs.n", def: "1", path: "eval.num_generations_eval"},
		{name: at + "val_kwargs.do_sample", def: "false", path: "eval.temperature, 0 if false", special: keep},
		{name: at + "multi_turn.enable", def: "false", refuse: useEnv},
		{name: at + "multi_turn" + below, ignore: "only multi_turn.enable uses it"},
		{name: at + "agent.agent_loop_config_path", def: "null", refuse: useEnv},
		{name: at + "agent.custom_async_server.path", def: "null", ignore: noVLLM},
		{name: at + "agent.custom_async_server.name", def: "null", ignore: noVLLM},
		{name: at + "agent.num_workers", def: "8", ignore: exact},
		{name: at + "agent.default_agent_loop", def: "single_turn_agent", path: "nothing: without env.kind a completion is one turn", convert: choose("single_turn_agent=")},
		{name: at + "checkpoint_engine" + below, ignore: "weights are never copied to a sampler"},
		{name: at + "trace" + below, ignore: "every rollout is in completions/ in the run's folder"},
		{name: at + "engine_kwargs" + below, ignore: noVLLM},
	},
		ignored(at, "data.max_prompt_length counts", "prompt_length="),
		ignored(at, "everything follows from seed", "seed=42", "full_determinism=false"),
		ignored(at, "the sampler's probabilities are always kept", "calculate_log_probs=true", "logprobs_mode=processed_logprobs"),
		ignored(at, noVLLM, "name=", "mode=async", "nnodes=0", "n_gpus_per_node=", "dtype=bfloat16", "gpu_memory_utilization=0.5", "enforce_eager=false",
			"free_cache_engine=true", "tensor_model_parallel_size=2", "data_parallel_size=1", "expert_parallel_size=1",
			"pipeline_model_parallel_size=1", "max_num_batched_tokens=8192", "max_model_len=null", "enable_chunked_prefill=true",
			"enable_prefix_caching=true", "scheduling_policy=fcfs", "load_format=dummy", "layered_summon=false", "disable_log_stats=true",
			"over_sample_rate=0", "multi_stage_wake_up=false", "skip_tokenizer_init=true", "enable_rollout_routing_replay=false",
			"moe_load_balance_metrics_interval=0", "quantization_config_file=null"),
		ignored(at, exact, "log_prob_micro_batch_size=null", "log_prob_micro_batch_size_per_gpu=null", "log_prob_use_dynamic_bsz=",
			"log_prob_max_token_len_per_gpu="),
	)
}

func verlModel() []alias {
	const at = "actor_rollout_ref.model."
	return slices.Concat([]alias{
		{name: at + "path", path: "model.path"},
		{name: at + "lora_rank", def: "0", path: "lora.r, or model.trainable if 0", special: loraRank},
		{name: at + "lora_alpha", def: "16", path: "lora.alpha"},
		{name: at + "target_modules", def: "all-linear", path: "lora.target_modules"},
		{name: at + "exclude_modules", def: "null", refuse: "name the layers that get an adapter in lora.target_modules"},
		{name: at + "lora_adapter_path", def: "null", path: "model.adapter"},
		{name: at + "enable_gradient_checkpointing", def: "true", path: "model.gradient_checkpointing"},
		{name: at + "trust_remote_code", def: "false", ignore: "code in a model folder is never run"},
		{name: at + "hf_config_path", def: "null", refuse: "config.json is read from the model's folder: put it there"},
		{name: at + "tokenizer_path", def: "null", refuse: "the tokenizer is read from the model's folder: put it there"},
		{name: at + "custom_chat_template", def: "null", refuse: "write it into the model's tokenizer_config.json as chat_template"},
		{name: at + "override_config", def: "{}", refuse: "the model's shape is its config.json: change it there"},
		{name: at + "lora.rank", def: "0", refuse: "it is for verl's Megatron backend: set actor_rollout_ref.model.lora_rank, which means lora.r"},
		{name: at + "lora" + below, ignore: "it is for verl's Megatron backend; lora_rank, lora_alpha and target_modules count"},
		{name: at + "fused_kernel_options" + below, ignore: exact},
		{name: at + "tiled_mlp" + below, ignore: exact},
	},
		ignored(at, "code in a model folder is never run", "external_lib=null"),
		ignored(at, exact, "use_shm=false", "enable_activation_offload=false", "use_liger=false", "use_fused_kernels=false"),
		ignored(at, "there is no padding", "use_remove_padding=true"),
	)
}

// loraRank reads a rank of which 0 is full training.
func loraRank(l *loader, a alias, n *yaml.Node, from string) error {
	v, err := decode(n, reflect.TypeFor[int]())
	if err != nil {
		return err
	}
	path, value := "lora.r", n
	if v.Int() == 0 {
		path, value = "model.trainable", scalar("!!str", "full")
	}
	f, _ := l.schema.field(path)
	l.set(f, value, a.name, from)
	return nil
}

// betas reads AdamW's two memories from one list.
func betas(l *loader, a alias, n *yaml.Node, from string) error {
	v, err := decode(n, reflect.TypeFor[[]float64]())
	if err != nil {
		return err
	}
	if v.Len() != 2 {
		return errors.New("wants two numbers")
	}
	for i, path := range []string{"optim.adam_beta1", "optim.adam_beta2"} {
		f, _ := l.schema.field(path)
		l.set(f, toNode(v.Index(i)), a.name, from)
	}
	return nil
}
