package policy

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// chosen is which modules get an adapter: "layer.projection/rank" each.
func chosen(t *testing.T, l LoRAConfig) []LoRAModule {
	t.Helper()
	list, err := l.Modules(goldenConfig("qwen2"))
	if err != nil {
		t.Fatalf("%+v: %v", l, err)
	}
	return list
}

func TestLoRAModules(t *testing.T) {
	all := chosen(t, LoRAConfig{R: 4, Alpha: 8, TargetModules: []string{AllLinear}})
	if len(all) != 3*7 || all[0] != (LoRAModule{0, Q, 4, 2}) || all[20] != (LoRAModule{2, Down, 4, 2}) {
		t.Errorf("all-linear: %v", all)
	}
	two := []LoRAModule{{0, Q, 4, 2}, {0, V, 4, 2}, {2, Q, 4, 2}, {2, V, 4, 2}}
	for name, l := range map[string]LoRAConfig{
		"names":       {TargetModules: []string{"v_proj", "self_attn.q_proj"}, LayersToTransform: []int{0, 2}},
		"whole paths": {TargetModules: []string{"model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.v_proj", "layers.2.self_attn.q_proj", "layers.2.self_attn.v_proj"}},
		"pattern":     {TargetPattern: `.*\.[02]\.self_attn\.(q|v)_proj`},
		"exclusion":   {TargetModules: []string{AllLinear}, ExcludeModules: []string{"mlp.gate_proj", "up_proj", "down_proj", "o_proj", "self_attn.k_proj", "model.layers.1.self_attn.q_proj", "1.self_attn.v_proj"}},
	} {
		l.R, l.Alpha = 4, 8
		if got := chosen(t, l); !reflect.DeepEqual(got, two) {
			t.Errorf("%s: %v, want %v", name, got, two)
		}
	}
}

func TestLoRAScaling(t *testing.T) {
	if s := (LoRAConfig{R: 16, Alpha: 32}).Scaling(); s != 2 {
		t.Errorf("alpha/r = %v", s)
	}
	if s := (LoRAConfig{R: 16, Alpha: 32, RSLoRA: true}).Scaling(); s != 8 {
		t.Errorf("alpha/sqrt(r) = %v", s)
	}
	// The first rule that matches counts; a rule that is only the start of a name does not.
	got := chosen(t, LoRAConfig{
		R: 8, Alpha: 16, RSLoRA: true, TargetModules: []string{"q_proj", "v_proj"}, LayersToTransform: []int{1},
		RankPattern:  Rules{{"q_pro", 2}, {`model\.layers\.1\.self_attn\.q_proj`, 4}, {"q_proj", 64}},
		AlphaPattern: Rules{{`.*\.v_proj|k_proj`, 3}},
	})
	want := []LoRAModule{{1, Q, 4, 8}, {1, V, 8, 3 / math.Sqrt(8)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("patterns: %v, want %v", got, want)
	}
}

func TestLoRAErrors(t *testing.T) {
	q := []string{"q_proj"}
	for want, l := range map[string]LoRAConfig{
		"r 0":                {R: 0, TargetModules: q},
		"dropout 1":          {R: 1, Dropout: 1, TargetModules: q},
		"alpha NaN":          {R: 1, Alpha: math.NaN(), TargetModules: q},
		"set target_modules": {R: 1},
		"lm_head":            {R: 1, TargetModules: []string{"q_proj", "lm_head"}},
		"embed_tokens":       {R: 1, TargetPattern: ".*(q_proj|embed_tokens)"},
		`"query"`:            {R: 1, TargetModules: []string{"q_proj", "query"}},
		`"q"`:                {R: 1, TargetPattern: "q"},
		"no look-ahead":      {R: 1, TargetPattern: "(?!x).*"},
		"has 3":              {R: 1, TargetModules: q, LayersToTransform: []int{3}},
		"into the pattern":   {R: 1, TargetPattern: ".*q_proj", LayersToTransform: []int{1}},
		"rank_pattern \"x\"": {R: 1, TargetModules: q, RankPattern: Rules{{"x", 1.5}}},
		"pattern \"(\"":      {R: 1, TargetModules: q, AlphaPattern: Rules{{"(", 1}}},
		`without ["o_proj"]`: {R: 1, TargetModules: []string{"o_proj"}, ExcludeModules: []string{"o_proj"}},
	} {
		if _, err := l.Modules(goldenConfig("qwen2")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v does not mention %s", l, err, want)
		}
	}
}
