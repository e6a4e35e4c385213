package policy

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

// goldenConfig is how the golden model of that name was made.
func goldenConfig(name string) Config {
	c := Config{
		Arch: Qwen2, Width: 64, Hidden: 176, Layers: 3, Heads: 4, KVHeads: 2, HeadDim: 16, Vocab: 1000, MaxPositions: 512,
		NormEps: 1e-6, Rope: Rope{Theta: 1e6, Type: "default"}, QKVBias: true, Tied: true, InitStd: 0.02,
		DType: "float32", BOS: NoToken, Pad: 997, EOS: []int32{999},
	}
	switch name {
	case "qwen2-bf16":
		c.DType = "bfloat16"
	case "qwen2-untied":
		c.Vocab, c.Tied, c.Rope.Theta = 1024, false, 1e4
	case "qwen3":
		c.Arch, c.QKVBias, c.HeadDim = Qwen3, false, 24
	case "llama3":
		c.Arch, c.QKVBias, c.Tied, c.NormEps = Llama, false, false, 1e-5
		c.BOS, c.Pad, c.EOS = 994, 999, []int32{998}
		c.Rope = Rope{Theta: 5e5, Type: "llama3", Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalMaxPositionEmbeddings: 64}
	case "smollm":
		c.Arch, c.QKVBias, c.HeadDim, c.Heads, c.NormEps = Llama, false, 8, 8, 1e-5
		c.BOS, c.Pad, c.EOS = 1, 2, []int32{2}
		c.Rope.Theta = 1e5
	}
	return c
}

// readConfigText reads a folder that holds only these files; an empty generation is none.
func readConfigText(t *testing.T, config, generation string) (Config, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"config.json": config, "generation_config.json": generation} {
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return ReadConfig(dir)
}

func TestReadConfigBothStyles(t *testing.T) {
	for _, name := range []string{"qwen2", "qwen2-untied", "qwen3", "llama3", "smollm", "qwen2-bf16"} {
		want := goldenConfig(name)
		got, err := ReadConfig(golden.Path("models", name))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", name, got, want)
		}
		newer, err := os.ReadFile(golden.Path("models", name, "config.v5.json"))
		if os.IsNotExist(err) && name == "qwen2-bf16" {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		got, err = readConfigText(t, string(newer), "")
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s in the style of transformers 5: got %+v\nwant %+v", name, got, want)
		}
	}
}

