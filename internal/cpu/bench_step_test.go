//go:build unix

package cpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// shape is a decoder with a LoRA part of rank 8 on each projection. With fewer layers than the model that it is named
// after has, tokens per second are those of the layers that it has.
type shape struct {
	name                                   string
	layers, d, heads, kv, dim, f, vocab    int
	dtype                                  device.DType
	prompts, prompt, completions, complete int // the training batch, in tokens
}

func shapes() []shape {
	return []shape{
		{"quickstart", 3, 192, 4, 2, 48, 512, 997, device.BFloat16, 8, 34, 8, 14},
		{"smollm2-135m-2-of-30-layers", 2, 576, 9, 3, 64, 1536, 49152, device.BFloat16, 2, 64, 4, 64},
	}
}

// layer is one decoder layer.
type layer struct {
	norm, norm2    device.Mat
	qkv, o, gu, dn device.Linear
}

// net is a decoder with the activations of one layer.
type net struct {
	on
	shape
	t                                            int
	ls                                           []layer
	head                                         device.Weight
	x, h, qkv, att, lse, ao, gu, act, dx, dh     device.Mat
	dqkv, datt, dgu, dact, norm, cos, sin, cache device.Mat
	pos, ids                                     device.Mem
	attention                                    device.Attention
	out                                          device.HeadOut
	dlogp                                        device.Mat
}

func newNet(b on, s shape, rows, keys int) *net {
	n := &net{on: b, shape: s, t: rows}
	q, kv := s.heads*s.dim, s.kv*s.dim
	lin := func(out, in int, cuts ...int) device.Linear {
		l := device.Linear{W: b.weight(s.dtype, out, in)}
		at := 0
		for _, c := range append(cuts, out) {
			l.LoRA = append(l.LoRA, b.lora(at, c-at, in, 8))
			at = c
		}
		return l
	}
	for range s.layers {
		n.ls = append(n.ls, layer{norm: b.mat(1, s.d), norm2: b.mat(1, s.d),
			qkv: lin(q+2*kv, s.d, q, q+kv), o: lin(s.d, q), gu: lin(2*s.f, s.d, s.f), dn: lin(s.d, s.f)})
	}
	n.head, n.norm = b.weight(s.dtype, s.vocab, s.d), b.mat(1, s.d)
	n.x, n.h, n.qkv, n.att, n.lse = b.mat(rows, s.d), b.mat(rows, s.d), b.mat(rows, q+2*kv), b.mat(rows, q), b.mat(rows, s.heads)
	n.ao, n.gu, n.act, n.dx, n.dh = b.mat(rows, s.d), b.mat(rows, 2*s.f), b.mat(rows, s.f), b.mat(rows, s.d), b.mat(rows, s.d)
	n.dqkv, n.datt, n.dgu, n.dact = b.mat(rows, q+2*kv), b.mat(rows, q), b.mat(rows, 2*s.f), b.mat(rows, s.f)
	n.cos, n.sin, n.cache = b.mat(4096, s.dim/2), b.mat(4096, s.dim/2), b.mat(keys, 2*kv)
	n.pos, n.ids = b.ints(rows, func(i int) int32 { return int32(i % 100) }), b.ints(rows, func(i int) int32 { return int32(i % s.vocab) })
	n.attention = device.Attention{Heads: s.heads, KVHeads: s.kv, HeadDim: s.dim, Scale: float32(1 / math.Sqrt(float64(s.dim)))}
	n.out = device.HeadOut{LogP: b.mat(rows, 1), LSE: b.mat(rows, 1), Entropy: b.mat(rows, 1)}
	n.dlogp = b.mat(rows, 1)
	return n
}

// forward runs the layers; keys and values are those of the call, or of the cache.
func (n *net) forward(cached bool) {
	q, kv := n.heads*n.dim, n.kv*n.dim
	rot := device.Rotary{HeadDim: n.dim, Cos: n.cos, Sin: n.sin, Pos: n.pos}
	n.Embed(n.x, n.head, n.ids)
	for _, l := range n.ls {
		n.RMSNorm(n.h, n.x, device.Mat{}, l.norm, 1e-6)
		n.Linear(n.qkv, n.h, l.qkv)
		n.Rotary(n.qkv.ColsOf(0, q+kv), n.qkv.ColsOf(0, q+kv), rot)
		k, v := n.qkv.ColsOf(q, q+kv), n.qkv.ColsOf(q+kv, q+2*kv)
		if cached {
			k, v = n.cache.ColsOf(0, kv), n.cache.ColsOf(kv, 2*kv)
		}
		n.Attention(n.att, n.lse, n.qkv.ColsOf(0, q), k, v, n.attention)
		n.Linear(n.ao, n.att, l.o)
		n.RMSNorm(n.h, n.x, n.ao, l.norm2, 1e-6)
		n.Linear(n.gu, n.h, l.gu)
		n.SwiGLU(n.act, n.gu)
		n.Linear(n.ao, n.act, l.dn)
		n.Add(n.x, n.ao, 1)
	}
	n.RMSNorm(n.h, n.x, device.Mat{}, n.norm, 1e-6)
}

