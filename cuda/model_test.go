//go:build slow

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
)

// Whole models on the simulated device equal those on internal/cpu, which policy's tests compare with transformers. Each
// is three layers of random weights of width 64 with a vocabulary of 1000; the one whose heads are 64 wide is for the kernels
// that use the matrix unit.
var architectures = map[string]func(*testing.T) policy.Config{
	"qwen2": configOf("qwen2"), "qwen3": configOf("qwen3"), "llama3": configOf("llama3"),
	"qwen3 of wide heads": func(t *testing.T) policy.Config {
		c := configOf("qwen3")(t)
		c.Heads, c.KVHeads, c.HeadDim, c.Layers = 2, 1, 64, 2
		return c
	},
}

func configOf(name string) func(*testing.T) policy.Config {
	return func(t *testing.T) policy.Config {
		c, err := policy.ReadConfig(golden.Path("models", name))
		check(t, err)
		c.InitStd = 0.15
		return c
	}
}

// closeness bounds what the device may differ from the CPU by. Of float32, sums differ in order only; of bfloat16, every
// activation has 8 bits, in three layers forward and again backward. The first steps of AdamW divide each gradient by its own
// size, so that the small ones, which are the least exact, count as much as the others.
type closeness struct {
	logp   float64 // log-probabilities, entropies and KL: nats
	pooled float64 // pooled hidden states: of the largest
	grad   float64 // norm of the difference of gradients, of the gradient
	step   float64 // norm of the difference of what three updates change, of that change
}

var types = map[driver.Type]struct {
	weights string
	close   closeness
}{
	driver.F32:  {"float32", closeness{logp: 2e-5, pooled: 1e-5, grad: 1e-5, step: 2e-3}},
	driver.BF16: {"bfloat16", closeness{logp: 0.15, pooled: 3e-2, grad: 4e-2, step: 0.15}},
}

// onBoth runs a test with a model of each architecture on the device and the same one on the CPU, for both types.
func onBoth(t *testing.T, test func(t *testing.T, gpu, cpu *policy.Model, c closeness)) {
	for act, kind := range types {
		for name, config := range architectures {
			t.Run(fmt.Sprintf("%s %s", kind.weights, name), func(t *testing.T) {
				host, err := cpu.New(cpu.Options{})
				check(t, err)
				test(t, model(t, simulated(act)(t), config(t), kind.weights), model(t, host, config(t), kind.weights), kind.close)
			})
		}
	}
}

// model makes a model with two adapters whose values are of the size of trained ones, and closes it and dev in the end.
func model(t *testing.T, dev device.Device, c policy.Config, weights string) *policy.Model {
	t.Helper()
	m, err := policy.New(t.Context(), dev, c, 7, policy.LoadOptions{DType: weights})
	check(t, err)
	t.Cleanup(func() {
		check(t, m.Close())
		if n := dev.Allocated(); n != 0 {
			t.Errorf("%d bytes were not given back", n)
		}
		check(t, dev.Close())
	})
	for i, name := range []string{"policy", "other"} {
		check(t, m.AddAdapter(name, policy.LoRAConfig{R: 3, Alpha: 6, Dropout: 0.25, TargetModules: []string{policy.AllLinear}}, 1))
		p, err := m.Params(name)
		check(t, err)
		rng, v := rand.New(rand.NewPCG(uint64(i), 3)), make([]float32, p.Len)
		for j := range v {
			v[j] = (rng.Float32() - 0.5) / 4
		}
		check(t, p.Upload(dev, v))
	}
	return m
}

// family is a forest of two roots, of children and a grandchild, with scored tokens here and there.
func family() *policy.Forest {
	return &policy.Forest{Segments: []policy.Segment{
		{Parent: policy.Root, Tokens: []int32{5, 6, 7, 8, 501, 502, 503, 504, 505, 506, 507}, Score: []bool{2: true, 10: false}, ID: 11},
		{Parent: 0, Tokens: []int32{9, 10, 11}, Score: []bool{true, false, true}, ID: 12},
		{Parent: 0, Tokens: []int32{12, 5}, Score: []bool{true, true}, ID: 13},
		{Parent: policy.Root, Tokens: []int32{20}, ID: 14},
		{Parent: 1, Tokens: []int32{6, 7, 30}, Score: []bool{true, true, true}, ID: 15},
		{Parent: 3, Tokens: []int32{31, 5}, Score: []bool{true, false}, ID: 16},
	}}
}

