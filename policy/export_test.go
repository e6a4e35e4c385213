package policy

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/internal/half"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// By hand: B = [1 2; 3 4], A = [1 0 -1; 0 1 1], scale 0.5: B·A = [1 2 1; 3 4 1].
func TestMergeRow(t *testing.T) {
	l := LoRAWeights{LoRAModule: LoRAModule{R: 2, Scale: 0.5}, A: []float32{1, 0, -1, 0, 1, 1}, B: []float32{1, 2, 3, 4}}
	first, second := []float32{10, 20, 30}, []float32{0, 0, 0.25}
	l.mergeRow(first, 0)
	l.mergeRow(second, 1)
	if !slices.Equal(first, []float32{10.5, 21, 30.5}) || !slices.Equal(second, []float32{1.5, 2, 0.75}) {
		t.Errorf("merged rows %v, %v", first, second)
	}
}

// mergedWant is W + scale·B·A in float64.
func mergedWant(w []float32, l LoRAWeights, in int) []float32 {
	want := make([]float32, len(w))
	for i := range w {
		sum := 0.0
		for k := range l.R {
			sum += float64(l.B[i/in*l.R+k]) * float64(l.A[k*in+i%in])
		}
		want[i] = float32(float64(w[i]) + l.Scale*sum)
	}
	return want
}

func TestExportMerged(t *testing.T) {
	for _, v := range []struct{ adapter, model string }{
		{"qwen2-all-plain", "qwen2"}, {"qwen2-qv-rslora", "qwen2-sharded"}, {"qwen2-untied-all-plain", "qwen2-untied"},
		{"llama3-qv-plain", "llama3"}, {"smollm-all-rslora", "smollm"},
	} {
		base, adapter, out := golden.Path("models", v.model), golden.Path("lora", v.adapter, "adapter"), filepath.Join(t.TempDir(), "out")
		if err := ExportMerged(base, adapter, out, ExportOptions{}); err != nil {
			t.Fatal(err)
		}
		c := mustConfig(t, v.model)
		low, err := ReadAdapter(adapter, c)
		if err != nil {
			t.Fatal(err)
		}
		changed := map[string]LoRAWeights{}
		for _, l := range low.Weights {
			changed[l.Path()+".weight"] = l
		}
		was, is := readAll(t, base), readAll(t, out)
		if len(is) != len(c.Parameters()) {
			t.Errorf("%s: %d tensors", v.adapter, len(is))
		}
		for name := range is {
			want := was[name]
			if l, ok := changed[name]; ok {
				in, _ := c.ProjectionSize(l.Projection)
				want = mergedWant(want, l, in)
				if slices.Equal(is[name], was[name]) {
					t.Errorf("%s: %s has not changed", v.adapter, name)
				}
			}
			golden.Close(t, v.adapter+" "+name, is[name], want, 3e-7)
		}
		for _, name := range []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"} {
			a, err1 := os.ReadFile(filepath.Join(base, name))
			b, err2 := os.ReadFile(filepath.Join(out, name))
			if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
				t.Errorf("%s: %s: %v, %v, or it has changed", v.adapter, name, err1, err2)
			}
		}
	}
}

func readAll(t *testing.T, dir string) map[string][]float32 {
	t.Helper()
	set, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	all := map[string][]float32{}
	for _, name := range set.Names() {
		x, _ := set.Tensor(name)
		all[name] = make([]float32, x.Len())
		if err := x.Float32s(all[name]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A bfloat16 base stays bfloat16 (each sum rounded once), or becomes what is asked for; large models come in shards.
func TestExportTypes(t *testing.T) {
	base, adapter := golden.Path("models", "qwen2-bf16"), golden.Path("lora", "qwen2-qv-rslora", "adapter")
	c := mustConfig(t, "qwen2-bf16")
	low, err := ReadAdapter(adapter, c)
	if err != nil {
		t.Fatal(err)
	}
	const name = "model.layers.1.self_attn.q_proj.weight"
	i := slices.IndexFunc(low.Weights, func(l LoRAWeights) bool { return l.Path()+".weight" == name })
	was := readAll(t, base)
	want := mergedWant(was[name], low.Weights[i], 64)
	for dtype, stored := range map[string]safetensors.DType{"": safetensors.BF16, "float32": safetensors.F32, "float16": safetensors.F16} {
		out := filepath.Join(t.TempDir(), "out")
		if err := ExportMerged(base, adapter, out, ExportOptions{DType: dtype, MaxShard: 300_000}); err != nil {
			t.Fatal(err)
		}
		set, err := safetensors.OpenDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range set.Names() {
			if x, _ := set.Tensor(n); x.DType != stored {
				t.Errorf("%q: %s is stored as %s", dtype, n, x.DType)
			}
		}
		set.Close()
		if shards, _ := filepath.Glob(filepath.Join(out, "model-*.safetensors")); len(shards) < 2 {
			t.Errorf("%q: shards %v", dtype, shards)
		}
		got, err := ReadConfig(out)
		said := c
		if dtype != "" {
			said.DType = dtype
		}
		if err != nil || !reflect.DeepEqual(got, said) {
			t.Errorf("%q: configuration %+v, %v", dtype, got, err)
		}
		is := readAll(t, out)
		ulp := map[string]float64{"": 1.0 / 256, "float32": 1e-6, "float16": 1.0 / 2048}[dtype]
		for j, w := range want { // half a unit in the last place, and a little for the float32 sum
			if d := math.Abs(float64(is[name][j] - w)); d > math.Abs(float64(w))*ulp+1e-7 {
				t.Fatalf("%q: %s[%d] is %v, want %v", dtype, name, j, is[name][j], w)
			}
		}
		const frozen = "model.layers.1.mlp.up_proj.weight"
		if dtype == "" {
			golden.Close(t, frozen, is[frozen], was[frozen], 0)
		} else if dtype == "float16" {
			for j, v := range was[frozen] {
				if is[frozen][j] != half.FromF16(half.ToF16(v)) {
					t.Fatalf("%s[%d] is %v, was %v", frozen, j, is[frozen][j], v)
				}
			}
		}
	}
}

func TestExportErrors(t *testing.T) {
	base, adapter := golden.Path("models", "qwen2"), golden.Path("lora", "qwen2-qv-rslora", "adapter")
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "precious"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, e := range map[string]struct {
		base, adapter, out string
		o                  ExportOptions
	}{
		"not empty":           {base, adapter, full, ExportOptions{}},
		`dtype "int8"`:        {base, adapter, filepath.Join(t.TempDir(), "out"), ExportOptions{DType: "int8"}},
		"adapter_config.json": {base, base, filepath.Join(t.TempDir(), "out"), ExportOptions{}},
		"shape":               {base, golden.Path("lora", "smollm-all-rslora", "adapter"), filepath.Join(t.TempDir(), "out"), ExportOptions{}},
		"config.json":         {adapter, adapter, filepath.Join(t.TempDir(), "out"), ExportOptions{}},
	} {
		err := ExportMerged(e.base, e.adapter, e.out, e.o)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), e.base) {
			t.Errorf("error %v does not mention %s", err, want)
		}
		if _, err := os.Stat(filepath.Join(e.out, "config.json")); err == nil {
			t.Errorf("%s: a refused export left a model", want)
		}
	}
}
