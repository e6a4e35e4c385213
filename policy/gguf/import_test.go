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
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// hfTokenizer is the part of tokenizer.json that GGUF files hold.
type hfTokenizer struct {
	Added []struct {
		ID      int32
		Content string
		Special bool
	} `json:"added_tokens"`
	Normalizer   any `json:"normalizer"`
	PreTokenizer any `json:"pre_tokenizer"`
	Model        struct {
		Vocab        map[string]int32
		Merges       []json.RawMessage
		IgnoreMerges bool `json:"ignore_merges"`
	}
}

func (h *hfTokenizer) merge(t *testing.T, i int) string {
	t.Helper()
	var pair []string
	if err := json.Unmarshal(h.Model.Merges[i], &pair); err == nil {
		return strings.Join(pair, " ")
	}
	var text string
	if err := json.Unmarshal(h.Model.Merges[i], &text); err != nil {
		t.Fatal(err)
	}
	return text
}

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

// asGGUF turns a golden model into a GGUF file as llama.cpp's converter does.
func asGGUF(t *testing.T, model string) *builder {
	t.Helper()
	dir := golden.Path("models", model)
	c, err := policy.ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder()
	arch := string(c.Arch)
	b.meta = map[string]any{
		"general.architecture": arch, arch + ".embedding_length": uint32(c.Width), arch + ".feed_forward_length": uint32(c.Hidden),
		arch + ".block_count": uint32(c.Layers), arch + ".attention.head_count": uint32(c.Heads),
		arch + ".attention.head_count_kv": uint32(c.KVHeads), arch + ".attention.key_length": uint32(c.HeadDim),
		arch + ".context_length": uint32(c.MaxPositions), arch + ".attention.layer_norm_rms_epsilon": float32(c.NormEps),
		arch + ".rope.freq_base": float32(c.Rope.Theta), arch + ".rope.dimension_count": uint32(c.HeadDim),
		"tokenizer.ggml.eos_token_id": uint32(c.EOS[0]), "tokenizer.ggml.padding_token_id": uint32(c.Pad),
	}
	if c.BOS != policy.NoToken {
		b.meta["tokenizer.ggml.bos_token_id"] = uint32(c.BOS)
	}
	addWeights(t, b, c, dir)
	addTokenizer(t, b, c, dir)
	return b
}

func addWeights(t *testing.T, b *builder, c policy.Config, dir string) {
	t.Helper()
	set, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	for _, p := range c.Parameters() {
		x, _ := set.Tensor(p.Name)
		name := p.Name
		for _, pair := range [][2]string{
			{"model.layers.", "blk."}, {"self_attn.o_proj", "attn_output"}, {"self_attn.", "attn_"}, {"_proj", ""}, {"mlp.", "ffn_"},
			{"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"},
			{"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"}, {"lm_head", "output"},
		} {
			name = strings.Replace(name, pair[0], pair[1], 1)
		}
		data := x.Data
		if c.Arch == policy.Llama && (strings.Contains(name, "attn_q") || strings.Contains(name, "attn_k")) {
			data = permute(x, c.HeadDim)
		}
		b.add(name, F32, p.Shape, data)
	}
}

// permute is llama.cpp's: the rows of a head, seen as [2, HeadDim/2], are transposed to [HeadDim/2, 2].
func permute(x safetensors.Tensor, headDim int) (data []byte) {
	for head := 0; head < x.Shape[0]; head += headDim {
		for pair := range headDim / 2 {
			for which := range 2 {
				r := head + which*headDim/2 + pair
				data = append(data, x.Rows(r, r+1).Data...)
			}
		}
	}
	return data
}

func addTokenizer(t *testing.T, b *builder, c policy.Config, dir string) {
	t.Helper()
	var h hfTokenizer
	readJSON(t, filepath.Join(dir, "tokenizer.json"), &h)
	tokens, kinds := make([]string, c.Vocab), make([]int32, c.Vocab)
	for id := range tokens { // what the converter makes of ids that only fill up the embedding
		tokens[id], kinds[id] = fmt.Sprintf("[PAD%d]", id), unused
	}
	for token, id := range h.Model.Vocab {
		tokens[id], kinds[id] = token, 1
	}
	for _, a := range h.Added {
		tokens[a.ID], kinds[a.ID] = a.Content, userDefined
		if a.Special {
			kinds[a.ID] = control
		}
	}
	var merges []string
	for i := range h.Model.Merges {
		merges = append(merges, h.merge(t, i))
	}
	b.meta["tokenizer.ggml.model"] = "gpt2"
	b.meta["tokenizer.ggml.pre"] = map[bool]string{true: "llama-bpe", false: "qwen2"}[h.Model.IgnoreMerges]
	if h.Normalizer == nil && !h.Model.IgnoreMerges {
		b.meta["tokenizer.ggml.pre"] = "smollm"
	}
	b.meta["tokenizer.ggml.tokens"], b.meta["tokenizer.ggml.token_type"] = texts(tokens), numbers(kinds)
	b.meta["tokenizer.ggml.merges"] = texts(merges)
	var settings struct {
		Template string `json:"chat_template"`
	}
	readJSON(t, filepath.Join(dir, "tokenizer_config.json"), &settings)
	if settings.Template != "" {
		b.meta["tokenizer.chat_template"] = settings.Template
	}
}

