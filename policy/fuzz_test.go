package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

// readGolden reads a file of a small model or adapter.
func readGolden(t testing.TB, elem ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(golden.Path(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzConfig: a configuration that is read can be written, and is then read as the same.
func FuzzConfig(f *testing.F) {
	for _, model := range []string{"llama3", "qwen2", "qwen3", "smollm"} {
		f.Add(readGolden(f, "models", model, "config.json"), []byte(`{"eos_token_id": [1, 2]}`))
	}
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		dir := t.TempDir()
		for name, text := range map[string][]byte{"config.json": config, "generation_config.json": generation} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		c, err := ReadConfig(dir)
		if err != nil {
			return
		}
		copied := t.TempDir()
		if err := WriteConfig(copied, c); err != nil {
			t.Fatalf("%s was read, but is not written: %v", config, err)
		}
		again, err := ReadConfig(copied)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%s: read as %+v, after writing as %+v, %v", config, c, again, err)
		}
	})
}

// FuzzLoRAConfig: an adapter's configuration that fits a model gives it modules, and PEFT's form of it the same ones.
func FuzzLoRAConfig(f *testing.F) {
	model, err := ReadConfig(golden.Path("models", "qwen2"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"], "rank_pattern": {"^layers.0": 4}}`))
	f.Add([]byte(`{"peft_type": "LORA", "r": 2, "target_modules": ".*(q|down)_proj", "layers_to_transform": [0], "use_rslora": true, "exclude_modules": ["o_proj"]}`))
	f.Add([]byte(`{"peft_type": "LORA", "target_modules": "all-linear", "alpha_pattern": {"q_proj": 3.5}, "lora_dropout": 0.1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, base, err := parseLoRA(text)
		if err != nil {
			return
		}
		modules, err := l.Modules(model)
		if err != nil {
			return
		}
		if len(modules) == 0 {
			t.Fatalf("%s gives no module an adapter and is no error", text)
		}
		written, err := json.Marshal(AdapterFile{Config: l, Base: base}.peft())
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := parseLoRA(written)
		if err != nil {
			t.Fatalf("%s is not read: %v", written, err)
		}
		if got, err := again.Modules(model); err != nil || !reflect.DeepEqual(got, modules) {
			t.Errorf("%s: %v, written and read %v, %v", text, modules, got, err)
		}
	})
}
