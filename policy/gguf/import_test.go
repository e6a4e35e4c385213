package gguf

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/gguf/gguftest"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}

// asGGUF is a golden model as a GGUF file.
func asGGUF(t *testing.T, model string) *builder {
	t.Helper()
	return &builder{gguftest.Model(t, golden.Path("models", model))}
}

func importGGUF(t *testing.T, b *builder) (dir string, err error) {
	t.Helper()
	root := t.TempDir()
	file := filepath.Join(root, "model.gguf")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(root, "model")
	return dir, Import(file, dir, "float32")
}

// A model that went to GGUF comes back with the same weights, configuration and tokenizer.
func TestImport(t *testing.T) {
	for _, model := range []string{"qwen2", "qwen2-untied", "qwen3", "smollm"} {
		dir, err := importGGUF(t, asGGUF(t, model))
		if err != nil {
			t.Errorf("%s: %v", model, err)
			continue
		}
		src := golden.Path("models", model)
		want, _ := policy.ReadConfig(src)
		got, err := policy.ReadConfig(dir)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: configuration %+v, %v\nwant %+v", model, got, err, want)
		}
		sameWeights(t, model, dir, src)
		sameTokenizer(t, model, dir, src)
	}
}

func sameWeights(t *testing.T, model, dir, src string) {
	t.Helper()
	want := golden.Tensors(t, filepath.Join(src, safetensors.SingleName))
	got := golden.Tensors(t, filepath.Join(dir, safetensors.SingleName))
	if len(got) != len(want) {
		t.Errorf("%s: %d tensors, want %d", model, len(got), len(want))
	}
	for name := range want {
		golden.Close(t, model+" "+name, got[name].Float, want[name].Float, 0)
	}
}

func sameTokenizer(t *testing.T, model, dir, src string) {
	t.Helper()
	var got, want gguftest.Tokenizer
	readJSON(t, filepath.Join(dir, "tokenizer.json"), &got)
	readJSON(t, filepath.Join(src, "tokenizer.json"), &want)
	for _, a := range want.Added { // the importer keeps added tokens in the vocabulary too, as SmolLM2's own file does
		want.Model.Vocab[a.Content] = a.ID
	}
	if !reflect.DeepEqual(got.Model.Vocab, want.Model.Vocab) || got.Model.IgnoreMerges != want.Model.IgnoreMerges {
		t.Errorf("%s: vocabulary of %d tokens differs", model, len(got.Model.Vocab))
	}
	if !reflect.DeepEqual(got.Added, want.Added) || !reflect.DeepEqual(got.Normalizer, want.Normalizer) {
		t.Errorf("%s: added tokens %v or normaliser %v differ", model, got.Added, got.Normalizer)
	}
	trim := func(v any) string { // trim_offsets has no influence on ids
		return strings.ReplaceAll(fmt.Sprint(v), "trim_offsets:true", "trim_offsets:false")
	}
	if trim(got.PreTokenizer) != trim(want.PreTokenizer) {
		t.Errorf("%s: pre-tokeniser %v, want %v", model, got.PreTokenizer, want.PreTokenizer)
	}
	for i := range want.Model.Merges {
		if got.Merge(t, i) != want.Merge(t, i) {
			t.Fatalf("%s: merge %d is %q, want %q", model, i, got.Merge(t, i), want.Merge(t, i))
		}
	}
	var gotSettings, wantSettings map[string]any
	readJSON(t, filepath.Join(dir, "tokenizer_config.json"), &gotSettings)
	readJSON(t, filepath.Join(src, "tokenizer_config.json"), &wantSettings)
	for _, key := range []string{"added_tokens_decoder", "bos_token", "eos_token", "pad_token", "chat_template", "add_bos_token"} {
		if value, ok := wantSettings[key]; ok && !reflect.DeepEqual(gotSettings[key], value) {
			t.Errorf("%s: %s is %v, want %v", model, key, gotSettings[key], value)
		}
	}
}