// Log-probabilities, entropy, KL and pooled states, and the gradients of a loss in all of them, with dropout.
func TestModelsForwardBackward(t *testing.T) {
	onBoth(t, func(t *testing.T, gpu, cpu *policy.Model, c closeness) {
		got, gotGrad := modelPass(t, gpu)
		want, wantGrad := modelPass(t, cpu)
		for name, pair := range map[string][2][]float32{"logp": {got.LogP, want.LogP}, "entropy": {got.Entropy, want.Entropy}, "KL": {got.KL, want.KL}} {
			if d := largest(pair[0], pair[1]); !(d <= c.logp) {
				t.Errorf("%s differs by %.2g nats, more than %.2g", name, d, c.logp)
			}
		}
		for i, v := range want.Pooled {
			if d := largest(got.Pooled[i], v) / largest(v, make([]float32, len(v))); !(d <= c.pooled) {
				t.Errorf("pooled state %d differs by %.2g of its largest, more than %.2g", i, d, c.pooled)
			}
		}
		if d := distance(gotGrad, wantGrad); !(d <= c.grad) {
			t.Errorf("the gradient differs by %.2g of its norm, more than %.2g", d, c.grad)
		}
		t.Logf("logp %.2g, KL %.2g, gradient %.2g", largest(got.LogP, want.LogP), largest(got.KL, want.KL), distance(gotGrad, wantGrad))
	})
}

func modelPass(t *testing.T, m *policy.Model) (policy.Output, []float32) {
	t.Helper()
	p, err := m.Forward(family(), policy.ForwardOptions{
		Adapter: "policy", Temperature: 0.7, Entropy: true, HasKL: true, KL: "other",
		Pool: []bool{false, true, false, true, true, false}, Grad: true, Train: true, Seed: 3, Step: 4,
	})
	check(t, err)
	out := p.Output
	weights := func(kind, n int) []float32 {
		w := make([]float32, n)
		for i := range w {
			w[i] = float32((i*7+kind*5)%13-6) / 8
		}
		return w
	}
	g := policy.Gradients{LogP: weights(0, len(out.LogP)), Entropy: weights(1, len(out.Entropy)), KL: weights(2, len(out.KL))}
	for i, v := range out.Pooled {
		g.Pooled = append(g.Pooled, weights(3+i, len(v)))
	}
	check(t, p.Backward(g))
	params, err := m.Params("policy")
	check(t, err)
	grad := make([]float32, params.Len)
	check(t, m.Device().Download(grad, params.Grad, 0))
	return out, grad
}

// Greedy continuations are the same token for token in float32, and so are drawn ones. In bfloat16, where a near tie may
// fall either way, what the sampler says of its tokens is what a forward pass says of them.
func TestModelsGenerate(t *testing.T) {
	onBoth(t, func(t *testing.T, gpu, cpu *policy.Model, c closeness) {
		for _, p := range []policy.SamplingParams{
			{Greedy: true, TopP: 1, RepetitionPenalty: 1, MaxNewTokens: 8},
			{Temperature: 0.8, TopK: 50, TopP: 0.9, RepetitionPenalty: 1.2, MaxNewTokens: 8},
		} {
			got, want := modelSamples(t, gpu, p), modelSamples(t, cpu, p)
			if gpu.WeightType() == device.BFloat16 {
				checkSampler(t, gpu, p, got, c)
				continue
			}
			for i := range want {
				for j, w := range want[i] {
					if !slices.Equal(got[i][j].Tokens, w.Tokens) {
						t.Errorf("greedy %v, prompt %d, sample %d: %v, on the CPU %v", p.Greedy, i, j, got[i][j].Tokens, w.Tokens)
					} else if d := largest(got[i][j].LogP, w.LogP); !(d <= c.logp) {
						t.Errorf("greedy %v, prompt %d, sample %d: log-probabilities differ by %.2g", p.Greedy, i, j, d)
					}
				}
			}
		}
	})
}

