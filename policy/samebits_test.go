package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/cpu"
)

// onKernels runs f as a subtest with every set of kernels that the machine has, and with rounded activations. f is to try
// so many random shapes; portable kernels are slow.
func onKernels(t *testing.T, f func(t *testing.T, o cpu.Options, shapes uint64)) {
	for _, tier := range []string{"amx", "avx512", "avx2", "portable"} {
		for _, round := range []bool{false, true} {
			shapes := uint64(2)
			switch {
			case thorough:
				shapes = 10
			case tier == "portable" && round:
				continue
			case tier == "portable":
				shapes = 1
			}
			t.Run(fmt.Sprintf("%s-bf16=%v", tier, round), func(t *testing.T) {
				o := cpu.Options{Tier: tier, BFloat16: round, Threads: 2}
				dev, err := cpu.New(o)
				if err != nil {
					t.Skip(err)
				}
				must(t, dev.Close())
				f(t, o, shapes)
			})
		}
	}
}

// shapedModel is a model of a random shape with an adapter, the same for the same seed on every device.
func shapedModel(t *testing.T, o cpu.Options, seed uint64) *Model {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	pick := func(n ...int) int { return n[rng.IntN(len(n))] }
	c := goldenConfig([]string{"qwen2", "qwen3", "llama3"}[rng.IntN(3)])
	c.KVHeads, c.HeadDim, c.Layers = pick(1, 2, 3), pick(8, 16, 26, 64), pick(1, 2)
	c.Heads = c.KVHeads * pick(1, 2, 3, 5)
	c.Width, c.Hidden, c.Vocab = 8*(2+rng.IntN(40)), 1+rng.IntN(300), 990+rng.IntN(300)
	c.DType, c.Tied, c.InitStd, c.Pad = []string{"float32", "bfloat16"}[rng.IntN(2)], rng.IntN(2) == 0, 0.08, NoToken
	dev, err := cpu.New(o)
	must(t, err)
	m, err := New(t.Context(), dev, c, seed, LoadOptions{DType: c.DType})
	must(t, err)
	t.Cleanup(func() {
		must(t, m.Close())
		checkClose(t, dev)
	})
	must(t, m.AddAdapter("policy", LoRAConfig{R: 1 + rng.IntN(20), Alpha: 6, TargetModules: []string{AllLinear}}, 1))
	scramble(t, m, "policy")
	return m
}

// randomRequests are some prompts with several samples each.
func randomRequests(rng *rand.Rand, prompts, longest, samples int) []Request {
	var reqs []Request
	for i := range prompts {
		reqs = append(reqs, Request{
			Prompt: sequenceOf(1+rng.IntN(longest), rng.IntN(99)), N: 1 + rng.IntN(samples), Stream: []uint64{5, uint64(i)},
		})
	}
	return reqs
}

// A token's log-probability has the same bits on every way to it: in a batch of any size, at any place in it, with any
// size of cache and of prompt chunks, in the trainer's forward pass over the shared forest, over a shuffled one and over
// the sequence alone, with one thread and with two.
func TestSameBits(t *testing.T) {
	onKernels(t, func(t *testing.T, o cpu.Options, shapes uint64) {
		for seed := range shapes {
			m, rng := shapedModel(t, o, seed), rand.New(rand.NewPCG(seed, 2))
			single := o
			single.Threads = 1
			m1 := shapedModel(t, single, seed)
			reqs := randomRequests(rng, 1+rng.IntN(3), 150, 4)
			p := plain(1 + rng.IntN(40))
			p.Temperature = 0.5 + rng.Float32()
			g := GenerateOptions{SamplingParams: p, Adapter: "policy"}
			want := generate(t, m, reqs, g)
			for range 3 {
				other := g
				other.MaxBatch, other.PrefillChunk = 1+rng.IntN(9), 1+rng.IntN(70)
				checkSamples(t, fmt.Sprintf("shape %d, %+v", seed, other), generate(t, m, reqs, other), want)
			}
			checkSamples(t, fmt.Sprintf("shape %d, one thread", seed), generate(t, m1, reqs, g), want)
			f := ForwardOptions{Adapter: "policy", Temperature: p.Temperature, Grad: true}
			checkAgreement(t, m, reqs, want, f)
			f.KeepAll = true
			checkShuffled(t, m1, rng, reqs, want, f)
		}
	})
}

// checkShuffled computes the requests in another order, each with its samples in another order.
func checkShuffled(t *testing.T, m *Model, rng *rand.Rand, reqs []Request, samples [][]Sample, o ForwardOptions) {
	t.Helper()
	f, want := &Forest{}, []float32(nil)
	for _, i := range rng.Perm(len(reqs)) {
		root := len(f.Segments)
		f.Segments = append(f.Segments, Segment{Parent: Root, Tokens: reqs[i].Prompt})
		for _, k := range rng.Perm(len(samples[i])) {
			s := samples[i][k]
			f.Segments = append(f.Segments, Segment{Parent: root, Tokens: s.Tokens, Score: scoreFrom(len(s.Tokens), 0)})
			want = append(want, s.LogP...)
		}
	}
	checkBits(t, "logp of a shuffled forest", forward(t, m, f, o).LogP, want)
}

// The bits of 64 samples of one prompt are the same in batches of every size.
func TestSameBitsInEveryBatch(t *testing.T) {
	onKernels(t, func(t *testing.T, o cpu.Options, _ uint64) {
		m := shapedModel(t, o, 100)
		reqs := []Request{{Prompt: sequenceOf(40, 1), N: 64, Stream: []uint64{9}}}
		g := GenerateOptions{SamplingParams: plain(3), Adapter: "policy"}
		want := generate(t, m, reqs, g)
		for size := range 63 {
			if g.MaxBatch = size + 1; thorough || slices.Contains([]int{1, 2, 7, 14, 15, 33, 63}, g.MaxBatch) {
				checkSamples(t, fmt.Sprintf("batches of %d", g.MaxBatch), generate(t, m, reqs, g), want)
			}
		}
	})
}

// Gradients have the same bits with one thread and with two.
func TestThreadsDoNotChangeGradients(t *testing.T) {
	onKernels(t, func(t *testing.T, o cpu.Options, shapes uint64) {
		for seed := range shapes {
			var grads [2][]float32
			for i := range grads {
				o.Threads = 1 + i
				m := shapedModel(t, o, 200+seed)
				l := loss{ForwardOptions{Adapter: "policy", Temperature: 0.9, Entropy: true, HasKL: true}}
				grads[i], _ = gradientOf(t, m, l, []*Forest{groups(m.dev)}, byToken)
			}
			checkBits(t, fmt.Sprintf("gradients of shape %d", seed), grads[1], grads[0])
		}
	})
}