// Llama 3.2's scaling is recovered from the divisors that llama.cpp's converter stores.
func TestImportLlama3(t *testing.T) {
	b := asGGUF(t, "llama3")
	rope := policy.Rope{Theta: 5e5, Type: "llama3", Factor: 32, LowFreqFactor: 1, HighFreqFactor: 4, OriginalMaxPositionEmbeddings: 8192}
	scaled := policy.Config{HeadDim: 16, Rope: rope}.InvFreq()
	plain := policy.Config{HeadDim: 16, Rope: policy.Rope{Theta: 5e5, Type: "default"}}.InvFreq()
	divisors := make([]float32, 8)
	for i := range divisors {
		divisors[i] = plain[i] / scaled[i]
	}
	if divisors[0] != 1 || divisors[7] != 32 || divisors[4] <= 1 || divisors[4] >= 32 {
		t.Fatalf("divisors %v", divisors)
	}
	b.add("rope_freqs.weight", F32, []int{8}, floats(divisors...))
	b.Meta["tokenizer.ggml.eot_token_id"] = uint32(995)
	b.Meta["tokenizer.ggml.eom_token_id"] = uint32(994)
	dir, err := importGGUF(t, b)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := policy.ReadConfig(golden.Path("models", "llama3"))
	want.Rope, want.EOS = rope, []int32{998, 995, 994}
	if got, err := policy.ReadConfig(dir); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("configuration %+v, %v\nwant %+v", got, err, want)
	}
	sameWeights(t, "llama3", dir, golden.Path("models", "llama3"))
	sameTokenizer(t, "llama3", dir, golden.Path("models", "llama3"))
	var tok struct {
		Post struct {
			Type   string
			Single []struct{ SpecialToken struct{ ID string } }
		} `json:"post_processor"`
	}
	readJSON(t, filepath.Join(dir, "tokenizer.json"), &tok)
	if tok.Post.Type != "TemplateProcessing" || len(tok.Post.Single) != 2 || tok.Post.Single[0].SpecialToken.ID != "<|begin_of_text|>" {
		t.Errorf("post-processor %+v", tok.Post)
	}
	b.Tensors[len(b.Tensors)-1].Data = floats(1, 1, 1, 1, 9, 32, 32, 32)
	if _, err := importGGUF(t, b); err == nil || !strings.Contains(err.Error(), "rope_freqs.weight") {
		t.Errorf("another scaling: %v", err)
	}
}

func TestImportErrors(t *testing.T) {
	for want, change := range map[string]func(b *builder){
		`architecture "gemma" is not supported; supported: [llama qwen2 qwen3]`: func(b *builder) { b.Meta["general.architecture"] = "gemma" },
		`"llama.context_length" is missing`:                                     func(b *builder) { delete(b.Meta, "llama.context_length") },
		"llama.block_count":                                                     func(b *builder) { b.Meta["llama.block_count"] = "three" },
		"llama.attention.head_count_kv":                                         func(b *builder) { b.Meta["llama.attention.head_count_kv"] = []any{uint32(2)} },
		"split over several files":                                              func(b *builder) { b.Meta["split.count"] = uint16(2) },
		"dimension_count is 4":                                                  func(b *builder) { b.Meta["llama.rope.dimension_count"] = uint32(4) },
		`rope scaling "yarn"`:                                                   func(b *builder) { b.Meta["llama.rope.scaling.type"] = "yarn" },
		`tokenizer.ggml.model "llama"`:                                          func(b *builder) { b.Meta["tokenizer.ggml.model"] = "llama" },
		`"gpt-4o" is not supported; supported: smollm, qw`:                      func(b *builder) { b.Meta["tokenizer.ggml.pre"] = "gpt-4o" },
		"999 tokens and 1000 token types":                                       func(b *builder) { b.Meta["tokenizer.ggml.tokens"] = b.Meta["tokenizer.ggml.tokens"].([]any)[1:] },
		"is empty or the same as token 5":                                       func(b *builder) { l := b.Meta["tokenizer.ggml.tokens"].([]any); l[7] = l[5] },
		`merge 3, "nonsense"`:                                                   func(b *builder) { b.Meta["tokenizer.ggml.merges"].([]any)[3] = "nonsense" },
		"special token 5000":                                                    func(b *builder) { b.Meta["tokenizer.ggml.eos_token_id"] = uint32(5000) },
		"bos_token_id is missing": func(b *builder) {
			delete(b.Meta, "tokenizer.ggml.bos_token_id")
			b.Meta["tokenizer.ggml.add_bos_token"] = true
		},
		`"blk.2.ffn_up.weight" (model.layers.2.mlp.up_proj.weight) is missing`: func(b *builder) {
			b.Tensors = slices.DeleteFunc(b.Tensors, func(x gguftest.Tensor) bool { return x.Name == "blk.2.ffn_up.weight" })
		},
		`"blk.0.ffn_gate.weight" has shape [176 64]; the metadata ask for [175 64]`: func(b *builder) {
			b.Meta["llama.feed_forward_length"] = uint32(175)
		},
		`"blk.0.extra" is none that LlamaForCausalLM has`: func(b *builder) { b.add("blk.0.extra", F32, []int{1}, floats(1)) },
		"only 29 tensors": func(b *builder) { b.Meta["llama.block_count"] = uint32(1 << 30) },
	} {
		b := asGGUF(t, "smollm")
		change(b)
		dir, err := importGGUF(t, b)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "model.gguf") {
			t.Errorf("error %v does not mention %s", err, want)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*")); len(left) != 1 {
			t.Errorf("%s: a failed import left %v", want, left)
		}
	}
	dir, err := importGGUF(t, asGGUF(t, "smollm"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Import(filepath.Join(filepath.Dir(dir), "model.gguf"), dir, "float32"); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("import over a model: %v", err)
	}
}
