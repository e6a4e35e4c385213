package configs

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FromTRL converts a GRPOConfig with the arguments of TRL's scripts and PEFT's LoraConfig, the latter below peft_config or lora_config or
// at the top level. An error means that the source cannot be read at all.
func FromTRL(s Source) (*Conversion, error) {
	root, err := parseSource(s)
	if err != nil {
		return nil, err
	}
	t := &trlSource{set: map[string]bool{}}
	if root != nil {
		if err := t.read(root, s.Name); err != nil {
			return nil, err
		}
	}
	for _, o := range s.Overrides {
		name, n, err := override(strings.TrimLeft(o, "-"))
		if err != nil {
			return nil, err
		}
		t.add(name, n, "command line")
	}
	return t.convert(max(s.GPUs, 1)), nil
}

// trlSource are the entries of a configuration of TRL, in order; of two with one name, the later one.
type trlSource struct {
	entries []trlEntry
	set     map[string]bool
	peft    bool // there is a LoraConfig
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

func (t *trlSource) read(root *yaml.Node, file string) (err error) {
	top := entries(root, file, func(name string, n *yaml.Node, from string) {
		if (name == "peft_config" || name == "lora_config") && n.Kind == yaml.MappingNode {
			t.peft = true
			if e := entries(n, file, t.add); e != nil && err == nil {
				err = e
			}
			return
		}
		t.add(name, n, from)
	})
	if top != nil {
		return top
	}
	return err
}

// is tells whether a name is written with a value.
func (t *trlSource) is(name, value string) bool {
	return slices.ContainsFunc(t.entries, func(e trlEntry) bool { return e.name == name && strings.EqualFold(e.node.Value, value) })
}

func (t *trlSource) convert(gpus int) *Conversion {
	if t.is("bf16", "true") { // TRL rounds float32 weights before it multiplies them, as model.compute_dtype does
		t.entries = slices.DeleteFunc(t.entries, func(e trlEntry) bool {
			return (e.name == "dtype" || e.name == "torch_dtype") && e.node.Value == "float32"
		})
	}
	lora := t.peft || t.is("use_peft", "true")
	names := slices.Concat(trlNames(), trainingNames(), modelNames(), sftNames())
	if t.peft {
		peft := peftNames()
		names = slices.DeleteFunc(names, func(a alias) bool {
			return slices.ContainsFunc(peft, func(b alias) bool { return a.name == b.name })
		})
		names = append(names, peft...)
	}
	v := newConverter(framework{"TRL", names, func(name string) bool { return skipTRL(name, lora) }})
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
	t.remark(v, lora)
	return v.finish(gpus)
}

// skipTRL tells whether a default of TRL is not taken over: where it names a machine or says nothing about what is learnt, and where an
// adapter's is not trained.
func skipTRL(name string, lora bool) bool {
	switch name {
	case "save_strategy", "eval_strategy", "logging_strategy", "report_to", "disable_tqdm": // say nothing at their default
		return true
	case "dtype", "torch_dtype", "vllm_importance_sampling_cap", "warmup_ratio", "log_level", "max_length":
		return true
	case "lora_r", "lora_alpha", "lora_dropout", "lora_target_modules", "use_rslora":
		return !lora
	}
	return false
}

// remark lists what differs although nothing in the file says so.
func (t *trlSource) remark(v *converter, lora bool) {
	say := func(name, text string) { v.remarks = append(v.remarks, Note{Key: name, Text: text}) }
	if !lora && !t.set["use_peft"] {
		say("use_peft", "is not set, so that TRL trains all weights unless the script passes peft_config: set model.trainable to lora if it does")
	}
	if !t.set["bf16"] && !t.set["fp16"] && !t.set["use_cpu"] {
		say("bf16", "is not set: TRL computes in bfloat16 then, here it is float32; model.compute_dtype: bfloat16 is faster and about as exact as TRL")
	}
	if t.set["eval_strategy"] && !t.is("eval_strategy", "no") {
		say("eval_strategy", "TRL evaluates with the sampling of training; here eval is greedy with one completion: set eval.temperature and eval.num_generations_eval for TRL's way")
	}
	if !t.set["reward_funcs"] {
		say("reward_funcs", "TRL gets them in Python: set reward.kind to exec and reward.options.command to [python3, scripts/trl_reward.py, \"my_rewards:correct\"]")
	}
	if !t.set["dataset_name"] {
		say("train_dataset", "TRL gets it in Python: set data.train_files to files (.jsonl, .json, .parquet)")
	}
}

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
		ignored("", noMeaning, "fan_in_fan_out=false", "inference_mode=false", "auto_mapping=null", "revision=null", "base_model_name_or_path=null",
			"peft_version="),
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

// override reads a name with its value from a command line.
func override(text string) (name string, n *yaml.Node, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", nil, fmt.Errorf("command line: %q is not key=value", text)
	}
	if value == "None" {
		return name, scalar("!!null", "null"), nil
	}
	if n, err = parseYAML(value); err != nil {
		return "", nil, fmt.Errorf("command line: %s: %w", name, err)
	}
	return name, n, nil
}
