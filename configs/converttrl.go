package configs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	notNeeded   = "the launcher needs no file: rubicon starts processes itself"
	noDeepSpeed = "DeepSpeed's: weights are not sharded, nothing of it is needed"
)

// peftNames are those of PEFT's LoraConfig.
func peftNames() []alias {
	return slices.Concat([]alias{
		{name: "r", def: "8", path: "lora.r"},
		{name: "lora_alpha", def: "8", path: "lora.alpha"},
		{name: "lora_dropout", def: "0.0", path: "lora.dropout"},
		{name: "target_modules", def: "null", path: "lora.target_modules"},
		{name: "use_rslora", def: "false", path: "lora.rslora"},
		{name: "use_dora", def: "false", refuse: "DoRA is not supported: remove it"},
		{name: "bias", def: "none", refuse: "biases are frozen: remove it"},
		{name: "task_type", def: "CAUSAL_LM", refuse: "only CAUSAL_LM is supported"},
		{name: "peft_type", def: "LORA", refuse: "adapters are LoRA"},
		{name: "modules_to_save", def: "null", refuse: "beside the adapter everything is frozen: set model.trainable to full, or remove it"},
		{name: "init_lora_weights", def: "true", refuse: "a new adapter starts as PEFT's default does and changes nothing yet: remove it"},
	},
		refused("adapters are on whole linear layers, the same in all blocks: set lora.target_modules", "exclude_modules=null", "layers_to_transform=null",
			"layers_pattern=null", "rank_pattern={}", "alpha_pattern={}", "target_parameters=null", "trainable_token_indices=null", "layer_replication=null", "lora_bias=false"),
		ignored("", noMeaning, "fan_in_fan_out=false", "inference_mode=false", "megatron_config=null", "megatron_core=megatron.core", "loftq_config={}",
			"eva_config=null", "corda_config=null", "qalora_group_size=16", "use_qalora=false", "auto_mapping=null", "revision=null", "base_model_name_or_path=null",
			"peft_version=", "runtime_config={}"),
	)
}

// refused are names with their defaults ("name=default") that cannot be had for one reason.
func refused(why string, names ...string) []alias {
	table := ignored("", "", names...)
	for i := range table {
		table[i].refuse = why
	}
	return table
}

// launcherNames are those of accelerate's and DeepSpeed's files.
func launcherNames() []alias {
	return slices.Concat(
		ignored("", notNeeded, "compute_environment=", "distributed_type=", "downcast_bf16=", "dynamo_config=", "enable_cpu_affinity=", "gpu_ids=",
			"machine_rank=", "main_process_ip=", "main_process_port=", "main_training_function=", "megatron_lm_config=", "mixed_precision=", "num_machines=",
			"num_processes=", "rdzv_backend=", "same_network=", "tpu_env=", "tpu_use_cluster=", "tpu_use_sudo=", "env="),
		ignored("", noDeepSpeed, "deepspeed_config=", "zero_optimization=", "zero_allow_untested_optimizer=", "zero_force_ds_cpu_optimizer=",
			"train_micro_batch_size_per_gpu=", "train_batch_size=", "optimizer=", "scheduler=", "steps_per_print=", "wall_clock_breakdown=",
			"flops_profiler=", "aio=", "comms_logger=", "prescale_gradients=", "communication_data_type=", "data_types="),
		[]alias{{name: "gradient_clipping", path: "optim.max_grad_norm"}},
	)
}

// FromTRL converts a GRPOConfig or SFTConfig with the arguments of TRL's scripts and PEFT's LoraConfig: at the top level, the
// latter also below peft_config or lora_config. An error means that the source cannot be read at all.
func FromTRL(s Source) (*Conversion, error) {
	root, err := parseSource(s)
	if err != nil {
		return nil, err
	}
	t := &trlSource{gpus: max(s.GPUs, 1), set: map[string]bool{}}
	if root != nil {
		if err := t.read(root, s); err != nil {
			return nil, err
		}
	}
	for _, o := range s.Overrides {
		if err := t.override(o); err != nil {
			return nil, err
		}
	}
	return t.convert()
}

// trlSource is what is written.
type trlSource struct {
	entries []trlEntry
	set     map[string]bool
	peft    bool // there is a LoraConfig
	gpus    int
}

type trlEntry struct {
	name string
	node *yaml.Node
	from string
}

func (t *trlSource) add(name string, n *yaml.Node, from string) {
	t.entries = slices.DeleteFunc(t.entries, func(e trlEntry) bool { return e.name == name })
	t.entries = append(t.entries, trlEntry{name, n, from})
	t.set[name] = true
	t.peft = t.peft || name == "r" || name == "peft_type"
}

