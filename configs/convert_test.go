package configs

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// converted reads a file of testdata/foreign and loads what it is converted to.
func converted(t *testing.T, from func(Source) (*Conversion, error), file string, gpus int, overrides ...string) (*Config, *Conversion) {
	t.Helper()
	src := Source{Overrides: overrides, GPUs: gpus}
	if file != "" {
		src.Name = file
		var err error
		if src.Data, err = os.ReadFile("testdata/foreign/" + file); err != nil {
			t.Fatal(err)
		}
	}
	out, err := from(src)
	if err != nil {
		t.Fatal(err)
	}
	c, notes := mustLoad(t, []string{write(t, "converted.yaml", string(out.YAML))}, nil, nil)
	if len(notes) > 0 && notes[0].Key != "eval.eval_steps" {
		t.Errorf("the converted file has notes %v", notes)
	}
	return c, out
}

// wantKeys checks values of keys, written as on the command line.
func wantKeys(t *testing.T, c *Config, want map[string]string) {
	t.Helper()
	for path, value := range want {
		f, ok := newSchema().field(path)
		if !ok {
			t.Fatalf("%s is no key", path)
		}
		n, err := parseText(value, f.Type)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := decode(n, f.Type); err != nil || !reflect.DeepEqual(f.get(c).Interface(), want.Interface()) {
			t.Errorf("%s is %s, want %s, %v", path, oneLine(toNode(f.get(c))), value, err)
		}
	}
}

// wantNotes checks that the notes are about just these names, in any order.
func wantNotes(t *testing.T, what string, notes []Note, want ...string) {
	t.Helper()
	var got []string
	for _, n := range notes {
		got = append(got, n.Key)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q\nwant %q\n%v", what, got, want, notes)
	}
}

// 8 GPUs with 4 rows and 8 accumulated passes make steps of 256 completions, 16 prompts of 16; here one process makes 64 passes.
func TestFromTRL(t *testing.T) {
	c, out := converted(t, FromTRL, "trl.yaml", 8, "--learning_rate=2e-5")
	wantKeys(t, c, map[string]string{
		"model.path": "Qwen/Qwen2.5-7B-Instruct", "model.compute_dtype": "bfloat16", "model.trainable": "lora",
		"lora.r": "64", "lora.alpha": "64", "lora.target_modules": "all-linear",
		"optim.learning_rate": "2e-05", "optim.warmup_steps": "0.05", "optim.lr_scheduler_type": "cosine", "optim.max_grad_norm": "0.2",
		"optim.per_device_train_batch_size": "4", "optim.gradient_accumulation_steps": "64",
		"grpo.num_generations": "16", "grpo.loss_type": "dr_grpo", "grpo.scale_rewards": "none", "grpo.epsilon_high": "0.28", "grpo.beta": "0.001",
		"grpo.mask_truncated_completions": "true", "rollout.max_completion_length": "1024", "rollout.temperature": "0.7", "rollout.top_p": "0.95",
		"data.max_prompt_length": "512", "checkpoint.save_steps": "100", "seed": "7",
		"track.to": "wandb", "lora.dropout": "0.05", // TRL's default, ours is 0
	})
	wantNotes(t, "missing", out.Missing, "push_to_hub", "reward_funcs", "train_dataset")
	wantNotes(t, "ignored", out.Ignored, "attn_implementation", "use_vllm", "vllm_gpu_memory_utilization")
	if out.Batches != nil || !strings.Contains(string(out.YAML), "16 prompts x 16 completions = 256 per generation") {
		t.Errorf("batches %v\n%s", out.Batches, out.YAML)
	}
	for _, n := range out.Missing {
		if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(string(out.YAML), "#", "")), " "), n.Key+": "+strings.Fields(n.Text)[0]) {
			t.Errorf("the file does not list %v", n)
		}
	}
}

