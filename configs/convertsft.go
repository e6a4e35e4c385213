package configs

import "slices"

// sftOnlyNames are names of TRL's SFTConfig that mean something else, or nothing, in GRPOConfig.
func sftOnlyNames() []alias {
	return slices.Concat([]alias{
		{name: "learning_rate", def: "2e-05", path: "optim.learning_rate"},
		{name: "loss_type", def: "nll", path: "nothing: the loss of sft is the negative log-likelihood", convert: choose("nll=", "chunked_nll=")},
		{name: "assistant_only_loss", def: "false", ignore: "in a conversation, loss is on all assistant messages and on nothing else"},
		{name: "dataset_text_field", def: "text", refuse: "rows have a prompt and a completion, or messages: set data.prompt_column, data.completion_column or data.messages_column"},
		{name: "chat_template_path", def: "null", refuse: "write the template into the model's tokenizer_config.json as chat_template"},
		{name: "eos_token", def: "null", refuse: "the end token is the model folder's: set it there"},
		{name: "dataset_kwargs", def: "null", refuse: "set the keys of data instead"},
		{name: "eval_packing", def: "null", refuse: "held-out rows are never packed: remove it"},
		{name: "packing_strategy", def: "bfd", path: "nothing: whole examples are packed", convert: choose("bfd=")},
	},
		ignored("", exact, "dataset_num_proc=null", "activation_offloading=false"),
		ignored("", "there is no padding", "padding_free=false", "pad_token=null"),
	)
}

// skipTRL tells whether a default of TRL is not taken over: where it names a machine or says nothing about what is learnt, where an
// adapter's is not trained, and those of sampling for an SFTConfig.
func skipTRL(name string, lora, sft bool) bool {
	switch name {
	case "save_strategy", "eval_strategy", "logging_strategy", "report_to", "disable_tqdm": // say nothing at their default
		return true
	case "dtype", "torch_dtype", "vllm_importance_sampling_cap", "warmup_ratio", "log_level":
		return true
	case "lora_r", "lora_alpha", "lora_dropout", "lora_target_modules", "use_rslora":
		return !lora
	case "max_length":
		return !sft
	}
	return sft && !commonTRL(name) && slices.ContainsFunc(trlNames(), func(a alias) bool { return a.name == name })
}

// remark lists what differs although nothing in the file says so.
func (t *trlSource) remark(v *converter, lora, sft bool) {
	say := func(name, text string) { v.remarks = append(v.remarks, Note{Key: name, Text: text}) }
	switch {
	case !lora && !t.set["use_peft"]:
		say("use_peft", "is not set, so that TRL trains all weights unless the script passes peft_config: set model.trainable to lora if it does")
	case !lora && (t.set["lora_r"] || t.set["lora_alpha"] || t.set["lora_target_modules"]):
		say("lora_r", "and the like have no effect in TRL while use_peft is false, and none here while model.trainable is full")
	}
	if !t.set["bf16"] && !t.set["fp16"] && !t.set["use_cpu"] {
		say("bf16", "is not set: TRL computes in bfloat16 then, here it is float32; model.compute_dtype: bfloat16 is faster and about as exact as TRL")
	}
	if sft {
		say("rubicon sft", "is the command for it")
		return
	}
	if t.set["eval_strategy"] {
		say("eval_strategy", "TRL evaluates with the sampling of training; here eval is greedy with one completion: set eval.temperature and eval.num_generations_eval for TRL's way")
	}
	if !t.set["reward_funcs"] {
		say("reward_funcs", "TRL gets them in Python: set reward.kind to exec and reward.options.command to [python3, scripts/trl_reward.py, \"my_rewards:correct\"]")
	}
	if !t.set["dataset_name"] {
		say("train_dataset", "TRL gets it in Python: set data.train_files to files (.jsonl, .json, .parquet)")
	}
}
