package configs

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// python reads Python's repr of a default as YAML.
func python(repr string) string {
	switch repr {
	case "None":
		return "null"
	case "True", "False":
		return strings.ToLower(repr)
	}
	return strings.Trim(repr, "'")
}

// goldenDefaults are all names of TRL 1.16 with their defaults.
func goldenDefaults(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for file, want := range map[string]int{"testdata/grpo_config_defaults.json": 77 + 114, "testdata/model_config_defaults.json": 19} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups map[string]json.RawMessage
		if err := json.Unmarshal(data, &groups); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, raw := range groups {
			var names map[string]string
			if json.Unmarshal(raw, &names) != nil {
				continue // the note
			}
			for name, def := range names {
				all[name] = python(def)
				n++
			}
		}
		if n != want {
			t.Fatalf("%s has %d names, want %d", file, n, want)
		}
	}
	return all
}

// Every name of TRL is in the table with TRL's own default, and nothing is in two ways.
func TestNamesComplete(t *testing.T) {
	table := aliasTable()
	for name, def := range goldenDefaults(t) {
		a, ok := table[name]
		if !ok {
			t.Errorf("%s is not in the table", name)
			continue
		}
		if a.def != def {
			t.Errorf("%s: default %q, TRL has %q", name, a.def, def)
		}
	}
	s := newSchema()
	seen := map[string]bool{}
	for _, a := range slices.Concat(trlNames(), trainingNames(), modelNames(), sftNames(), verlNames(), openRLHFNames()) {
		if seen[a.name] {
			t.Errorf("%s is in the table twice", a.name)
		}
		seen[a.name] = true
		ways := 0
		for _, is := range []bool{a.path != "", a.ignore != "", a.refuse != ""} {
			if is {
				ways++
			}
		}
		if ways != 1 {
			t.Errorf("%s has %d meanings", a.name, ways)
		}
		_, isField := s.field(a.path)
		if a.path != "" && !isField && !s.isSection(a.path) && a.special == nil && !strings.HasPrefix(a.path, "nothing: ") {
			t.Errorf("%s means %s, which is no key", a.name, a.path)
		}
	}
}

// Our defaults are TRL's, with the exceptions listed here and no others.
func TestDefaultsAreTRLs(t *testing.T) {
	exceptions := map[string]any{ // name -> ours
		"save_steps":                   Period(50),
		"learning_rate":                1e-5,   // with an adapter; 1e-6 as TRL for all weights, see TestResolve
		"use_peft":                     "lora", // what learns
		"lora_dropout":                 0.0,    // the sampler's numbers are the trainer's only without dropout
		"lora_target_modules":          []string{"all-linear"},
		"dtype":                        "auto", // the same numbers in less memory
		"torch_dtype":                  "auto",
		"bf16":                         "float32", // exact numbers first; TRL takes bfloat16 unless fp16 is set
		"num_generations_eval":         1,         // evaluation is greedy
		"activation_checkpointing":     true,
		"disable_tqdm":                 "auto",
		"vllm_importance_sampling_cap": 3.0, // old name of ..._clip_max
	}
	s, d := newSchema(), Default()
	checked := 0
	for name, def := range goldenDefaults(t) {
		a := aliasTable()[name]
		f, ok := s.field(a.path)
		if !ok {
			continue
		}
		checked++
		ours := f.get(d)
		if want, ok := exceptions[name]; ok {
			if ours.Kind() == reflect.Pointer {
				ours = ours.Elem()
			}
			if !reflect.DeepEqual(ours.Interface(), want) {
				t.Errorf("%s: default %v, want %v", name, ours, want)
			}
			continue
		}
		c, _, err := Load(nil, []string{name + "=" + def}, nil)
		if err != nil {
			t.Errorf("%s=%s: %v", name, def, err)
			continue
		}
		c.RunName, c.OutputDir = "", ""
		if def == "null" && !ours.IsZero() {
			t.Errorf("%s: TRL has none, ours is %v", name, ours)
		}
		if !reflect.DeepEqual(c, d) {
			t.Errorf("%s: TRL's default %s changes %s from %v to %v", name, def, a.path, ours, f.get(c))
		}
	}
	if checked < 80 {
		t.Errorf("only %d names were compared", checked)
	}
}