func (t *trlSource) read(root *yaml.Node, s Source) (err error) {
	return entries(root, s.Name, func(name string, n *yaml.Node, from string) {
		isPEFT := (name == "peft_config" || name == "lora_config") && n.Kind == yaml.MappingNode
		switch {
		case isPEFT:
			t.peft = true
			if e := entries(n, s.Name, t.add); e != nil && err == nil {
				err = e
			}
		case n.Kind == yaml.MappingNode && (name == "bf16" || name == "fp16"): // DeepSpeed's
			t.add("deepspeed_config", n, from)
		case n.Value == "auto" && name != "pad_to_multiple_of" && name != "dtype" && name != "torch_dtype": // DeepSpeed's: as TRL says
		default:
			if gpus, e := strconv.Atoi(n.Value); e == nil && name == "num_processes" && s.GPUs == 0 {
				t.gpus = max(gpus, 1)
			}
			t.add(name, n, from)
		}
	})
}

func (t *trlSource) override(text string) error {
	name, value, ok := strings.Cut(strings.TrimLeft(text, "-"), "=")
	if !ok || name == "" {
		return fmt.Errorf("command line: %q is not key=value", text)
	}
	n, err := parseYAML(value)
	if err != nil {
		return fmt.Errorf("command line: %s: %w", name, err)
	}
	if value == "None" {
		n = scalar("!!null", "null")
	}
	t.add(name, n, "command line")
	return nil
}

// isSFT tells whether the file is an SFTConfig: it has names that GRPOConfig lacks and none that only GRPOConfig has.
func (t *trlSource) isSFT() bool {
	is := func(names []alias) bool {
		return slices.ContainsFunc(names, func(a alias) bool { return t.set[a.name] && a.name != "warmup_ratio" && !commonTRL(a.name) })
	}
	return is(slices.Concat(sftNames(), sftOnlyNames())) && !is(trlNames())
}

// commonTRL tells whether a name of GRPOConfig is in SFTConfig as well.
func commonTRL(name string) bool {
	return slices.Contains([]string{"model_init_kwargs", "trust_remote_code", "router_aux_loss_coef", "pad_to_multiple_of", "loss_type", "shuffle_dataset"}, name)
}

func (t *trlSource) convert() (*Conversion, error) {
	sft := t.isSFT()
	t.autocast()
	names := slices.Concat(trlNames(), trainingNames(), modelNames(), sftNames())
	if sft {
		names = slices.DeleteFunc(names, func(a alias) bool {
			return a.name == "loss_type" || a.name == "learning_rate" || a.name == "assistant_only_loss"
		})
		names = append(names, sftOnlyNames()...)
	}
	names = override(names, launcherNames())
	lora := t.peft
	for _, e := range t.entries {
		lora = lora || e.name == "use_peft" && strings.EqualFold(e.node.Value, "true")
	}
	if t.peft {
		names = override(names, peftNames())
	}
	v := newConverter(framework{"TRL", names, func(name string) bool { return skipTRL(name, lora, sft) }, sft})
	for _, e := range t.entries {
		v.put(e.name, e.node, e.from)
	}
	if t.peft && !t.set["use_peft"] {
		v.give(alias{name: "LoraConfig", path: "model.trainable"}, scalar("!!str", "lora"), v.defaultFrom())
	}
	if lora && v.layer["lora.target_modules"] == nil {
		modules := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{scalar("!!str", "q_proj"), scalar("!!str", "v_proj")}}
		v.give(alias{name: "PEFT's target_modules for Llama and Qwen", path: "lora.target_modules"}, modules, v.defaultFrom())
	}
	v.putDefaults()
	t.remark(v, lora, sft)
	return v.finish(t.gpus), nil
}

// autocast leaves out a dtype of float32 where TRL rounds weights to bfloat16 before it multiplies them.
func (t *trlSource) autocast() {
	bf16 := slices.ContainsFunc(t.entries, func(e trlEntry) bool { return e.name == "bf16" && strings.EqualFold(e.node.Value, "true") })
	t.entries = slices.DeleteFunc(t.entries, func(e trlEntry) bool {
		return bf16 && (e.name == "dtype" || e.name == "torch_dtype") && e.node.Value == "float32"
	})
}

// override is the table a with the names of b in place of its own.
func override(a, b []alias) []alias {
	a = slices.DeleteFunc(slices.Clone(a), func(x alias) bool {
		return slices.ContainsFunc(b, func(y alias) bool { return x.name == y.name })
	})
	return append(a, b...)
}
