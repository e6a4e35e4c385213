package gguf

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
	"github.com/rubicon-rl/rubicon/policy"
)

// quantModel is a model of width 256 with quantised matrices of the types that typ gives, and the vocabulary and tokenizer
// of a golden model.
func quantModel(t *testing.T, typ func(name string) Type) *builder {
	t.Helper()
	b := asGGUF(t, "smollm")
	for key, n := range map[string]int{
		"embedding_length": 256, "feed_forward_length": 512, "block_count": 2, "attention.head_count": 4,
		"attention.head_count_kv": 2, "attention.key_length": 64, "rope.dimension_count": 64,
	} {
		b.Meta["llama."+key] = uint32(n)
	}
	embed := Tensor{Shape: []int{b.Tensors[0].Shape[0], 256}}
	c, err := (&File{Metadata: b.Meta}).config(map[string]Tensor{"token_embd.weight": embed})
	if err != nil {
		t.Fatal(err)
	}
	b.Tensors = nil
	rng := rand.New(rand.NewPCG(5, 6))
	for _, p := range c.Parameters() {
		name, err := ggmlName(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Shape) == 1 {
			norm := make([]float32, p.Shape[0])
			for i := range norm {
				norm[i] = 1 + float32(rng.NormFloat64())/8
			}
			b.add(name, F32, p.Shape, floats(norm...))
			continue
		}
		values, _ := typ(name).block()
		b.add(name, typ(name), p.Shape, quantBlocks(typ(name), p.Shape[0]*p.Shape[1]/values, rng))
	}
	return b
}

// logProbs loads a model and returns log-probabilities of some tokens and the bytes of the weights.
func logProbs(t *testing.T, src policy.Source, dtype string) (logp []float32, bytes int64) {
	t.Helper()
	dev, err := cpu.New(cpu.Options{Tier: os.Getenv("RUBICON_CPU_TIER")})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	m, err := policy.LoadFrom(t.Context(), dev, src, policy.LoadOptions{DType: dtype})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	bytes = dev.Allocated()
	tokens, score := make([]int32, 40), make([]bool, 40)
	for i := range tokens {
		tokens[i], score[i] = int32(37*i%900), i > 0
	}
	pass, err := m.Forward(&policy.Forest{Segments: []policy.Segment{{Parent: policy.Root, Tokens: tokens, Score: score}}},
		policy.ForwardOptions{Temperature: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Release()
	return append(logp, pass.Output.LogP...), bytes
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) || want[i] != want[i] {
			t.Fatalf("%s: log-probability %d is %v, want the bits of %v", what, i, got[i], want[i])
		}
	}
}

// A file loaded straight, each matrix in its own type, has the log-probabilities, on the bits, of the imported model in
// bfloat16, in less memory. Types that are mixed in one product, as in llama.cpp's Q4_K_M, change nothing in that.
func TestStraightIsImportedInBFloat16(t *testing.T) {
	for name, c := range map[string]struct {
		typ   func(name string) Type
		share float64 // most of the bfloat16 model's memory
	}{
		"Q8_0": {func(string) Type { return Q8_0 }, 0.6},
		"Q4_0": {func(string) Type { return Q4_0 }, 0.35},
		"Q6_K": {func(string) Type { return Q6_K }, 0.6},
		"Q4_1": {func(name string) Type {
			if name == "token_embd.weight" {
				return Q8_0
			}
			return Q4_1
		}, 0.45},
		"Q4_K_M": {func(name string) Type {
			if strings.Contains(name, "attn_v") || strings.Contains(name, "ffn_down") || name == "token_embd.weight" {
				return Q6_K
			}
			return Q4_K
		}, 0.6},
	} {
		dir, err := importGGUF(t, quantModel(t, c.typ))
		if err != nil {
			t.Fatal(err)
		}
		file, folder := openBoth(t, dir)
		got, bytes := logProbs(t, file, "auto")
		want, wide := logProbs(t, folder, "bfloat16")
		sameBits(t, name, got, want)
		if share := float64(bytes) / float64(wide); share > c.share {
			t.Errorf("%s: takes %.2f of what bfloat16 does", name, share)
		}
		if policy.Fingerprint(file) == policy.Fingerprint(folder) {
			t.Errorf("%s: the file and the imported folder have one fingerprint", name)
		}
		auto := filepath.Join(t.TempDir(), "auto")
		if err := Import(file.Path(), auto, "auto"); err != nil {
			t.Fatal(err)
		}
		half, err := policy.OpenFolder(auto)
		if err != nil {
			t.Fatal(err)
		}
		defer half.Close()
		kept, _ := logProbs(t, half, "auto")
		sameBits(t, name+", imported as auto", kept, want)
	}
}

// The memory plan of a file counts each matrix in its own type.
func TestPlanOfFile(t *testing.T) {
	dir, err := importGGUF(t, quantModel(t, func(name string) Type {
		if strings.Contains(name, "attn_v") || strings.Contains(name, "ffn_down") {
			return Q6_K
		}
		return Q4_K
	}))
	if err != nil {
		t.Fatal(err)
	}
	file, _ := openBoth(t, dir)
	dev := reference.New() // its sizes are those of its elements, without padding
	m, err := policy.LoadFrom(t.Context(), dev, file, policy.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	stored := func(name string) device.DType { return file.Stored(name).DType() }
	plan, err := policy.MemoryPlan(file.Config(), policy.PlanOptions{Stored: stored})
	if err != nil || plan.Weights != dev.Allocated() {
		t.Errorf("%d bytes planned, %d taken (%v)", plan.Weights, dev.Allocated(), err)
	}
}

// openBoth opens the file that importGGUF wrote, and what it imported.
func openBoth(t *testing.T, dir string) (policy.Source, policy.Source) {
	t.Helper()
	file, err := OpenModel(filepath.Join(filepath.Dir(dir), "model.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	folder, err := policy.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	return file, folder
}

// A file can be trained in full: its weights become float32, the imported folder's.
func TestTrainQuantisedInFull(t *testing.T) {
	dir, err := importGGUF(t, quantModel(t, func(string) Type { return Q4_1 }))
	if err != nil {
		t.Fatal(err)
	}
	file, _ := openBoth(t, dir)
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	m, err := policy.LoadFrom(t.Context(), dev, file, policy.LoadOptions{Train: "full"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	saved := t.TempDir()
	if err := m.SaveFull(saved); err != nil {
		t.Fatal(err)
	}
	sameWeights(t, "saved", saved, dir)
}
