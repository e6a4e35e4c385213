package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/policy"
)

// point is one measurement: training steps on sequences that share nothing.
type point struct {
	Shape     string `json:"shape"`
	Layers    int    `json:"layers"`
	Sequences int    `json:"sequences"` // B
	Length    int    `json:"length"`    // T, tokens of each; the last quarter is scored
	Recompute bool   `json:"recompute"` // gradient checkpointing
	Threads   int    `json:"threads"`
}

func (p point) tokens() int { return p.Sequences * p.Length }
func (p point) scored() int { return p.Sequences * (p.Length / 4) }

// shapes are the models by name.
var shapes = map[string]policy.Config{
	"SmolLM2-135M": shape(policy.Config{
		Arch: policy.Llama, Width: 576, Hidden: 1536, Layers: 30, Heads: 9, KVHeads: 3, HeadDim: 64, Vocab: 49152,
	}),
	"Qwen2.5-0.5B": shape(policy.Config{
		Arch: policy.Qwen2, Width: 896, Hidden: 4864, Layers: 24, Heads: 14, KVHeads: 2, HeadDim: 64, Vocab: 151936, QKVBias: true,
	}),
	"Qwen2.5-1.5B": shape(policy.Config{
		Arch: policy.Qwen2, Width: 1536, Hidden: 8960, Layers: 28, Heads: 12, KVHeads: 2, HeadDim: 128, Vocab: 151936, QKVBias: true,
	}),
}

// shape adds what the models have in common.
func shape(c policy.Config) policy.Config {
	c.MaxPositions, c.NormEps, c.InitStd, c.Tied = 8192, 1e-6, 0.02, true
	c.Rope = policy.Rope{Theta: 1e6, Type: "default"}
	c.BOS, c.Pad = policy.NoToken, policy.NoToken
	return c
}

func (p point) config() policy.Config {
	c := shapes[p.Shape]
	c.Layers = p.Layers
	return c
}

// loading is how the weights are kept, lora the adapter that is trained.
var (
	loading = policy.LoadOptions{DType: "bfloat16"}
	lora    = policy.LoRAConfig{R: 8, Alpha: 16, TargetModules: []string{policy.AllLinear}}
)

// sweep is a family of points.
type sweep struct {
	name, what string
	along      func(*point) *int // the quantity that a plot shows; nil: there is none
	points     []point
}

// sweeps are all points; the quick ones take a minute.
func sweeps(quick bool) []sweep {
	smol := point{Shape: "SmolLM2-135M", Layers: 30, Sequences: 1, Length: 512, Threads: 2}
	short, two, four := smol, smol, smol
	short.Length, two.Sequences, four.Sequences = 256, 2, 4
	length := func(p *point) *int { return &p.Length }
	sequences := func(p *point) *int { return &p.Sequences }
	layers := func(p *point) *int { return &p.Layers }
	threads := func(p *point) *int { return &p.Threads }
	list := []sweep{
		{"t", "tokens of one sequence", length, family(smol, length, 256, 512, 1024, 2048, 4096, 8192)},
		{"b", "sequences of 256 tokens", sequences, family(short, sequences, 1, 2, 4, 8, 16)},
		{"layers", "layers, 2 sequences of 512 tokens", layers, family(two, layers, 6, 12, 18, 24, 30)},
		{"threads", "threads, 4 sequences of 512 tokens", nil, family(four, threads, 1, 2)},
		{"shapes", "larger models, one sequence", nil, nil},
	}
	larger := &list[len(list)-1]
	for _, name := range []string{"Qwen2.5-0.5B", "Qwen2.5-1.5B"} {
		for _, n := range []int{1024, 8192} {
			larger.points = append(larger.points, point{name, shapes[name].Layers, 1, n, true, 2})
		}
	}
	for i := range list {
		list[i].points = slices.DeleteFunc(list[i].points, func(p point) bool { return quick && !p.quick() })
	}
	return list
}

// family varies one quantity of a point, with and without gradient checkpointing.
func family(base point, of func(*point) *int, values ...int) (points []point) {
	for _, n := range values {
		for _, recompute := range []bool{true, false} {
			p := base
			*of(&p), p.Recompute = n, recompute
			points = append(points, p)
		}
	}
	return points
}

// quick reports whether the point takes seconds.
func (p point) quick() bool { return p.Layers*p.tokens() <= 16000 }

// choose are the sweeps of a list of names, comma between them; empty: all.
func choose(all []sweep, names string) ([]sweep, error) {
	if names == "" {
		return all, nil
	}
	var chosen []sweep
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(s sweep) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no points are called %q; there are t, b, layers, threads and shapes", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