func TestWriteConfig(t *testing.T) {
	biased := goldenConfig("smollm")
	biased.QKVBias, biased.OutBias, biased.MLPBias, biased.EOS, biased.DType = true, true, true, []int32{2, 0}, ""
	linear := goldenConfig("qwen3")
	linear.Rope, linear.EOS, linear.Pad = Rope{Theta: 1e4, Type: "linear", Factor: 4}, nil, NoToken
	for _, want := range []Config{goldenConfig("qwen2-untied"), goldenConfig("llama3"), biased, linear} {
		dir := t.TempDir()
		if err := WriteConfig(dir, want); err != nil {
			t.Fatal(err)
		}
		got, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
	bad := goldenConfig("qwen2")
	bad.Arch = "bert"
	if err := WriteConfig(t.TempDir(), bad); err == nil {
		t.Error("a configuration that cannot be read was written")
	}
}

// with is the golden qwen2 configuration as an object with some keys changed; a nil value removes the key.
func with(t *testing.T, model string, change map[string]any) string {
	t.Helper()
	text, err := os.ReadFile(golden.Path("models", model, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	maps.Copy(m, change)
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
	text, err = json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type object = map[string]any

func TestReadConfigErrors(t *testing.T) {
	for _, c := range []struct {
		name, model string
		change      object
		want        []string // parts of the message
	}{
		{"architecture", "qwen2", object{"architectures": []string{"MistralForCausalLM"}, "model_type": "mistral"},
			[]string{"MistralForCausalLM", "LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}},
		{"head", "qwen2", object{"architectures": []string{"Qwen2ForSequenceClassification"}}, []string{"Qwen2ForSequenceClassification", "supported"}},
		{"disagreement", "qwen2", object{"model_type": "qwen3"}, []string{"Qwen2ForCausalLM", `"qwen3"`}},
		{"no architecture", "qwen2", object{"architectures": nil, "model_type": nil}, []string{"supported"}},
		{"quantised", "qwen2", object{"quantization_config": object{"quant_method": "gptq"}}, []string{"quantization_config", "gptq", "GGUF"}},
		{"window", "qwen2", object{"use_sliding_window": true}, []string{"use_sliding_window"}},
		{"layer types", "qwen2", object{"layer_types": []string{"full_attention", "sliding_attention"}}, []string{"sliding_attention"}},
		{"activation", "qwen2", object{"hidden_act": "gelu"}, []string{"gelu", "silu"}},
		{"dropout", "qwen2", object{"attention_dropout": 0.1}, []string{"attention_dropout"}},
		{"yarn", "qwen2", object{"rope_scaling": object{"type": "yarn", "factor": 4.0}}, []string{"yarn", "default, linear, llama3"}},
		{"linear without factor", "qwen2", object{"rope_scaling": object{"type": "linear"}}, []string{"linear", "factor"}},
		{"llama3 without factors", "llama3", object{"rope_scaling": object{"rope_type": "llama3", "factor": 8.0}}, []string{"low_freq_factor"}},
		{"rope per layer", "qwen2", object{"rope_parameters": object{"full_attention": object{"rope_theta": 1.0}}}, []string{"full_attention"}},
		{"partial rotary", "qwen2", object{"partial_rotary_factor": 0.5}, []string{"partial_rotary_factor"}},
		{"missing size", "qwen2", object{"hidden_size": nil}, []string{"hidden_size is missing"}},
		{"fraction", "qwen2", object{"num_hidden_layers": 2.5}, []string{"num_hidden_layers", "2.5"}},
		{"string", "qwen2", object{"vocab_size": "many"}, []string{"vocab_size", "many"}},
		{"huge", "qwen2", object{"vocab_size": 1e15}, []string{"vocab_size"}},
		{"negative", "qwen2", object{"intermediate_size": -1}, []string{"intermediate_size"}},
		{"groups", "qwen2", object{"num_key_value_heads": 3}, []string{"num_key_value_heads 3"}},
		{"odd head", "qwen2", object{"head_dim": 15}, []string{"head_dim 15"}},
		{"uneven heads", "qwen2", object{"num_attention_heads": 6}, []string{"hidden_size 64", "head_dim"}},
		{"eps", "qwen2", object{"rms_norm_eps": 0}, []string{"rms_norm_eps"}},
		{"dtype", "qwen2", object{"torch_dtype": "float8_e4m3fn"}, []string{"float8_e4m3fn", "bfloat16"}},
		{"eos beyond the vocabulary", "qwen2", object{"eos_token_id": 1000}, []string{"1000", "vocab_size"}},
		{"eos of a wrong type", "qwen2", object{"eos_token_id": "</s>"}, []string{"eos_token_id"}},
	} {
		_, err := readConfigText(t, with(t, c.model, c.change), "")
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, part := range append(c.want, "config") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not mention %q", c.name, err, part)
			}
		}
	}
	for _, text := range []string{"", "null", "[]", "{", `{"model_type": 3}`} {
		if _, err := readConfigText(t, text+" ", ""); err == nil {
			t.Errorf("config.json %q: no error", text)
		}
	}
}

func TestReadConfigVariants(t *testing.T) {
	c, err := readConfigText(t, with(t, "qwen3", object{
		"head_dim": nil, "num_key_value_heads": nil, "torch_dtype": "torch.float16", "architectures": nil,
		"rope_scaling": object{"type": "linear", "factor": 2}, "pad_token_id": -1, "eos_token_id": []int{5, 6}, "attention_bias": true,
	}), `{"eos_token_id": [7, 8, 9]}`)
	if err != nil {
		t.Fatal(err)
	}
	want := goldenConfig("qwen3")
	want.HeadDim, want.KVHeads, want.DType, want.QKVBias, want.OutBias = 128, 4, "float16", true, true
	want.Rope = Rope{Theta: 1e6, Type: "linear", Factor: 2}
	want.Pad, want.EOS = NoToken, []int32{7, 8, 9}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
	if c, err = readConfigText(t, with(t, "qwen3", object{"eos_token_id": []int{5, 6}}), `{"eos_token_id": null}`); err != nil || !reflect.DeepEqual(c.EOS, []int32{5, 6}) {
		t.Errorf("eos of config.json: %v, %v", c.EOS, err)
	}
	if _, err = readConfigText(t, with(t, "qwen3", nil), `{"eos_token_id": "x"}`); err == nil || !strings.Contains(err.Error(), "generation_config.json") {
		t.Errorf("bad generation_config.json: %v", err)
	}
}

// Expected values: transformers' formulas in numpy float32.
func TestInvFreq(t *testing.T) {
	for _, c := range []struct {
		dim  int
		rope Rope
		want []float32
	}{
		{8, Rope{Theta: 1e5, Type: "default"}, []float32{1, 5.623413e-02, 3.1622779e-03, 1.7782794e-04}},
		{16, Rope{Theta: 1e6, Type: "default"}, []float32{1, 1.7782794e-01, 3.162278e-02, 5.6234132e-03, 1e-03, 1.7782794e-04, 3.1622774e-05, 5.6234135e-06}},
		{16, Rope{Theta: 1e4, Type: "linear", Factor: 4}, []float32{2.5e-01, 7.905694e-02, 2.5e-02, 7.905695e-03, 2.5e-03, 7.9056947e-04, 2.5e-04, 7.905695e-05}},
		{16, Rope{Theta: 5e5, Type: "llama3", Factor: 8, LowFreqFactor: 1, HighFreqFactor: 4, OriginalMaxPositionEmbeddings: 64},
			[]float32{1, 7.940301e-02, 4.700754e-03, 9.1158313e-04, 1.7677668e-04, 3.4281024e-05, 6.6478706e-06, 1.2891732e-06}},
		{64, Rope{Theta: 5e5, Type: "llama3", Factor: 32, LowFreqFactor: 1, HighFreqFactor: 4, OriginalMaxPositionEmbeddings: 8192}, // Llama 3.2
			[]float32{1, 6.636012e-01, 4.4036663e-01, 2.922278e-01, 1.9392276e-01, 1.2868738e-01, 8.53971e-02, 5.666962e-02,
				3.760603e-02, 2.4955409e-02, 1.656044e-02, 1.0989529e-02, 7.292665e-03, 4.8394212e-03, 3.211446e-03, 1.290548e-03,
				4.295567e-04, 9.708286e-05, 1.9461639e-05, 1.2914768e-05, 8.570256e-06, 5.687232e-06, 3.7740544e-06, 2.504467e-06,
				1.6619676e-06, 1.1028836e-06, 7.3187493e-07, 4.856731e-07, 3.222933e-07, 2.1387423e-07, 1.419272e-07, 9.418307e-08}},
	} {
		got := Config{HeadDim: c.dim, Rope: c.rope}.InvFreq()
		if len(got) != len(c.want) {
			t.Fatalf("%v: %d frequencies, want %d", c.rope, len(got), len(c.want))
		}
		for i := range got {
			if d := math.Abs(float64(got[i]/c.want[i]) - 1); d > 2.4e-7 { // two units in the last place: powf differs between libraries
				t.Errorf("%v: frequency %d is %v, want %v (relative %.2g)", c.rope, i, got[i], c.want[i], d)
			}
		}
	}
}

func TestRotaryTables(t *testing.T) {
	c := Config{HeadDim: 4, Rope: Rope{Theta: 1e4, Type: "default"}} // frequencies 1 and 0.01
	cos, sin := c.RotaryTables(3)
	golden.Close(t, "cos", cos, []float32{1, 1, 0.5403023, 0.99995, -0.41614684, 0.9998}, 1e-7)
	golden.Close(t, "sin", sin, []float32{0, 0, 0.84147098, 0.009999833, 0.90929743, 0.019998667}, 1e-7)
}
