package policy

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

func mustConfig(t *testing.T, model string) Config {
	t.Helper()
	c, err := ReadConfig(golden.Path("models", model))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// PEFT's adapters are read, and written again with the same bytes of weights and the same settings.
func TestAdapterGolden(t *testing.T) {
	for _, v := range []struct {
		name, model string
		modules     int
		scaling     float64
	}{
		{"llama3-qv-plain", "llama3", 6, 2}, {"qwen2-qv-rslora", "qwen2", 6, 5.65685424949238}, {"qwen2-all-plain", "qwen2", 21, 2},
		{"qwen2-untied-all-plain", "qwen2-untied", 21, 2}, {"smollm-all-rslora", "smollm", 21, 5.65685424949238},
	} {
		c := mustConfig(t, v.model)
		src := golden.Path("lora", v.name, "adapter")
		a, err := ReadAdapter(src, c)
		if err != nil {
			t.Fatal(err)
		}
		if s := a.Config.Scaling(); len(a.Weights) != v.modules || s != v.scaling || a.Config.R != 8 || a.Base != "models/"+v.model {
			t.Errorf("%s: %d modules, scaling %v, %+v of %q", v.name, len(a.Weights), s, a.Config, a.Base)
		}
		dir := t.TempDir()
		if err := WriteAdapter(dir, a, c, true); err != nil {
			t.Fatal(err)
		}
		want, err1 := os.ReadFile(filepath.Join(src, AdapterWeightsName))
		got, err2 := os.ReadFile(filepath.Join(dir, AdapterWeightsName))
		if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: weights changed (%v, %v)", v.name, err1, err2)
		}
		if want, got := readObject(t, src, AdapterConfigName), readObject(t, dir, AdapterConfigName); !sameSettings(got, want) {
			t.Errorf("%s: adapter_config.json %v\nis not like %v", v.name, got, want)
		}
	}
}

