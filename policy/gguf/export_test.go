package gguf

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/gguf/gguftest"
)

// exported writes a model folder, with an adapter unless that is "", as GGUF.
func exported(t *testing.T, dir, adapter, dtype string) (file string, err error) {
	t.Helper()
	src, err := policy.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	w, err := policy.Merge(src, adapter)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ReadTokenizer(dir)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "model.gguf")
	return file, Export(file, w, files, dtype)
}

func mustExport(t *testing.T, dir, adapter, dtype string) (file string) {
	t.Helper()
	file, err := exported(t, dir, adapter, dtype)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// copyFolder is a golden model with some of its files changed.
func copyFolder(t *testing.T, model string, change map[string]func(string) string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(golden.Path("models", model))); err != nil {
		t.Fatal(err)
	}
	for name, edit := range change {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		changed := edit(string(text))
		if changed == string(text) {
			t.Fatalf("%s: nothing is changed", name)
		}
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func replace(old, new string) func(string) string {
	return func(text string) string { return strings.Replace(text, old, new, 1) }
}

// longContext is the tiny llama3 with the scaling that Llama 3.x has.
func longContext(t *testing.T) string {
	return copyFolder(t, "llama3", map[string]func(string) string{
		"config.json": replace(`"original_max_position_embeddings": 64`, `"original_max_position_embeddings": 8192`),
	})
}

// A model comes back from GGUF with the same weights, configuration and tokenizer.
func TestExportRoundTrip(t *testing.T) {
	dirs := map[string]string{"llama3": longContext(t)}
	for _, model := range []string{"qwen2", "qwen2-untied", "qwen3", "smollm"} {
		dirs[model] = golden.Path("models", model)
	}
	for model, src := range dirs {
		dir := filepath.Join(t.TempDir(), "model")
		if err := Import(mustExport(t, src, "", "f32"), dir, "float32"); err != nil {
			t.Fatal(err)
		}
		want, _ := policy.ReadConfig(src)
		got, err := policy.ReadConfig(dir)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: configuration %+v, %v\nwant %+v", model, got, err, want)
		}
		sameWeights(t, model, dir, src)
		sameTokenizer(t, model, dir, src)
		if template, err := os.ReadFile(filepath.Join(src, "chat_template.jinja")); err == nil {
			var settings map[string]any
			readJSON(t, filepath.Join(dir, "tokenizer_config.json"), &settings)
			if settings["chat_template"] != string(template) {
				t.Errorf("%s: the chat template differs", model)
			}
		}
	}
}

// The file has the tensors and metadata that the tests' own maker of files writes, which follows llama.cpp's converter:
// the order of rows is checked against it, which a round trip through our reader is blind to.
func TestExportIsTheConverters(t *testing.T) {
	for _, model := range []string{"qwen2", "qwen2-untied", "qwen3", "smollm"} {
		got, err := Open(mustExport(t, golden.Path("models", model), "", "f32"))
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		want, err := Parse("made", gguftest.Model(t, golden.Path("models", model)).Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range want.Metadata {
			if model == "qwen3" && key == "tokenizer.chat_template" { // the maker does not read the template's own file
				continue
			}
			if !reflect.DeepEqual(got.Metadata[key], value) {
				t.Errorf("%s: %s is %.80v, want %.80v", model, key, got.Metadata[key], value)
			}
		}
		if !reflect.DeepEqual(got.Tensors, want.Tensors) {
			t.Errorf("%s: the tensors differ", model)
		}
	}
}

// A biased Llama's q and k biases go with their rows.
func TestExportOrdersBiases(t *testing.T) {
	c := policy.Config{Arch: policy.Llama, HeadDim: 4}
	i, err := newItem(numbered{c}, policy.Parameter{Name: "model.layers.0.self_attn.k_proj.bias", Shape: []int{8}}, F16)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := i.write(&b); err != nil {
		t.Fatal(err)
	}
	if want := floats(0, 2, 1, 3, 4, 6, 5, 7); !bytes.Equal(b.Bytes(), want) || i.Type != F32 {
		t.Errorf("%v of type %v, want %v of type F32", b.Bytes(), i.Type, want)
	}
}

// numbered has vectors whose values are their places.
type numbered struct{ c policy.Config }

func (n numbered) Path() string          { return "numbered" }
func (n numbered) Config() policy.Config { return n.c }

func (n numbered) Row(dst []float32, _ string, _ int) error {
	for i := range dst {
		dst[i] = float32(i)
	}
	return nil
}

// An adapter is merged as into a folder, and bfloat16 weights are kept on the bits; matrices have the type that was asked
// for, rows that are not whole blocks F16, vectors F32.
func TestExportTypesAndAdapter(t *testing.T) {
	src, adapter := golden.Path("models", "qwen2"), golden.Path("lora", "qwen2-all-plain", "adapter")
	merged := filepath.Join(t.TempDir(), "merged")
	if err := policy.ExportMerged(src, adapter, merged, policy.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := Import(mustExport(t, src, adapter, "f32"), dir, "float32"); err != nil {
		t.Fatal(err)
	}
	sameWeights(t, "merged", dir, merged)

	for dtype, number := range map[string]uint32{"f32": 0, "f16": 1, "bf16": 32, "q8_0": 7} {
		f, err := Open(mustExport(t, src, "", dtype))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Metadata["general.file_type"] != number {
			t.Errorf("%s: general.file_type %v, want %d", dtype, f.Metadata["general.file_type"], number)
		}
		for _, x := range f.Tensors {
			want := dtype
			if len(x.Shape) == 1 {
				want = "f32"
			} else if dtype == "q8_0" && x.Shape[1]%32 != 0 {
				want = "f16"
			}
			if x.Type.String() != strings.ToUpper(want) {
				t.Errorf("%s: %s %v is %v", dtype, x.Name, x.Shape, x.Type)
			}
		}
	}

	half := copyFolder(t, "qwen2-bf16", nil)
	for name, b := range must(ReadTokenizer(src)) {
		if err := os.WriteFile(filepath.Join(half, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	back := filepath.Join(t.TempDir(), "half")
	if err := Import(mustExport(t, half, "", "bf16"), back, "float32"); err != nil {
		t.Fatal(err)
	}
	sameWeights(t, "bfloat16", back, half)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A file that is quantised already is exported as what it stands for, and Q8_0 to Q8_0 on the bits.
func TestExportOfAFile(t *testing.T) {
	first, err := OpenModel(mustExport(t, golden.Path("models", "smollm"), "", "q8_0"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	w, err := policy.Merge(first, "")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "again.gguf")
	if err := Export(out, w, must(first.TokenizerFiles()), "q8_0"); err != nil {
		t.Fatal(err)
	}
	second, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if !reflect.DeepEqual(second.Tensors, first.file.Tensors) {
		t.Error("the tensors differ")
	}
	got, want := maps.Clone(second.Metadata), maps.Clone(first.file.Metadata)
	delete(got, "general.name")
	delete(want, "general.name")
	if !reflect.DeepEqual(got, want) {
		t.Error("the metadata differ")
	}
}
