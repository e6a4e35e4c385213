package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// peftConfig is adapter_config.json: the fields that PEFT, vLLM and SGLang need to load a plain LoRA adapter.
type peftConfig struct {
	AlphaPattern      Rules    `json:"alpha_pattern"`
	AutoMapping       any      `json:"auto_mapping"`
	Base              string   `json:"base_model_name_or_path"`
	Bias              string   `json:"bias"`
	ExcludeModules    []string `json:"exclude_modules,omitempty"`
	FanInFanOut       bool     `json:"fan_in_fan_out"`
	InferenceMode     bool     `json:"inference_mode"`
	InitLoRAWeights   bool     `json:"init_lora_weights"`
	LayersPattern     any      `json:"layers_pattern"`
	LayersToTransform []int    `json:"layers_to_transform"`
	Alpha             float64  `json:"lora_alpha"`
	Dropout           decimal  `json:"lora_dropout"`
	ModulesToSave     any      `json:"modules_to_save"`
	Type              string   `json:"peft_type"`
	R                 int      `json:"r"`
	RankPattern       Rules    `json:"rank_pattern"`
	Revision          any      `json:"revision"`
	TargetModules     any      `json:"target_modules"` // list of names, or a pattern
	TaskType          string   `json:"task_type"`
	UseDoRA           bool     `json:"use_dora"`
	UseRSLoRA         bool     `json:"use_rslora"`
}

func (a AdapterFile) peft() peftConfig {
	l := a.Config
	p := peftConfig{
		AlphaPattern: l.AlphaPattern, RankPattern: l.RankPattern, Base: a.Base, Bias: "none", InferenceMode: true,
		InitLoRAWeights: true, ExcludeModules: l.ExcludeModules, LayersToTransform: l.LayersToTransform, Alpha: l.Alpha,
		Dropout: decimal(l.Dropout), Type: "LORA", R: l.R, TargetModules: l.TargetModules, TaskType: "CAUSAL_LM", UseRSLoRA: l.RSLoRA,
	}
	switch {
	case l.TargetPattern != "":
		p.TargetModules = l.TargetPattern
	case slices.Contains(l.TargetModules, AllLinear): // spelt out, as PEFT does, for readers that do not know the word
		var names []string
		for _, projection := range Projections() {
			names = append(names, projection.String())
		}
		p.TargetModules = names
	}
	return p
}

// ReadLoRAConfig reads adapter_config.json. base is where the base model was.
func ReadLoRAConfig(dir string) (l LoRAConfig, base string, err error) {
	path := filepath.Join(dir, AdapterConfigName)
	text, err := os.ReadFile(path)
	if err != nil {
		return LoRAConfig{}, "", err
	}
	if l, base, err = parseLoRA(text); err != nil {
		return LoRAConfig{}, "", fmt.Errorf("read %s: %w", path, err)
	}
	return l, base, nil
}

func parseLoRA(text []byte) (LoRAConfig, string, error) {
	f, err := parseFields(text)
	if err != nil {
		return LoRAConfig{}, "", err
	}
	if err := f.refusePEFT(); err != nil {
		return LoRAConfig{}, "", err
	}
	var patterns struct {
		Rank  Rules `json:"rank_pattern"`
		Alpha Rules `json:"alpha_pattern"`
	}
	if err := json.Unmarshal(text, &patterns); err != nil {
		return LoRAConfig{}, "", err
	}
	l := LoRAConfig{
		R: f.int("r", 8), Alpha: f.float("lora_alpha", 8), RSLoRA: f.bool("use_rslora", false), Dropout: f.float("lora_dropout", 0),
		RankPattern: patterns.Rank, AlphaPattern: patterns.Alpha, ExcludeModules: f.names("exclude_modules"),
	}
	for _, layer := range f.tokens("layers_to_transform") {
		l.LayersToTransform = append(l.LayersToTransform, int(layer))
	}
	if target, ok := f.values["target_modules"].(string); ok && !strings.EqualFold(target, AllLinear) {
		l.TargetPattern = target
	} else if ok {
		l.TargetModules = []string{AllLinear}
	} else {
		l.TargetModules = f.names("target_modules")
	}
	return l, f.text("base_model_name_or_path", ""), f.err
}

// names is a list of strings. A single string would be a pattern, which only target_modules may be.
func (f *fields) names(key string) []string {
	if !f.has(key) {
		return nil
	}
	list, ok := f.values[key].([]any)
	var names []string
	for _, v := range list {
		name, isText := v.(string)
		ok = ok && isText
		names = append(names, name)
	}
	if !ok {
		f.fail(key, "a list of names")
	}
	return names
}

// refusePEFT names the first thing in an adapter's configuration that plain LoRA does not have.
func (f *fields) refusePEFT() error {
	for _, want := range []struct{ key, value string }{{"peft_type", "LORA"}, {"task_type", "CAUSAL_LM"}, {"bias", "none"}} {
		if got := f.text(want.key, want.value); got != want.value {
			return fmt.Errorf("%s %q is not supported; supported: %s", want.key, got, want.value)
		}
	}
	if f.err != nil {
		return f.err
	}
	if !f.has("peft_type") {
		return errors.New("peft_type is missing: not an adapter configuration")
	}
	switch way := f.values["init_lora_weights"]; way {
	case nil, true, false, "gaussian", "eva", "orthogonal":
	default: // the others change the base weights too
		return fmt.Errorf("init_lora_weights %v is not supported: convert the adapter to plain LoRA first", way)
	}
	if layers := f.list("layers_pattern"); len(layers) > 1 || len(layers) == 1 && layers[0] != "layers" && layers[0] != "" {
		return fmt.Errorf("layers_pattern %v is not supported; supported: layers", layers)
	}
	for _, key := range slices.Sorted(maps.Keys(f.values)) {
		if !slices.Contains(plainLoRA(), key) && !empty(f.values[key]) {
			return fmt.Errorf("%s %v is not supported; supported: plain LoRA with r, lora_alpha, use_rslora, lora_dropout, target_modules, exclude_modules, rank_pattern, alpha_pattern, layers_to_transform", key, f.values[key])
		}
	}
	return nil
}

// plainLoRA are the keys of adapter_config.json that plain LoRA heeds, or that change nothing by themselves. Any other
// must be empty.
func plainLoRA() []string {
	return []string{
		"alpha_pattern", "auto_mapping", "base_model_name_or_path", "bias", "exclude_modules", "inference_mode", "init_lora_weights",
		"layers_pattern", "layers_to_transform", "lora_alpha", "lora_dropout", "peft_type", "r", "rank_pattern", "revision",
		"target_modules", "task_type", "use_rslora", // heeded
		"eva_config", "megatron_core", "peft_version", "qalora_group_size", // without effect on a loaded adapter
	}
}

// empty reports whether a JSON value says nothing: null, false, "", [], {}.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