func readObject(t *testing.T, dir, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// sameSettings reports whether got has PEFT's keys only, with the values of want, target_modules in any order.
func sameSettings(got, want map[string]any) bool {
	for key, value := range got {
		other, known := want[key]
		if key == "target_modules" {
			value, other = sorted(value), sorted(other)
		}
		if !known || !reflect.DeepEqual(value, other) {
			return false
		}
	}
	return true
}

func sorted(list any) []string {
	var names []string
	for _, name := range list.([]any) {
		names = append(names, name.(string))
	}
	slices.Sort(names)
	return names
}

// peftFolder is a golden adapter with some settings changed.
func peftFolder(t *testing.T, change object) string {
	t.Helper()
	src, dir := golden.Path("lora", "qwen2-qv-rslora", "adapter"), t.TempDir()
	m := readObject(t, src, AdapterConfigName)
	maps.Copy(m, change)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := os.ReadFile(filepath.Join(src, AdapterWeightsName))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{AdapterConfigName: text, AdapterWeightsName: weights} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAdapterForms(t *testing.T) {
	c := mustConfig(t, "qwen2")
	want, err := ReadAdapter(peftFolder(t, nil), c)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]object{
		"pattern":     {"target_modules": `.*\.(q|v)_proj`},
		"all but":     {"target_modules": "all-linear", "exclude_modules": []string{"k_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}},
		"layers":      {"layers_to_transform": []int{0, 1, 2}, "layers_pattern": "layers"},
		"ranks":       {"r": 2, "rank_pattern": object{"q_proj": 8, "v_proj": 8}},
		"initialised": {"init_lora_weights": "gaussian"},
	} {
		dir := peftFolder(t, change)
		got, err := ReadAdapter(dir, c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got.Weights, want.Weights) {
			t.Errorf("%s: other weights or scales", name)
		}
		again := t.TempDir()
		if err := WriteAdapter(again, got, c, false); err != nil {
			t.Fatal(err)
		}
		if reread, err := ReadAdapter(again, c); err != nil || !reflect.DeepEqual(reread.Weights, got.Weights) {
			t.Errorf("%s: written and read again: %v", name, err)
		}
	}
	// all-linear is written as the seven names.
	l := AdapterFile{Config: LoRAConfig{R: 1, TargetModules: []string{AllLinear}}}
	if names, ok := l.peft().TargetModules.([]string); !ok || len(names) != 7 {
		t.Errorf("all-linear is written as %v", l.peft().TargetModules)
	}
}

func TestAdapterConfigErrors(t *testing.T) {
	c := mustConfig(t, "qwen2")
	for _, e := range []struct {
		change object
		want   string
	}{
		{object{"peft_type": "IA3"}, "IA3"},
		{object{"peft_type": nil}, "peft_type is missing"},
		{object{"task_type": "SEQ_CLS"}, "SEQ_CLS"},
		{object{"bias": "all"}, "bias"},
		{object{"use_dora": true}, "use_dora"},
		{object{"lora_bias": true}, "lora_bias"},
		{object{"fan_in_fan_out": true}, "fan_in_fan_out"},
		{object{"modules_to_save": []string{"lm_head"}}, "modules_to_save"},
		{object{"trainable_token_indices": []int{1}}, "trainable_token_indices"},
		{object{"layer_replication": [][]int{{0, 1}}}, "layer_replication"},
		{object{"init_lora_weights": "pissa"}, "pissa"},
		{object{"layers_pattern": "h"}, "layers_pattern"},
		{object{"future_option": 3}, "future_option"},
		{object{"target_modules": nil}, "target_modules"},
		{object{"target_modules": []any{"q_proj", 3}}, "target_modules"},
		{object{"target_modules": []string{"q_proj", "lm_head"}}, "lm_head"},
		{object{"rank_pattern": object{"q_proj": "x"}}, "rank_pattern"},
		{object{"r": 4}, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"},
		{object{"target_modules": []string{"q_proj"}}, "v_proj.lora_A.weight"},           // surplus tensors
		{object{"target_modules": []string{"q_proj", "v_proj", "k_proj"}}, "is missing"}, // missing ones
	} {
		if _, err := ReadAdapter(peftFolder(t, e.change), c); err == nil || !strings.Contains(err.Error(), e.want) || !strings.Contains(err.Error(), "adapter_") {
			t.Errorf("%v: error %v does not mention %s", e.change, err, e.want)
		}
	}
	if _, err := ReadAdapter(golden.Path("lora", "qwen2-all-plain", "adapter"), mustConfig(t, "smollm")); err == nil || !strings.Contains(err.Error(), "shape") {
		t.Errorf("another model's adapter: %v", err)
	}
	dir := peftFolder(t, nil)
	if err := os.Rename(filepath.Join(dir, AdapterWeightsName), filepath.Join(dir, "adapter_model.bin")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAdapter(dir, c); err == nil || !strings.Contains(err.Error(), "safetensors") {
		t.Errorf("an adapter in torch's format: %v", err)
	}
}

func TestWriteAdapterErrors(t *testing.T) {
	c := mustConfig(t, "qwen2")
	a, err := ReadAdapter(peftFolder(t, nil), c)
	if err != nil {
		t.Fatal(err)
	}
	short := a
	short.Weights = a.Weights[1:]
	cut := a
	cut.Weights = slices.Clone(a.Weights)
	cut.Weights[2].B = cut.Weights[2].B[1:]
	for _, bad := range []AdapterFile{short, cut} {
		dir := t.TempDir()
		if err := WriteAdapter(dir, bad, c, false); err == nil {
			t.Error("weights that do not fit the configuration were written")
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("a refused adapter left %v", left)
		}
	}
}

func TestCheckWeights(t *testing.T) {
	for _, model := range []string{"qwen2", "qwen2-untied", "qwen3", "llama3", "smollm", "qwen2-bf16", "qwen2-sharded"} {
		set, err := safetensors.OpenDir(golden.Path("models", model))
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		if err := mustConfig(t, model).CheckWeights(set); err != nil {
			t.Error(err)
		}
	}
	set, err := safetensors.OpenDir(golden.Path("models", "qwen2"))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	c := mustConfig(t, "qwen2")
	more, fewer, wider, untied := c, c, c, c
	more.Layers, fewer.Layers, wider.Hidden, untied.Tied = 4, 2, 177, false
	for want, c := range map[string]Config{
		"missing: model.layers.3.self_attn.q_proj.weight, ":                  more,
		"does not have: model.layers.2.input_layernorm.wei":                  fewer,
		"down_proj.weight has shape [64 176], config.json asks for [64 177]": wider,
		"missing: lm_head.weight":                                            untied,
	} {
		if err := c.CheckWeights(set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not mention %q", err, want)
		}
	}
}