// A file with every name at its default is a configuration without a note.
func TestAllNamesAtDefault(t *testing.T) {
	var b strings.Builder
	for name, def := range goldenDefaults(t) {
		switch name {
		case "eval_strategy", "logging_strategy", "save_strategy", "optim", "report_to", "include_num_input_tokens_seen", "debug":
			def = `"` + def + `"` // as YAML files have them
		case "vllm_importance_sampling_cap", "activation_checkpointing":
			continue // second names of keys that the file sets already
		}
		b.WriteString(name + ": " + def + "\n")
	}
	c, notes := mustLoad(t, []string{write(t, "all.yaml", b.String())}, nil, nil)
	if len(notes) != 0 {
		t.Errorf("notes %v", notes)
	}
	if c.Model.Trainable != "full" || c.Optim.LearningRate != 1e-6 || c.Checkpoint.SaveSteps != 500 || c.LoRA.Dropout != 0.05 {
		t.Errorf("TRL's own values were not taken: %+v", c)
	}
}

func TestNames(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		set  func(c *Config)
		note string // part of the only note
	}{
		"plain":       {args: []string{"num_generations=4", "beta=0.04", "epsilon_high=0.28"}, set: func(c *Config) { c.GRPO.NumGenerations, c.GRPO.Beta, c.GRPO.EpsilonHigh = 4, 0.04, ptr(0.28) }},
		"scale true":  {args: []string{"scale_rewards=True"}, set: func(c *Config) { c.GRPO.ScaleRewards = "group" }},
		"scale false": {args: []string{"scale_rewards=false"}, set: func(c *Config) { c.GRPO.ScaleRewards = "none" }},
		"scale batch": {args: []string{"scale_rewards=batch"}, set: func(c *Config) { c.GRPO.ScaleRewards = "batch" }},
		"null":        {args: []string{"delta=null", "output_dir=null", "min_p=null"}, set: func(*Config) {}},
		"cpu":         {args: []string{"use_cpu=true"}, set: func(c *Config) { c.Device = "cpu" }},
		"peft":        {args: []string{"use_peft=true", "lora_r=8", "lora_target_modules=q_proj,v_proj"}, set: func(c *Config) { c.LoRA.R, c.LoRA.TargetModules = 8, []string{"q_proj", "v_proj"} }},
		"optimiser":   {args: []string{"optim=adamw_torch"}, set: func(*Config) {}},
		"no save":     {args: []string{"save_strategy=no"}, set: func(c *Config) { c.Checkpoint.SaveSteps = 0 }},
		"no log":      {args: []string{"logging_strategy=no"}, set: func(c *Config) { c.Track.LoggingSteps = 0 }},
		"eval as log": {args: []string{"eval_strategy=steps", "eval.files=a.jsonl", "logging_steps=4"}, set: func(c *Config) { c.Eval.EvalSteps, c.Track.LoggingSteps, c.Eval.Files = 4, 4, []string{"a.jsonl"} }, note: "eval.eval_steps: is 4"},
		"eval steps":  {args: []string{"eval_strategy=steps", "eval.files=a.jsonl", "eval_steps=0.25"}, set: func(c *Config) { c.Eval.EvalSteps, c.Eval.Files = 0.25, []string{"a.jsonl"} }},
		"no tracker":  {args: []string{"report_to=none"}, set: func(*Config) {}},
		"a tracker":   {args: []string{"report_to=[wandb,tensorboard]"}, set: func(c *Config) { c.Track.To = []string{"wandb", "tensorboard"} }},
		"no bar":      {args: []string{"disable_tqdm=true"}, set: func(c *Config) { c.Track.Progress = "plain" }},
		"resume":      {args: []string{"resume_from_checkpoint=true"}, set: func(c *Config) { c.Checkpoint.Resume = "newest" }},
		"resume path": {args: []string{"resume_from_checkpoint=runs/a/checkpoints/step-3"}, set: func(c *Config) { c.Checkpoint.Resume = "runs/a/checkpoints/step-3" }},
		"schedule": {args: []string{"lr_scheduler_type=cosine_with_min_lr", `lr_scheduler_kwargs={"min_lr_rate": 0.1}`}, set: func(c *Config) {
			c.Optim.LRSchedulerType = "cosine_with_min_lr"
			c.Optim.LRSchedulerKwargs.MinLRRate = ptr(0.1)
		}},
		"one weight": {args: []string{"reward_weights=[0.5]"}, set: func(c *Config) { c.Reward.Weight = 0.5 }},
		"weights": {args: []string{"reward_weights=2,3", "reward.kind=mix", "reward.parts=[{kind: verify}, {kind: verify, name: v}]"}, set: func(c *Config) {
			c.Reward.Kind = "mix"
			c.Reward.Parts = []RewardPart{{Kind: "verify", Weight: 2}, {Kind: "verify", Name: "v", Weight: 3}}
		}},
		"ignored":           {args: []string{"vllm_mode=server"}, set: func(*Config) {}, note: "vllm_mode: ignored"},
		"ignored as is":     {args: []string{"vllm_mode=colocate", "ddp_backend=null"}, set: func(*Config) {}},
		"4 bits":            {args: []string{"load_in_4bit=true", "load_in_8bit=false"}, set: func(c *Config) { c.Model.DType = "int4" }},
		"8 bits":            {args: []string{"load_in_8bit=true"}, set: func(c *Config) { c.Model.DType = "int8" }},
		"bf16":              {args: []string{"bf16=true"}, set: func(c *Config) { c.Model.ComputeDType = "bfloat16" }},
		"default of refuse": {args: []string{"push_to_hub=false", "model_revision=main", "completion_only_loss=true"}, set: func(*Config) {}},
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
			if (tt.note == "") != (len(notes) == 0) || len(notes) > 1 || tt.note != "" && !strings.Contains(notes[0].String(), tt.note) {
				t.Errorf("notes %v, want %q", notes, tt.note)
			}
		})
	}
}

