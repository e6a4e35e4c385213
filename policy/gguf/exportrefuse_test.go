package gguf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
)

// What GGUF cannot say, or would say wrongly, is refused by name, and leaves no file.
func TestExportRefuses(t *testing.T) {
	config := func(old, new string) map[string]func(string) string {
		return map[string]func(string) string{"config.json": replace(old, new)}
	}
	tokenizer := func(old, new string) map[string]func(string) string {
		return map[string]func(string) string{"tokenizer.json": replace(old, new)}
	}
	for _, c := range []struct {
		model, dtype string
		change       map[string]func(string) string
		want         string
	}{
		{"qwen2", "q4_0", nil, `type "q4_0" is not supported; supported: f32, f16, bf16, q8_0`},
		{"qwen2", "f16", config(`"rope_scaling": null`, `"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}`), "rope scaling llama3 of a qwen2 model"},
		{"qwen2", "f16", map[string]func(string) string{"generation_config.json": replace(`"eos_token_id": 999`, `"eos_token_id": [999, 1, 2, 3]`)}, "any of the tokens [999 1 2 3]"},
		{"qwen2", "f16", tokenizer(`\\p{N}`, `\\p{N}{1,2}`), "smollm, qwen2, llama-bpe"},
		{"qwen2", "f16", tokenizer(`"NFC"`, `"Sequence", "normalizers": []`), "smollm, qwen2, llama-bpe"},
		{"smollm", "f16", tokenizer(`"lstrip":false`, `"lstrip":true`), "lstrip"},
	} {
		file, err := exported(t, copyFolder(t, c.model, c.change), "", c.dtype)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v does not mention %q", err, c.want)
		}
		if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 0 {
			t.Errorf("%s: left %v", c.want, left)
		}
	}
}

// A file that is there is left alone, and one that cannot be finished is not there.
func TestExportIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious.gguf")
	if err := os.WriteFile(precious, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	files := must(ReadTokenizer(golden.Path("models", "qwen2")))
	w := broken{must(policy.ReadConfig(golden.Path("models", "qwen2")))}
	for out, want := range map[string]string{
		precious: "exists", filepath.Join(dir, "new.gguf"): "the disk fell off", filepath.Join(dir, "model.bin"): "end in .gguf",
		filepath.Join(dir, "none", "x.gguf"): "none",
	} {
		if err := Export(out, w, files, "f16"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not mention %q", out, err, want)
		}
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 1 {
		t.Errorf("left %v", left)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "x" {
		t.Errorf("the file that was there is %q, %v", text, err)
	}
}

// broken cannot be read to its end.
type broken struct{ c policy.Config }

func (b broken) Path() string          { return "broken" }
func (b broken) Config() policy.Config { return b.c }

func (b broken) Row(_ []float32, name string, r int) error {
	if strings.Contains(name, "layers.1") && r > 2 {
		return errors.New("the disk fell off")
	}
	return nil
}