// Without use_peft TRL trains all weights, with its own defaults; a LoraConfig of PEFT has other names and PEFT's defaults.
func TestFromTRLWithoutAFile(t *testing.T) {
	c, out := converted(t, FromTRL, "", 0, "per_device_train_batch_size=8", "eval_strategy=steps")
	wantKeys(t, c, map[string]string{"model.trainable": "full", "optim.learning_rate": "1e-06", "checkpoint.save_steps": "500", "grpo.num_generations": "8"})
	wantNotes(t, "missing", out.Missing, "use_peft", "bf16", "eval_strategy", "reward_funcs", "train_dataset")

	c, out = converted(t, FromTRL, "", 0, "peft_type=LORA", "r=4", "bf16=true", "dtype=float32", "use_dora=true", "num_generations=1", "lernrate=1")
	wantKeys(t, c, map[string]string{
		"model.trainable": "lora", "lora.r": "4", "lora.alpha": "8", "lora.dropout": "0", "lora.target_modules": "q_proj,v_proj",
		"model.compute_dtype": "bfloat16", "model.dtype": "auto",
		"grpo.num_generations": "8", // 1 is refused, so that it is left out
	})
	wantNotes(t, "missing", out.Missing, "use_dora", "num_generations", "lernrate", "reward_funcs", "train_dataset")
}

// A configuration with every name of TRL at its default says nothing that has no equal.
func TestFromTRLDefaults(t *testing.T) {
	var args []string
	for name, def := range goldenDefaults(t) {
		if name != "vllm_importance_sampling_cap" && name != "activation_checkpointing" { // second names of keys
			args = append(args, name+"="+def)
		}
	}
	c, out := converted(t, FromTRL, "", 1, args...)
	wantKeys(t, c, map[string]string{"model.trainable": "full", "optim.learning_rate": "1e-06", "checkpoint.save_steps": "500", "lora.dropout": "0.05"})
	wantNotes(t, "missing", out.Missing, "reward_funcs", "train_dataset") // which are Python there
	wantNotes(t, "ignored", out.Ignored)
}

// 64 prompts of 5 are sampled, and mini-batches of 32 prompts make two optimiser steps of 160 completions, four passes of 40: what
// verl counts in generations counts twice here.
func TestFromVerl(t *testing.T) {
	c, out := converted(t, FromVerl, "verl.yaml", 1, "+actor_rollout_ref.rollout.top_p=0.9", "~trainer.save_freq", "trainer.test_freq=3", "trainer.foo=1")
	wantKeys(t, c, map[string]string{
		"model.path": "~/models/Qwen2.5-3B-Instruct", "lora.r": "64", "lora.alpha": "32", "model.compute_dtype": "bfloat16",
		"data.train_files": "data/gsm8k/train.parquet", "data.train_batch_size": "64", "data.max_prompt_length": "512", "data.on_long_prompt": "skip",
		"rollout.max_completion_length": "1024", "rollout.top_p": "0.9", "rollout.top_k": "0",
		"grpo.num_generations": "5", "grpo.advantage": "group", "grpo.loss_type": "dapo", "grpo.beta": "0.001", "grpo.kl_estimator": "k3",
		"grpo.epsilon": "0.2", "grpo.epsilon_high": "0.28", "grpo.delta": "3",
		"optim.per_device_train_batch_size": "40", "optim.gradient_accumulation_steps": "4", "optim.num_train_epochs": "15",
		"optim.learning_rate": "3e-06", "optim.lr_scheduler_type": "constant_with_warmup", "optim.warmup_steps": "20", "optim.weight_decay": "0.01",
		"checkpoint.save_steps": "0", // verl's default: never
		"checkpoint.resume":     "auto", "output_dir": "checkpoints/gsm8k/qwen3b_lora", "run_name": "qwen3b_lora", "track.project": "gsm8k",
		"eval.eval_steps": "6", "eval.temperature": "0.6", "eval.num_generations_eval": "4",
	})
	wantNotes(t, "missing", out.Missing, "reward.custom_reward_function.path", "trainer.foo")
	if len(out.Ignored) != 11 {
		t.Errorf("%d settings are ignored: %v", len(out.Ignored), out.Ignored)
	}
	b, err := c.Batching(1)
	if err != nil || b.Prompts != 64 || b.StepsPerGeneration != 8 {
		t.Errorf("batches %+v, %v", b, err)
	}
}

