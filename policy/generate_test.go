package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/golden"
)

// plain samples from the model's own distribution.
func plain(maxNew int) SamplingParams {
	return SamplingParams{Temperature: 1, TopP: 1, RepetitionPenalty: 1, MaxNewTokens: maxNew}
}

func greedy(maxNew int) SamplingParams {
	p := plain(maxNew)
	p.Greedy = true
	return p
}

func generate(t *testing.T, m *Model, reqs []Request, o GenerateOptions) [][]Sample {
	t.Helper()
	samples, err := m.Generate(t.Context(), reqs, o)
	must(t, err)
	return samples
}

// once asks for one continuation of each prompt.
func once(prompts [][]int32) []Request {
	var reqs []Request
	for i, p := range prompts {
		reqs = append(reqs, Request{Prompt: p, N: 1, Stream: []uint64{uint64(i)}})
	}
	return reqs
}

// Greedy generation gives transformers' tokens, also up to an end-of-sequence token and with a repetition penalty.
func TestGenerateGolden(t *testing.T) {
	for _, name := range tinyModels {
		t.Run(name, func(t *testing.T) {
			onDevices(t, func(t *testing.T, dev device.Device) { checkGenerateGolden(t, dev, name) })
		})
	}
}

func checkGenerateGolden(t *testing.T, dev device.Device, name string) {
	m, g := loadTiny(t, dev, name, LoadOptions{}), tensors(t, "generate", name)
	prompts, _ := unpad(g["prompt_ids"], g["prompt_mask"])
	tokens := goldenRows(g["new_tokens"], 0)
	firm := firmLengths(g["top2_margin"])
	samples := generate(t, m, once(prompts), GenerateOptions{SamplingParams: greedy(32)})
	for i := range prompts {
		got, n := samples[i][0], firm[i]
		checkTokens(t, fmt.Sprintf("row %d", i), got.Tokens[:n], tokens[i][:n])
		golden.Close(t, fmt.Sprintf("logp of row %d", i), got.LogP[:n], g["chosen_logp_T1"].Float[32*i:32*i+n], 2e-5)
		if got.Finish != FinishLength || len(got.Tokens) != 32 {
			t.Errorf("row %d: %d tokens, finish %q", i, len(got.Tokens), got.Finish)
		}
	}

	stop := greedy(32)
	stop.EOS = []int32{-1, tokens[0][6]}
	for i, got := range generate(t, m, once(prompts), GenerateOptions{SamplingParams: stop}) {
		want := goldenRows(g["with_eos.sequences"], g["prompt_ids"].Shape[1])[i]
		finish := FinishLength
		if at := slices.Index(want, stop.EOS[1]); at >= 0 {
			want, finish = want[:at+1], FinishEOS
		}
		n := min(firm[i], len(want))
		checkTokens(t, fmt.Sprintf("with eos, row %d", i), got[0].Tokens[:n], want[:n])
		if firm[i] >= len(want) && (got[0].Finish != finish || len(got[0].Tokens) != len(want)) {
			t.Errorf("with eos, row %d: %d tokens, finish %q, want %d and %q", i, len(got[0].Tokens), got[0].Finish, len(want), finish)
		}
	}

	// Only the longest prompt has no padding, which transformers would count as seen.
	penal, longest := greedy(32), 1
	penal.RepetitionPenalty = 1.3
	got := generate(t, m, once(prompts[longest:longest+1]), GenerateOptions{SamplingParams: penal})[0][0]
	checkTokens(t, "with penalty", got.Tokens, goldenRows(g["repetition_penalty_1.3.sequences"], len(prompts[longest]))[longest])
}

// goldenRows are the rows of a [B,T] integer tensor from column from on.
func goldenRows(g golden.Tensor, from int) [][]int32 {
	var rows [][]int32
	for r := range g.Shape[0] {
		var row []int32
		for _, id := range g.Int[r*g.Shape[1]+from : (r+1)*g.Shape[1]] {
			row = append(row, int32(id))
		}
		rows = append(rows, row)
	}
	return rows
}

// firmLengths say how many tokens of each row are clear of a tie between the two best.
func firmLengths(margin golden.Tensor) []int {
	n := margin.Shape[1]
	var firm []int
	for r := range margin.Shape[0] {
		at := slices.IndexFunc(margin.Float[r*n:(r+1)*n], func(x float32) bool { return x < 1e-3 })
		if at < 0 {
			at = n
		}
		firm = append(firm, at)
	}
	return firm
}

func checkTokens(t *testing.T, what string, got, want []int32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: tokens %v, want %v", what, got, want)
	}
}

// mixedRequests are prompts of awkward lengths, also of one token and longer than a page and a chunk; few where the
// device is the slow one.
func mixedRequests(dev device.Device) []Request {
	lengths := []int{5, 1, 70, 33, 2, 32, 40}
	if isReference(dev) {
		lengths = []int{1, 34, 3}
	}
	var reqs []Request
	for i, n := range lengths {
		var prompt []int32
		for j := range n {
			prompt = append(prompt, int32((i*131+j*17+3)%990))
		}
		reqs = append(reqs, Request{Prompt: prompt, N: 2 + i%3, Stream: []uint64{7, uint64(i)}})
	}
	return reqs
}

