package main

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
	"github.com/rubicon-rl/rubicon/policy"
)

// shape is a model and what it is measured at.
type shape struct {
	name      string
	config    policy.Config
	sequences int // of a training pass
	length    int // of each, the first quarter a prompt
	batch     int // of decoding
	context   int // tokens of its prompts
}

// shapes are the models, the smallest first; tiny is one that a processor computes in seconds.
func shapes(tiny bool) []shape {
	if tiny {
		return []shape{{"tiny", common(policy.Config{
			Arch: policy.Qwen2, Width: 64, Hidden: 96, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, Vocab: 200, QKVBias: true, Tied: true,
		}), 2, 16, 2, 12}}
	}
	return []shape{
		{"SmolLM2-135M", common(policy.Config{
			Arch: policy.Llama, Width: 576, Hidden: 1536, Layers: 30, Heads: 9, KVHeads: 3, HeadDim: 64, Vocab: 49152, Tied: true,
		}), 4, 2048, 64, 1024},
		{"Qwen2.5-0.5B", common(policy.Config{
			Arch: policy.Qwen2, Width: 896, Hidden: 4864, Layers: 24, Heads: 14, KVHeads: 2, HeadDim: 64, Vocab: 151936, QKVBias: true, Tied: true,
		}), 4, 2048, 64, 1024},
		{"Qwen2.5-1.5B", common(policy.Config{
			Arch: policy.Qwen2, Width: 1536, Hidden: 8960, Layers: 28, Heads: 12, KVHeads: 2, HeadDim: 128, Vocab: 151936, QKVBias: true, Tied: true,
		}), 4, 2048, 64, 1024},
		{"Qwen2.5-7B", common(policy.Config{
			Arch: policy.Qwen2, Width: 3584, Hidden: 18944, Layers: 28, Heads: 28, KVHeads: 4, HeadDim: 128, Vocab: 152064, QKVBias: true,
		}), 4, 2048, 64, 1024},
	}
}

// common adds what the models have in common.
func common(c policy.Config) policy.Config {
	c.MaxPositions, c.NormEps, c.InitStd, c.DType = 8192, 1e-6, 0.02, "bfloat16"
	c.Rope = policy.Rope{Theta: 1e6, Type: "default"}
	c.BOS, c.Pad = policy.NoToken, policy.NoToken
	return c
}

// adapter is the set that is trained, lora its shape.
const adapter = "policy"

func lora() policy.LoRAConfig {
	return policy.LoRAConfig{R: 16, Alpha: 32, TargetModules: []string{policy.AllLinear}}
}

// random is the Source of a model of random weights, which takes no time to make: its matrices are cut out of one block of random
// numbers.
type random struct {
	config policy.Config
	block  []uint16
}

// blockLen is as much as the loader asks for at a time, which starts anywhere in as much again.
const blockLen = 1 << 20

func newRandom(c policy.Config) *random {
	r := &random{config: c, block: make([]uint16, 2*blockLen)}
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range r.block {
		r.block[i] = half.ToBF16(float32(c.InitStd * rng.NormFloat64()))
	}
	return r
}

func (r *random) Path() string          { return "random weights" }
func (r *random) Config() policy.Config { return r.config }
func (r *random) Close() error          { return nil }

func (r *random) Stored(name string) policy.Stored {
	for _, p := range r.config.Parameters() {
		if p.Name == name {
			return randomTensor{r, p}
		}
	}
	return nil
}

type randomTensor struct {
	*random
	policy.Parameter
}

func (t randomTensor) Content() (string, []byte) { return "BF16", nil }
func (t randomTensor) DType() device.DType       { return device.BFloat16 }

// bits are n elements from a row on.
func (t randomTensor) bits(row, n int) []uint16 {
	h := fnv.New64a()
	h.Write([]byte(t.Name))
	at := (h.Sum64() + uint64(row)*7919) % blockLen
	return t.block[at : at+uint64(n)]
}

func (t randomTensor) Float32s(dst []float32, row int) error {
	for i, b := range t.bits(row, len(dst)) {
		switch {
		case strings.HasSuffix(t.Name, "bias"):
			dst[i] = 0
		case len(t.Shape) == 1: // a norm
			dst[i] = 1
		default:
			dst[i] = half.FromBF16(b)
		}
	}
	return nil
}

func (t randomTensor) Pack(dev device.Memory, w device.Weight, at, r0, r1 int) error {
	return dev.LoadWeightBF16(w, at, t.bits(r0, (r1-r0)*t.Shape[1]))
}