// What is not in the file is verl's: all weights, a critic, which there is none, and a batch that its own micro-batches do not cut.
func TestFromVerlDefaults(t *testing.T) {
	c, out := converted(t, FromVerl, "", 1, "algorithm.adv_estimator=grpo", "actor_rollout_ref.rollout.n=8", "data.train_batch_size=256")
	wantKeys(t, c, map[string]string{"model.trainable": "full", "optim.learning_rate": "1e-06", "optim.weight_decay": "0.01", "grpo.beta": "0", "optim.num_train_epochs": "30"})
	wantNotes(t, "missing", out.Missing, "data_source")
	c, _ = converted(t, FromVerl, "", 1, "algorithm.adv_estimator=grpo", "actor_rollout_ref.rollout.n=8", "actor_rollout_ref.rollout.response_length=99")
	wantKeys(t, c, map[string]string{"rollout.max_completion_length": "99"}) // verl's default of 512 follows it, not the other way round
	_, out = converted(t, FromVerl, "", 1, "actor_rollout_ref.rollout.n=8")
	wantNotes(t, "missing", out.Missing, "data_source", "algorithm.adv_estimator")
}

// ${...} stands for other values of the file, or for verl's defaults.
func TestFromVerlInterpolates(t *testing.T) {
	for value, want := range map[string]string{
		"${data.seed}":                            "7",
		"${oc.select:data.seed,3}":                "7",
		"${oc.select:data.none,3}":                "3",
		"${.other}":                               "5",
		"${..data.seed}":                          "7",
		"${data.train_batch_size}":                "1024", // verl's default
		"${oc.select:data.${trainer.which},3}":    "7",
		"${oc.select:data.none,${data.seed}}":     "7",
		"1${data.seed}":                           "17",
		"${data.loop}":                            "refers to itself",
		"${data.none}":                            "data.none, which is not in this file",
		"${oc.env:HOME}":                          "is not in this file: write its value out",
		"${data.seed":                             "without its }",
		"${actor_rollout_ref.rollout.n}${.other}": "15", // verl's default 1, then 5
	} {
		text := fmt.Sprintf("data: {seed: 7, loop: '${data.loop}'}\ntrainer: {total_training_steps: '%s', other: 5, which: seed}\nalgorithm: {adv_estimator: grpo}\n", value)
		out, err := FromVerl(Source{Name: "v.yaml", Data: []byte(text), Overrides: []string{"actor_rollout_ref.actor.ppo_mini_batch_size=1024"}})
		if err != nil {
			t.Fatal(err)
		}
		var failed string
		for _, n := range out.Missing {
			if n.Key == "trainer.total_training_steps" {
				failed = n.Text
			}
		}
		if failed == "" {
			failed = "max_steps: " + want + " #"
			if !strings.Contains(string(out.YAML), failed) {
				t.Errorf("%s: want %s\n%s", value, failed, out.YAML)
			}
		} else if !strings.Contains(failed, want) {
			t.Errorf("%s: %s, want %s", value, failed, want)
		}
	}
}

func TestConvertRefuses(t *testing.T) {
	for text, want := range map[string]string{"a: b: c": "neither YAML nor JSON", "[1, 2]": "not a mapping", "seed: 1\nseed: 2": "stands twice"} {
		for name, from := range map[string]func(Source) (*Conversion, error){"TRL": FromTRL, "verl": FromVerl} {
			if _, err := from(Source{Name: "f.yaml", Data: []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q: error %v, want %q", name, text, err, want)
			}
			if _, err := from(Source{Overrides: []string{"seed"}}); err == nil || !strings.Contains(err.Error(), "not key=value") {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}

// Every default in the tables is YAML.
func TestConvertDefaults(t *testing.T) {
	for _, a := range slices.Concat(trlNames(), trainingNames(), modelNames(), peftNames(), verlNames(), openRLHFNames()) {
		if _, err := parseYAML(a.def); err != nil {
			t.Errorf("%s: default %q: %v", a.name, a.def, err)
		}
	}
}
