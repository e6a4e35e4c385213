//go:build unix

package cpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// BenchmarkAttention is attention over prompts with their completions: all their tokens, forward and backward, or in
// decoding the last token of each. Masked scores and the backward pass's second computation of scores do not count.
func BenchmarkAttention(b *testing.B) {
	for _, s := range []struct {
		name                                   string
		heads, kv, dim                         int
		prompts, prompt, completions, complete int
		decode                                 bool
	}{
		{"quickstart-train", 4, 2, 48, 8, 34, 8, 16, false},
		{"quickstart-decode", 4, 2, 48, 8, 33, 8, 8, true},
		{"smollm2-train", 9, 3, 64, 2, 128, 4, 64, false},
		{"smollm2-decode-1", 9, 3, 64, 1, 128, 1, 32, true},
		{"smollm2-decode-8-of-one-prompt", 9, 3, 64, 1, 512, 8, 32, true},
		{"smollm2-decode-8-apart", 9, 3, 64, 8, 128, 1, 32, true},
		{"qwen2.5-0.5b-2k", 14, 2, 64, 1, 2048, 0, 0, false},
	} {
		b.Run(s.name, func(b *testing.B) {
			threadCounts(b, func(b *testing.B, x on) {
				a := device.Attention{Heads: s.heads, KVHeads: s.kv, HeadDim: s.dim, Scale: float32(1 / math.Sqrt(float64(s.dim)))}
				queries, keys, pairs := 0, 0, 0.0
				add := func(n, pos int, path ...device.Span) {
					if s.decode {
						n, pos = 1, pos+n-1
					}
					a.Tasks = append(a.Tasks, device.AttentionTask{Q: device.Span{Row: queries, N: n}, Pos: pos, Keys: path})
					queries += n
					pairs += float64(n) * (float64(pos) + float64(n)/2)
				}
				for range s.prompts {
					root := device.Span{Row: keys, N: s.prompt}
					keys += s.prompt
					if !s.decode {
						add(s.prompt, 0, root)
					}
					for range s.completions {
						add(s.complete, s.prompt, root, device.Span{Row: keys, N: s.complete})
						keys += s.complete
					}
				}
				width, kvWidth := s.heads*s.dim, s.kv*s.dim
				q, k, v, o, lse := x.mat(queries, width), x.mat(keys, kvWidth), x.mat(keys, kvWidth), x.mat(queries, width), x.mat(queries, s.heads)
				do, dq, dk, dv := x.mat(queries, width), x.mat(queries, width), x.mat(keys, kvWidth), x.mat(keys, kvWidth)
				flops := 2 * pairs * float64(width)
				b.Run("forward", func(b *testing.B) {
					measure(b, 2*flops, func() { x.Attention(o, lse, q, k, v, a) })
				})
				if !s.decode {
					x.Attention(o, lse, q, k, v, a)
					b.Run("backward", func(b *testing.B) {
						measure(b, 4*flops, func() { x.AttentionGrad(dq, dk, dv, do, o, lse, q, k, v, a) })
					})
				}
			})
		})
	}
}

// BenchmarkSample draws tokens for eight rows, with each of the processors.
func BenchmarkSample(b *testing.B) {
	for _, vocab := range []int{997, 49152, 151936} {
		for _, c := range []struct {
			name string
			row  device.SampleRow
		}{
			{"plain", device.SampleRow{Temp: 1, TopP: 1, Penalty: 1}},
			{"top-k", device.SampleRow{Temp: 0.7, TopK: 50, TopP: 1, Penalty: 1}},
			{"top-p", device.SampleRow{Temp: 0.7, TopP: 0.9, Penalty: 1}},
			{"min-p", device.SampleRow{Temp: 0.7, TopP: 1, MinP: 0.05, Penalty: 1}},
			{"greedy", device.SampleRow{Temp: 1, TopP: 1, Penalty: 1, Greedy: true}},
		} {
			b.Run(fmt.Sprintf("v%d/%s", vocab, c.name), func(b *testing.B) {
				x := onDevice(b, Options{Threads: 1})
				rows, logits := make([]device.SampleRow, 8), x.mat(8, vocab)
				for i := range rows {
					rows[i], rows[i].Index = c.row, uint32(i)
				}
				out := device.SampleOut{IDs: make([]int32, 8), LogP: make([]float32, 8), Filtered: make([]float32, 8)}
				for b.Loop() {
					x.Sample(out, logits, rows)
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(8*b.N)*1e6, "µs/row")
			})
		}
	}
}
