//go:build slow

package policy

import (
	"os"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/cpu"
)

// benchSmolLM2 opens SmolLM2 with an adapter of rank 8 on all projections.
func benchSmolLM2(b *testing.B) *Model {
	dir := os.Getenv("RUBICON_TEST_SMOLLM2")
	if dir == "" {
		b.Skip("set RUBICON_TEST_SMOLLM2 to a folder with SmolLM2-135M-Instruct")
	}
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	m, err := Load(b.Context(), dev, dir, LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if err := m.AddAdapter("policy", LoRAConfig{R: 8, Alpha: 16, TargetModules: []string{AllLinear}}, 1); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := m.Close(); err != nil {
			b.Error(err)
		}
		if err := dev.Close(); err != nil {
			b.Error(err)
		}
	})
	return m
}

// BenchmarkSmolLM2Generate samples 4 completions of 64 tokens for each of 2 prompts of 128.
func BenchmarkSmolLM2Generate(b *testing.B) {
	m := benchSmolLM2(b)
	reqs := []Request{{Prompt: sequenceOf(128, 1), N: 4}, {Prompt: sequenceOf(128, 2), N: 4}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Generate(b.Context(), reqs, GenerateOptions{SamplingParams: plain(64), Adapter: "policy"}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(8*64*b.N)/b.Elapsed().Seconds(), "tokens/s")
}

// BenchmarkSmolLM2Train is a forward and backward pass over the same batch, prompts shared; the rate counts every
// sequence's 192 tokens, as one that does not share would compute.
func BenchmarkSmolLM2Train(b *testing.B) {
	m := benchSmolLM2(b)
	f := &Forest{}
	for p := range 2 {
		root := len(f.Segments)
		f.Segments = append(f.Segments, Segment{Parent: Root, Tokens: sequenceOf(128, p)})
		for c := range 4 {
			f.Segments = append(f.Segments, Segment{Parent: root, Tokens: sequenceOf(64, 10*p+c), Score: scoreFrom(64, 0)})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		p, err := m.Forward(f, ForwardOptions{Adapter: "policy", Temperature: 1, Grad: true})
		if err != nil {
			b.Fatal(err)
		}
		_, grad := meanLoss(p.Output.LogP)
		if err := p.Backward(Gradients{LogP: grad}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(8*192*b.N)/b.Elapsed().Seconds(), "tokens/s")
}