func TestNamesRefused(t *testing.T) {
	for arg, want := range map[string]string{
		"push_to_hub=true":           "upload",
		"load_in_4bit=maybe":         "want one of true, false",
		"sync_ref_model=true":        "grpo.reference",
		"optim=sgd":                  `is "sgd", want one of`,
		"report_to=comet_ml":         "metrics.jsonl",
		"save_strategy=epoch":        "checkpoint.save_steps",
		"reward_weights=1,2":         "has 2 weights for 1 rewards",
		"data.truncation=left":       "want one of error",
		"completion_only_loss=false": "want one of true",
		"warmup_ratio=x":             "want a number",
	} {
		if _, _, err := Load(nil, []string{arg}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", arg, err, want)
		}
	}
}

// In one file, a strategy of no wins over the number of steps, whatever their order; a later layer wins over both.
func TestStrategyNo(t *testing.T) {
	for _, text := range []string{"save_strategy: \"no\"\nsave_steps: 7", "save_steps: 7\nsave_strategy: \"no\""} {
		file := write(t, "f.yaml", text)
		if c, _ := mustLoad(t, []string{file}, nil, nil); c.Checkpoint.SaveSteps != 0 {
			t.Errorf("%q: save_steps %v", text, c.Checkpoint.SaveSteps)
		}
		if c, _ := mustLoad(t, []string{file}, []string{"save_steps=9"}, nil); c.Checkpoint.SaveSteps != 9 {
			t.Errorf("%q, then 9: save_steps %v", text, c.Checkpoint.SaveSteps)
		}
	}
}
