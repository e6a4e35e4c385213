//go:build slow

package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/cpu"
)

// benchBatch is what a benchmark samples or trains on: prompts with their completions, in tokens.
type benchBatch struct{ prompts, prompt, completions, complete int }

// benches are the models with their batches; "quickstart" is the one in the binary.
func benches(b *testing.B, run func(b *testing.B, m *Model, s benchBatch)) {
	for _, c := range []struct {
		name, dir string
		batch     benchBatch
	}{
		{"quickstart", filepath.Join("..", "internal", "embedded", "quickstart"), benchBatch{8, 34, 8, 16}},
		{"smollm2", os.Getenv("RUBICON_TEST_SMOLLM2"), benchBatch{2, 128, 4, 64}},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.dir == "" {
				b.Skip("set RUBICON_TEST_SMOLLM2 to a folder with SmolLM2-135M-Instruct")
			}
			m := benchModel(b, c.dir)
			b.ReportAllocs()
			run(b, m, c.batch)
		})
	}
}

// benchModel opens the model in dir with an adapter of rank 8 on all projections.
func benchModel(b *testing.B, dir string) *Model {
	dev, err := cpu.New(cpu.Options{Tier: os.Getenv("RUBICON_CPU_TIER")})
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

// BenchmarkGenerate samples the completions, all at a time, or (one) a single one.
func BenchmarkGenerate(b *testing.B) {
	benches(b, func(b *testing.B, m *Model, s benchBatch) {
		for _, one := range []bool{false, true} {
			var reqs []Request
			for p := range s.prompts {
				reqs = append(reqs, Request{Prompt: sequenceOf(s.prompt, p), N: s.completions})
			}
			if one {
				reqs = []Request{{Prompt: reqs[0].Prompt, N: 1}}
			}
			b.Run(fmt.Sprintf("one=%v", one), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := m.Generate(b.Context(), reqs, GenerateOptions{SamplingParams: plain(s.complete), Adapter: "policy"}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(reqs)*reqs[0].N*s.complete*b.N)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	})
}

// BenchmarkTrain is a forward and backward pass over the same batch, prompts shared; the rate counts the tokens of every
// sequence, as one that does not share would compute.
func BenchmarkTrain(b *testing.B) {
	benches(b, func(b *testing.B, m *Model, s benchBatch) {
		f := &Forest{}
		for p := range s.prompts {
			root := len(f.Segments)
			f.Segments = append(f.Segments, Segment{Parent: Root, Tokens: sequenceOf(s.prompt, p)})
			for c := range s.completions {
				f.Segments = append(f.Segments, Segment{
					Parent: root, Tokens: sequenceOf(s.complete, 10*p+c), Score: scoreFrom(s.complete, 0),
				})
			}
		}
		for b.Loop() {
			p, err := m.Forward(f, ForwardOptions{Adapter: "policy", Temperature: 1, Grad: true, KeepAll: true})
			if err != nil {
				b.Fatal(err)
			}
			_, grad := meanLoss(p.Output.LogP)
			if err := p.Backward(Gradients{LogP: grad}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(s.prompts*s.completions*(s.prompt+s.complete)*b.N)/b.Elapsed().Seconds(), "tokens/s")
	})
}