// backward runs the layers' gradients, as many operations as a backward pass with recomputed layers has (it uses the
// activations of the last layer for all).
func (n *net) backward() {
	q, kv := n.heads*n.dim, n.kv*n.dim
	rot := device.Rotary{HeadDim: n.dim, Cos: n.cos, Sin: n.sin, Pos: n.pos}
	for _, l := range n.ls {
		n.LinearGrad(n.dact, n.dx, n.act, l.dn)
		n.SwiGLUGrad(n.dgu, n.dact, n.gu)
		n.LinearGrad(n.dh, n.dgu, n.h, l.gu)
		n.RMSNormGrad(n.dx, device.Mat{}, n.dh, n.x, l.norm2, 1e-6)
		n.LinearGrad(n.datt, n.dx, n.att, l.o)
		cut := func(m device.Mat) (mq, mk, mv device.Mat) {
			return m.ColsOf(0, q), m.ColsOf(q, q+kv), m.ColsOf(q+kv, q+2*kv)
		}
		mq, mk, mv := cut(n.qkv)
		dq, dk, dv := cut(n.dqkv)
		n.AttentionGrad(dq, dk, dv, n.datt, n.att, n.lse, mq, mk, mv, n.attention)
		n.RotaryGrad(n.dqkv.ColsOf(0, q+kv), n.dqkv.ColsOf(0, q+kv), device.Mat{}, rot)
		n.LinearGrad(n.dh, n.dqkv, n.h, l.qkv)
		n.RMSNormGrad(n.dx, device.Mat{}, n.dh, n.x, l.norm, 1e-6)
	}
}

func (n *net) parameters() float64 {
	layer := n.d*(2*n.heads+2*n.kv)*n.dim + 3*n.d*n.f
	return float64(n.layers*layer + n.d*n.vocab)
}

// BenchmarkTrain is forward and backward over a forest of prompts with their completions.
func BenchmarkTrain(b *testing.B) {
	for _, s := range shapes() {
		b.Run(s.name, func(b *testing.B) {
			threadCounts(b, func(b *testing.B, x on) {
				rows := s.prompts * (s.prompt + s.completions*s.complete)
				n := newNet(x, s, rows, 1)
				at := 0
				for range s.prompts {
					root := device.Span{Row: at, N: s.prompt}
					n.attention.Tasks = append(n.attention.Tasks, device.AttentionTask{Q: root, Keys: []device.Span{root}})
					at += s.prompt
					for range s.completions {
						own := device.Span{Row: at, N: s.complete}
						n.attention.Tasks = append(n.attention.Tasks, device.AttentionTask{Q: own, Pos: s.prompt, Keys: []device.Span{root, own}})
						at += s.complete
					}
				}
				scored := device.Head{W: n.head, Temp: 1, Targets: n.ids}
				measure(b, 4*float64(rows)*n.parameters(), func() {
					n.forward(false)
					n.Head(n.out, n.h, scored)
					n.HeadGrad(n.dx, device.HeadGrad{LogP: n.dlogp}, n.out, n.h, scored)
					n.backward()
				})
				if err := n.Sync(); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "tok/s")
			})
		})
	}
}

// BenchmarkDecode is one step of so many sequences with a path of 64 keys, half of them shared.
func BenchmarkDecode(b *testing.B) {
	for _, s := range shapes() {
		for _, rows := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/rows=%d", s.name, rows), func(b *testing.B) {
				threadCounts(b, func(b *testing.B, x on) {
					const half = 32
					n := newNet(x, s, rows, half*(rows+1))
					sample := make([]device.SampleRow, rows)
					out := device.SampleOut{IDs: make([]int32, rows), LogP: make([]float32, rows), Filtered: make([]float32, rows)}
					for i := range rows {
						keys := []device.Span{{Row: 0, N: half}, {Row: half * (i + 1), N: half}}
						n.attention.Tasks = append(n.attention.Tasks, device.AttentionTask{Q: device.Span{Row: i, N: 1}, Pos: 2*half - 1, Keys: keys})
						sample[i] = device.SampleRow{Temp: 1, TopP: 1, Penalty: 1, Index: uint32(i)}
					}
					logits := x.mat(rows, s.vocab)
					measure(b, 2*float64(rows)*n.parameters(), func() {
						n.forward(true)
						n.Logits(logits, n.h, n.head)
						n.Sample(out, logits, sample)
					})
					if err := n.Sync(); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "tok/s")
				})
			})
		}
	}
}