func importGGUF(t *testing.T, b *builder) (dir string, err error) {
	t.Helper()
	root := t.TempDir()
	file := filepath.Join(root, "model.gguf")
	if err := os.WriteFile(file, b.bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(root, "model")
	return dir, Import(file, dir)
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
	var got, want hfTokenizer
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
		if got.merge(t, i) != want.merge(t, i) {
			t.Fatalf("%s: merge %d is %q, want %q", model, i, got.merge(t, i), want.merge(t, i))
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
	b.meta["tokenizer.ggml.eot_token_id"] = uint32(995)
	dir, err := importGGUF(t, b)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := policy.ReadConfig(golden.Path("models", "llama3"))
	want.Rope, want.EOS = rope, []int32{998, 995}
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
	b.tensors[len(b.tensors)-1].Data = floats(1, 1, 1, 1, 9, 32, 32, 32)
	if _, err := importGGUF(t, b); err == nil || !strings.Contains(err.Error(), "rope_freqs.weight") {
		t.Errorf("another scaling: %v", err)
	}
}

func TestImportErrors(t *testing.T) {
	for want, change := range map[string]func(b *builder){
		`architecture "gemma" is not supported; supported: [llama qwen2 qwen3]`: func(b *builder) { b.meta["general.architecture"] = "gemma" },
		`"llama.context_length" is missing`:                                     func(b *builder) { delete(b.meta, "llama.context_length") },
		"llama.block_count":                                                     func(b *builder) { b.meta["llama.block_count"] = "three" },
		"llama.attention.head_count_kv":                                         func(b *builder) { b.meta["llama.attention.head_count_kv"] = []any{uint32(2)} },
		"split over several files":                                              func(b *builder) { b.meta["split.count"] = uint16(2) },
		"dimension_count is 4":                                                  func(b *builder) { b.meta["llama.rope.dimension_count"] = uint32(4) },
		`rope scaling "yarn"`:                                                   func(b *builder) { b.meta["llama.rope.scaling.type"] = "yarn" },
		`tokenizer.ggml.model "llama"`:                                          func(b *builder) { b.meta["tokenizer.ggml.model"] = "llama" },
		`"gpt-4o" is not supported; supported: smollm, qw`:                      func(b *builder) { b.meta["tokenizer.ggml.pre"] = "gpt-4o" },
		"999 tokens and 1000 token types":                                       func(b *builder) { b.meta["tokenizer.ggml.tokens"] = b.meta["tokenizer.ggml.tokens"].([]any)[1:] },
		"is empty or the same as token 5":                                       func(b *builder) { l := b.meta["tokenizer.ggml.tokens"].([]any); l[7] = l[5] },
		`merge 3, "nonsense"`:                                                   func(b *builder) { b.meta["tokenizer.ggml.merges"].([]any)[3] = "nonsense" },
		"special token 5000":                                                    func(b *builder) { b.meta["tokenizer.ggml.eos_token_id"] = uint32(5000) },
		"bos_token_id is missing": func(b *builder) {
			delete(b.meta, "tokenizer.ggml.bos_token_id")
			b.meta["tokenizer.ggml.add_bos_token"] = true
		},
		`"blk.2.ffn_up.weight" (model.layers.2.mlp.up_proj.weight) is missing`: func(b *builder) {
			b.tensors = slices.DeleteFunc(b.tensors, func(x Tensor) bool { return x.Name == "blk.2.ffn_up.weight" })
		},
		`"blk.0.ffn_gate.weight" has shape [176 64]; the metadata ask for [175 64]`: func(b *builder) {
			b.meta["llama.feed_forward_length"] = uint32(175)
		},
		`"blk.0.extra" is none that LlamaForCausalLM has`: func(b *builder) { b.add("blk.0.extra", F32, []int{1}, floats(1)) },
		"only 29 tensors": func(b *builder) { b.meta["llama.block_count"] = uint32(1 << 30) },
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
	if err := Import(filepath.Join(filepath.Dir(dir), "model.gguf"), dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("import over a model: %v", err)
	}
}