func mixedParams(dev device.Device, v int) SamplingParams {
	p := plain(45)
	if isReference(dev) {
		p = plain(6)
	}
	p.EOS = []int32{11, 500}
	switch v {
	case 1:
		p.Temperature, p.TopK, p.TopP, p.MinP, p.RepetitionPenalty = 0.7, 50, 0.95, 0.01, 1.2
	case 2:
		p.Greedy = true
	}
	return p
}

// The bits of a sample do not depend on what else is generated, on how many at a time, on the size of the cache (which
// makes samples wait, or be dropped and computed again), or on how prompts are cut.
func TestSamplesDoNotDependOnTheBatch(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen3", LoadOptions{})
		reqs := mixedRequests(dev)
		for v := range 3 {
			p := mixedParams(dev, v)
			want := generate(t, m, reqs, GenerateOptions{SamplingParams: p})
			for _, o := range []GenerateOptions{
				{MaxBatch: 1}, {MaxBatch: 5, PrefillChunk: 7}, {KVTokens: 160}, {MaxBatch: 3, KVTokens: 224, PrefillChunk: 64},
			} {
				o.SamplingParams = p
				checkSamples(t, fmt.Sprintf("%+v", o), generate(t, m, reqs, o), want)
				m.FreeCache()
			}
			for i := range reqs {
				alone := generate(t, m, reqs[i:i+1], GenerateOptions{SamplingParams: p})
				checkSamples(t, fmt.Sprintf("request %d alone", i), alone, want[i:i+1])
			}
		}
	})
}

func checkSamples(t *testing.T, what string, got, want [][]Sample) {
	t.Helper()
	for i := range want {
		for k := range want[i] {
			a, b := got[i][k], want[i][k]
			if !slices.Equal(a.Tokens, b.Tokens) || a.Finish != b.Finish {
				t.Errorf("%s: request %d, sample %d: %v (%s), want %v (%s)", what, i, k, a.Tokens, a.Finish, b.Tokens, b.Finish)
				continue
			}
			checkBits(t, fmt.Sprintf("%s: logp of request %d, sample %d", what, i, k), a.LogP, b.LogP)
			checkBits(t, fmt.Sprintf("%s: filtered logp of request %d, sample %d", what, i, k), a.Filtered, b.Filtered)
		}
	}
}

// checkBits fails unless the numbers are the same bits.
func checkBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s: value %d is %v, want the bits of %v", what, i, got[i], want[i])
			return
		}
	}
}

// The log-probabilities that sampling reports have the bits of a forward pass, over the whole forest or one sequence, with
// or without an adapter.
func TestSamplerAgreesWithForward(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		for _, name := range []string{"qwen2", "qwen3"} {
			m := loadTiny(t, dev, name, LoadOptions{})
			must(t, m.AddAdapter("policy", LoRAConfig{R: 4, Alpha: 8, TargetModules: []string{AllLinear}}, 5))
			scramble(t, m, "policy")
			for _, adapter := range []string{"", "policy"} {
				p := mixedParams(dev, 1)
				reqs := mixedRequests(dev)
				samples := generate(t, m, reqs, GenerateOptions{SamplingParams: p, Adapter: adapter, MaxBatch: 6})
				checkAgreement(t, m, reqs, samples, ForwardOptions{Adapter: adapter, Temperature: p.Temperature})
			}
		}
	})
}

func checkAgreement(t *testing.T, m *Model, reqs []Request, samples [][]Sample, o ForwardOptions) {
	t.Helper()
	shared, want := &Forest{}, []float32(nil)
	for i, r := range reqs {
		root := len(shared.Segments)
		shared.Segments = append(shared.Segments, Segment{Parent: Root, Tokens: r.Prompt})
		for _, s := range samples[i] {
			shared.Segments = append(shared.Segments, Segment{Parent: root, Tokens: s.Tokens, Score: scoreFrom(len(s.Tokens), 0)})
			want = append(want, s.LogP...)

			whole := append(slices.Clone(r.Prompt), s.Tokens...)
			one := &Forest{Segments: []Segment{{Parent: Root, Tokens: whole, Score: scoreFrom(len(whole), len(r.Prompt))}}}
			checkBits(t, "logp of one sequence", forward(t, m, one, o).LogP, s.LogP)
		}
	}
	checkBits(t, "logp of the forest", forward(t, m, shared, o).LogP, want)
}

// forward returns a pass's output and releases it.
func forward(t *testing.T, m *Model, f *Forest, o ForwardOptions) Output {
	t.Helper()
	p, err := m.Forward(f, o)
	must(t, err)
	defer p.Release()
	return p.Output
}

// scramble gives a set's parameters values of the size of trained ones, the same on every device.
func scramble(t *testing.T, m *Model, set string) {
	t.Helper()
	p, err := m.Params(set)
	must(t, err)
	v := make([]float32, p.Len)
	uniform(v, 0.1, device.NewKey(99))
	must(t, p.Upload(m.dev, v))
}

// wantError fails unless err's text has all parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want %q in it", err, part)
		}
	}
}
