//go:build slow

package gguf

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// The real SmolLM2-135M-Instruct (Q4_1 and Q8_0), against numbers from transformers' own GGUF loader. Run it with
// RUBICON_TEST_SMOLLM2_GGUF=path/of/SmolLM2-135M-Instruct.Q4_1.gguf go test -tags slow ./policy/gguf
func TestImportSmolLM2(t *testing.T) {
	file := os.Getenv("RUBICON_TEST_SMOLLM2_GGUF")
	if file == "" {
		t.Fatal("set RUBICON_TEST_SMOLLM2_GGUF to the file that scripts/fetch-smollm2.sh gets")
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := Import(file, dir, "float32"); err != nil {
		t.Fatal(err)
	}
	var want map[string]struct {
		Shape   []int
		Sum     float64
		AbsMean float64 `json:"abs_mean"`
		First4  []float32
	}
	readJSON(t, filepath.Join("testdata", "smollm2_tensors.json"), &want)
	delete(want, "lm_head.weight") // the embedding once more
	set, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if len(set.Names()) != len(want) || len(want) != 272 {
		t.Errorf("%d tensors, want %d", len(set.Names()), len(want))
	}
	for name, w := range want {
		x, ok := set.Tensor(name)
		if !ok || !slices.Equal(x.Shape, w.Shape) {
			t.Errorf("%s: shape %v, want %v", name, x.Shape, w.Shape)
			continue
		}
		values := make([]float32, x.Len())
		if err := x.Float32s(values); err != nil {
			t.Fatal(err)
		}
		sum, abs := 0.0, 0.0
		for _, v := range values {
			sum += float64(v)
			abs += math.Abs(float64(v))
		}
		golden.Close(t, name, values[:4], w.First4, 0)
		if d := math.Abs(sum - w.Sum); d > 1e-9*abs {
			t.Errorf("%s: sum %v, want %v", name, sum, w.Sum)
		}
		if d := math.Abs(abs/float64(len(values)) - w.AbsMean); d > 1e-9*w.AbsMean {
			t.Errorf("%s: mean of the absolute values %v, want %v", name, abs/float64(len(values)), w.AbsMean)
		}
	}
	checkTokenizer(t, dir)
}

// The real file loaded straight has the bits of the imported model in bfloat16, in less than half the memory.
func TestStraightSmolLM2(t *testing.T) {
	file := os.Getenv("RUBICON_TEST_SMOLLM2_GGUF")
	if file == "" {
		t.Fatal("set RUBICON_TEST_SMOLLM2_GGUF to the file that scripts/fetch-smollm2.sh gets")
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := Import(file, dir, "float32"); err != nil {
		t.Fatal(err)
	}
	m, err := OpenModel(file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	folder, err := policy.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	got, bytes := logProbs(t, m, "auto")
	want, wide := logProbs(t, folder, "bfloat16")
	sameBits(t, "SmolLM2", got, want)
	if 2*bytes > wide {
		t.Errorf("%d bytes, in bfloat16 %d", bytes, wide)
	}
}

// checkTokenizer compares the imported tokenizer with Hugging Face's on 26 texts.
func checkTokenizer(t *testing.T, dir string) {
	t.Helper()
	tok, err := token.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(filepath.Join("testdata", "smollm2_tokenizer.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(rows) {
		var row struct {
			Text, Decoded string
			IDs           []int32
			Special       []int32 `json:"ids_special"`
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		n++
		if ids := tok.Encode(row.Text, token.EncodeOptions{}); !slices.Equal(ids, row.IDs) {
			t.Errorf("%q: %v, want %v", row.Text, ids, row.IDs)
		}
		if ids := tok.Encode(row.Text, token.EncodeOptions{AddSpecial: true}); !slices.Equal(ids, row.Special) {
			t.Errorf("%q with special tokens: %v, want %v", row.Text, ids, row.Special)
		}
		if text := tok.Decode(row.IDs, false); text != row.Decoded {
			t.Errorf("%v: %q, want %q", row.IDs, text, row.Decoded)
		}
	}
	if n != 26 {
		t.Errorf("%d rows", n)
	}
}