var requests = []policy.Request{
	{Prompt: []int32{5, 6, 7, 8, 9, 10, 11}, N: 2, Stream: []uint64{1, 2}},
	{Prompt: []int32{300}, N: 1, Stream: []uint64{1, 3}},
	{Prompt: []int32{44, 45, 46}, N: 3, Stream: []uint64{1, 4}},
}

func modelSamples(t *testing.T, m *policy.Model, p policy.SamplingParams) [][]policy.Sample {
	t.Helper()
	samples, err := m.Generate(t.Context(), requests, policy.GenerateOptions{SamplingParams: p, Adapter: "policy", MaxBatch: 4, PrefillChunk: 4})
	check(t, err)
	return samples
}

// checkSampler compares the log-probabilities of samples with those of a pass over them.
func checkSampler(t *testing.T, m *policy.Model, p policy.SamplingParams, samples [][]policy.Sample, c closeness) {
	t.Helper()
	f, sampled := &policy.Forest{}, []float32{}
	for i, r := range requests {
		root := len(f.Segments)
		f.Segments = append(f.Segments, policy.Segment{Parent: policy.Root, Tokens: r.Prompt})
		for _, s := range samples[i] {
			all := slices.Repeat([]bool{true}, len(s.Tokens))
			f.Segments = append(f.Segments, policy.Segment{Parent: root, Tokens: s.Tokens, Score: all})
			sampled = append(sampled, s.LogP...)
		}
	}
	o := policy.ForwardOptions{Adapter: "policy", Temperature: p.Temperature}
	if p.Greedy {
		o.Temperature = 1
	}
	pass, err := m.Forward(f, o)
	check(t, err)
	defer pass.Release()
	if d := largest(sampled, pass.Output.LogP); !(d <= c.logp) {
		t.Errorf("sampler and pass differ by %.2g nats, more than %.2g", d, c.logp)
	}
}

// Three steps of AdamW on the mean log-probability of the forest change the adapter alike.
func TestModelsTrain(t *testing.T) {
	onBoth(t, func(t *testing.T, gpu, cpu *policy.Model, c closeness) {
		got, want := modelUpdate(t, gpu), modelUpdate(t, cpu)
		if d := distance(got, want); !(d <= c.step) {
			t.Errorf("three steps differ by %.2g of what they change, more than %.2g", d, c.step)
		} else {
			t.Logf("three steps differ by %.2g", d)
		}
	})
}

// modelUpdate is what three updates change.
func modelUpdate(t *testing.T, m *policy.Model) []float32 {
	t.Helper()
	dev := m.Device()
	params, err := m.Params("policy")
	check(t, err)
	before, err := params.Download(dev)
	check(t, err)
	adam, err := policy.NewAdamW(dev, params)
	check(t, err)
	defer adam.Close()
	for step := range uint64(3) {
		p, err := m.Forward(family(), policy.ForwardOptions{Adapter: "policy", Temperature: 1, Grad: true, Train: true, Seed: 5, Step: step})
		check(t, err)
		g := make([]float32, len(p.Output.LogP))
		for i := range g {
			g[i] = -1 / float32(len(g))
		}
		check(t, p.Backward(policy.Gradients{LogP: g}))
		norm := math.Sqrt(params.GradSquares(dev))
		check(t, adam.Step(params, 1e-3, policy.AdamWOptions{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01}, min(1, 1/norm)))
		params.ZeroGrad(dev)
	}
	after, err := params.Download(dev)
	check(t, err)
	for i := range after {
		after[i] -= before[i]
	}
	return after
}

// distance is the norm of a-b, of that of b.
func distance(a, b []float32) float64 {
	var apart, all float64
	for i := range b {
		apart += math.Pow(float64(a[i])-float64(b[i]), 2)
		all += math.Pow(float64(b[i]), 2)
	}
	return math.Sqrt(apart / all)
}
