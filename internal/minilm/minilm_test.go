package minilm

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openOn(t testing.TB, dir string) *Encoder {
	t.Helper()
	dev, err := cpu.New(cpu.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, dev.Close()) })
	e, err := Open(dir, dev)
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	return e
}

// tiny are the sizes of a model with random weights.
const (
	tinyVocab, tinyWidth, tinyHeads, tinyInner, tinyTokens = 40, 12, 3, 20, 9
	tinyEps                                                = 1e-12
)

// tinyFiles is a model folder. Its words are a0 to a9, and their pieces.
func tinyFiles(t testing.TB) (dir string, weights map[string][]float32) {
	t.Helper()
	dir, weights = t.TempDir(), map[string][]float32{}
	r := rand.New(rand.NewPCG(1, 2))
	var items []safetensors.Item
	tensor := func(name string, shape ...int) {
		n := 1
		for _, s := range shape {
			n *= s
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(r.NormFloat64() / 2)
		}
		weights[name] = values
		items = append(items, safetensors.Float32s(name, safetensors.F32, shape, values))
	}
	tinyTensors(tensor)
	must(t, safetensors.Write(filepath.Join(dir, "model.safetensors"), items, safetensors.Options{}))
	write(t, dir, "config.json", `{"model_type":"bert","vocab_size":40,"hidden_size":12,"num_hidden_layers":2,"num_attention_heads":3,
		"intermediate_size":20,"max_position_embeddings":9,"type_vocab_size":2,"layer_norm_eps":1e-12,"hidden_act":"gelu"}`)
	write(t, dir, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na0\na1\na2\na3\na4\na5\na6\na7\na8\na9\n##b\n##c\n")
	return dir, weights
}

// tinyTensors calls tensor with the name and shape of each of the tiny model's tensors.
func tinyTensors(tensor func(name string, shape ...int)) {
	product := func(name string, rows, cols int) {
		tensor(name+".weight", rows, cols)
		tensor(name+".bias", rows)
	}
	norm := func(name string) {
		tensor(name+".weight", tinyWidth)
		tensor(name+".bias", tinyWidth)
	}
	tensor("embeddings.word_embeddings.weight", tinyVocab, tinyWidth)
	tensor("embeddings.position_embeddings.weight", tinyTokens, tinyWidth)
	tensor("embeddings.token_type_embeddings.weight", 2, tinyWidth)
	norm("embeddings.LayerNorm")
	for _, at := range []string{"encoder.layer.0.", "encoder.layer.1."} {
		for _, name := range []string{"self.query", "self.key", "self.value", "output.dense"} {
			product(at+"attention."+name, tinyWidth, tinyWidth)
		}
		product(at+"intermediate.dense", tinyInner, tinyWidth)
		product(at+"output.dense", tinyWidth, tinyInner)
		norm(at + "attention.output.LayerNorm")
		norm(at + "output.LayerNorm")
	}
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

// The encoder gives what the formulas of BERT give when they are written down once more in float64, without a device. It
// catches a causal mask, a wrong order of norm and sum, an approximate gelu, a missing bias and a mean over other texts' tokens.
func TestEncoderAgainstFloat64(t *testing.T) {
	dir, weights := tinyFiles(t)
	e := openOn(t, dir)
	texts := []string{"a0 a1b a2", "a3cc", "a9 a8 a7 a6 a5 a4 a3 a2 a1", "a0"}
	tokens := [][]int{{2, 4, 5, 14, 6, 3}, {2, 7, 15, 15, 3}, {2, 13, 12, 11, 10, 9, 8, 7, 3}, {2, 4, 3}} // by hand; 9 at most
	got, err := e.Embed(t.Context(), texts)
	must(t, err)
	for i, ids := range tokens {
		want := reference(weights, ids)
		for j := range want {
			if math.Abs(want[j]-float64(got[i][j])) > 2e-6 {
				t.Fatalf("%q, number %d: %v, want %v", texts[i], j, got[i][j], want[j])
			}
		}
		alone, err := e.Embed(t.Context(), texts[i:i+1])
		must(t, err)
		if !slices.Equal(alone[0], got[i]) {
			t.Errorf("%q has other bits alone", texts[i])
		}
	}
}

// Texts become the ids that Hugging Face's tokenizers gives them with MiniLM's tokenizer. The vocabulary here is cut to the
// tokens that occur in these texts, or could.
func TestIDs(t *testing.T) {
	w, err := loadWordPieces(filepath.Join("testdata", "tokenizer"))
	must(t, err)
	var cases []struct {
		Text string
		IDs  []int32
	}
	text, err := os.ReadFile(filepath.Join("testdata", "ids.json"))
	must(t, err)
	must(t, json.Unmarshal(text, &cases))
	if len(cases) < 32 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		if got := w.encode(c.Text, 256); !slices.Equal(got, c.IDs) {
			t.Errorf("%q: ids %v, want %v", c.Text, got, c.IDs)
		}
	}
}

// A text that writes special tokens gets none: [SEP] is a word in brackets.
func TestSpecialTokensInTexts(t *testing.T) {
	dir, _ := tinyFiles(t)
	w, err := loadWordPieces(dir)
	must(t, err)
	if got := w.encode("a0[SEP]a1", 9); !slices.Equal(got, []int32{2, 4, 1, 1, 1, 5, 3}) {
		t.Errorf("ids %v", got)
	}
}

// Folders that are not of this kind are refused with the place of the fault.
func TestRefusedFolders(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"another architecture": {"config.json", `{"model_type":"mpnet"}`, "mpnet"},
		"no sizes":             {"config.json", `{"model_type":"bert"}`, "size"},
		"another gelu":         {"config.json", `{"model_type":"bert","hidden_act":"gelu_new"}`, "gelu_new"},
		"other sizes": {"config.json", `{"model_type":"bert","vocab_size":40,"hidden_size":12,"num_hidden_layers":2,"num_attention_heads":3,
			"intermediate_size":24,"max_position_embeddings":9}`, "encoder.layer.0.intermediate.dense.weight"},
		"more layers": {"config.json", `{"model_type":"bert","vocab_size":40,"hidden_size":12,"num_hidden_layers":3,"num_attention_heads":3,
			"intermediate_size":20,"max_position_embeddings":9}`, "encoder.layer.2."},
		"no unknown token":  {"vocab.txt", "[CLS]\n[SEP]\n", "[UNK]"},
		"larger vocabulary": {"vocab.txt", "[CLS]\n[SEP]\n[UNK]\n" + strings.Repeat("x\ny\n", 20), "belong together"},
		"another tokenizer": {"tokenizer.json", `{"model":{"type":"BPE"}}`, "BPE"},
		"first token":       {"1_Pooling/config.json", `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}`, "pooling_mode"},
	} {
		dir, _ := tinyFiles(t)
		write(t, dir, c.file, c.text)
		dev, err := cpu.New(cpu.Options{})
		must(t, err)
		if _, err := Open(dir, dev); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", name, err)
		}
		if n := dev.Allocated(); n != 0 {
			t.Errorf("%s: %d bytes are left on the device", name, n)
		}
		must(t, dev.Close())
	}
}

// The name tells models apart by their content, so that vectors of two are never compared.
func TestNameIsOfTheContent(t *testing.T) {
	dir, _ := tinyFiles(t)
	same, _ := tinyFiles(t)
	name := openOn(t, dir).Name()
	if other := openOn(t, same).Name(); other != name {
		t.Errorf("%q and %q for one model", name, other)
	}
	write(t, dir, "sentence_bert_config.json", `{"max_seq_length":5}`)
	if other := openOn(t, dir).Name(); other == name {
		t.Errorf("%q for models that see 9 and 5 tokens", name)
	}
}

func FuzzEncode(f *testing.F) {
	w, err := loadWordPieces(filepath.Join("testdata", "tokenizer"))
	must(f, err)
	f.Add("hello wörld 東京 [SEP] \x00\xff", 7)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 3 + (limit&0x7fff)%300
		ids := w.encode(text, limit)
		if len(ids) < 2 || len(ids) > limit || ids[0] != 101 || ids[len(ids)-1] != 102 || slices.Contains(ids[1:len(ids)-1], 102) {
			t.Errorf("ids %v", ids)
		}
	})
}
