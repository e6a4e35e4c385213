package selftest

import (
	"math"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// testCase is one operation.
type testCase struct {
	op  string
	run func(t *trial)
}

// Shapes: tokens, width, heads of a dimension, vocabulary.
const (
	tokens, width    = 33, 128
	heads, kv, dim   = 4, 2, 64
	vocabulary, rank = 515, 8
	eps              = 1e-6
)

func cases() []testCase {
	return []testCase{
		{"Copy, Add, Scale, Zero", elementwise},
		{"SumSquares", func(t *trial) { t.direct = append(t.direct, []float32{float32(t.SumSquares(t.act(tokens, width)))}) }},
		{"GatherRows, ScatterRows", rows},
		{"MeanRows", means},
		{"Embed", embed},
		{"RMSNorm", norm},
		{"RMSNormGrad", normGrad},
		{"Rotary", func(t *trial) { t.Rotary(t.out(tokens, heads*dim), t.act(tokens, heads*dim), t.rotary()) }},
		{"RotaryGrad", rotaryGrad},
		{"SwiGLU", func(t *trial) { t.SwiGLU(t.out(tokens, width), t.act(tokens, 2*width)) }},
		{"SwiGLUGrad", func(t *trial) { t.SwiGLUGrad(t.out(tokens, 2*width), t.act(tokens, width), t.act(tokens, 2*width)) }},
		{"Linear, float32", linear(device.Float32)},
		{"Linear, bfloat16", linear(device.BFloat16)},
		{"Linear, int8", linear(device.Int8)},
		{"Linear, int4", linear(device.Int4)},
		{"LinearGrad, float32", linearGrad(device.Float32)},
		{"LinearGrad, bfloat16", linearGrad(device.BFloat16)},
		{"Attention", attention},
		{"AttentionGrad", attentionGrad},
		{"Head", head},
		{"HeadGrad", headGrad},
		{"Logits", func(t *trial) {
			t.Logits(t.sum(tokens, vocabulary), t.act(tokens, width), t.weight(device.BFloat16, vocabulary, width))
		}},
		{"Sample", sample},
		{"AdamW", adamW},
	}
}

func elementwise(t *trial) {
	x, y, z := t.act(tokens, width), t.keep(t.act(tokens, width)), t.keep(t.act(tokens, width))
	t.Add(y, x, 0.5)
	t.Scale(y, 2)
	t.Zero(z)
	t.Copy(t.out(tokens, width), x)
}

func rows(t *trial) {
	x, order := t.act(4, width), t.ints(3, 0, 5, 1)
	y := t.keep(t.act(6, width))
	t.ScatterRows(y, x, order)
	t.ScatterAddRows(y, x, order)
	t.GatherRows(t.out(4, width), y, order)
}

func means(t *trial) {
	spans := []device.Span{{Row: 3, N: 9}, {Row: 20, N: 13}}
	t.MeanRows(t.sum(2, width), t.act(tokens, width), spans)
	t.MeanRowsGrad(t.keep(t.act(tokens, width)), t.param(2, width), spans)
}

func embed(t *trial) {
	ids := make([]int32, tokens)
	for i := range ids {
		ids[i] = int32(i * i % vocabulary)
	}
	mem := t.ints(ids...)
	t.Embed(t.out(tokens, width), t.weight(device.BFloat16, vocabulary, width), mem)
	t.EmbedGrad(t.sum(vocabulary, width), t.act(tokens, width), mem)
}

func norm(t *trial) {
	t.RMSNorm(t.out(tokens, width), t.keep(t.act(tokens, width)), t.act(tokens, width), t.param(1, width), eps)
}

func normGrad(t *trial) {
	t.RMSNormGrad(t.keep(t.act(tokens, width)), t.sum(1, width), t.act(tokens, width), t.act(tokens, width), t.param(1, width), eps)
}

func (t *trial) rotary() device.Rotary {
	at := make([]int32, tokens)
	cos, sin := make([]float32, tokens*dim/2), make([]float32, tokens*dim/2)
	for i := range at {
		at[i] = int32(tokens - 1 - i)
		for j := range dim / 2 {
			angle := float64(i) * math.Pow(1e4, -2*float64(j)/dim)
			cos[i*dim/2+j], sin[i*dim/2+j] = float32(math.Cos(angle)), float32(math.Sin(angle))
		}
	}
	return device.Rotary{
		HeadDim: dim, Cos: t.matrix(device.F32, tokens, dim/2, cos), Sin: t.matrix(device.F32, tokens, dim/2, sin),
		Pos: t.ints(at...), Norm: t.param(1, dim), Eps: eps,
	}
}

func rotaryGrad(t *trial) {
	r := t.rotary()
	r.DNorm = t.sum(1, dim)
	t.RotaryGrad(t.out(tokens, heads*dim), t.act(tokens, heads*dim), t.act(tokens, heads*dim), r)
}

// lora is a part on the columns [col, col+n).
func (t *trial) lora(col, n int) device.LoRA {
	return device.LoRA{Col: col, Scale: 0.25, A: t.param(rank, width), B: t.param(n, rank), DA: t.sum(rank, width), DB: t.sum(n, rank)}
}

func linear(d device.DType) func(*trial) {
	return func(t *trial) {
		l := device.Linear{W: t.weight(d, 96, width), Bias: t.param(1, 96), LoRA: []device.LoRA{t.lora(0, 64), t.lora(64, 32)}}
		t.Linear(t.out(tokens, 96), t.act(tokens, width), l)
		t.Linear(t.out(1, 96), t.act(1, width), l)
	}
}

func linearGrad(d device.DType) func(*trial) {
	return func(t *trial) {
		l := device.Linear{W: t.weight(d, 96, width), DW: t.sum(96, width), DBias: t.sum(1, 96), LoRA: []device.LoRA{t.lora(0, 64), t.lora(64, 32)}}
		t.LinearGrad(t.keep(t.act(tokens, width)), t.act(tokens, 96), t.act(tokens, width), l)
	}
}

// forest is a root of 17 tokens with two children of 9 and 7.
func forest() device.Attention {
	root := device.Span{Row: 0, N: 17}
	return device.Attention{Heads: heads, KVHeads: kv, HeadDim: dim, Scale: 0.125, Tasks: []device.AttentionTask{
		{Q: root, Keys: []device.Span{root}},
		{Q: device.Span{Row: 17, N: 9}, Pos: 17, Keys: []device.Span{root, {Row: 17, N: 9}}},
		{Q: device.Span{Row: 26, N: 7}, Pos: 17, Keys: []device.Span{root, {Row: 26, N: 7}}},
	}}
}

func attention(t *trial) {
	q, k, v := t.act(tokens, heads*dim), t.act(tokens, kv*dim), t.act(tokens, kv*dim)
	t.Attention(t.out(tokens, heads*dim), t.sum(tokens, heads), q, k, v, forest())
	last := forest() // as in decoding: the last token of each child
	last.Tasks = []device.AttentionTask{
		{Q: device.Span{Row: 0, N: 1}, Pos: 25, Keys: last.Tasks[1].Keys}, {Q: device.Span{Row: 1, N: 1}, Pos: 23, Keys: last.Tasks[2].Keys},
	}
	t.Attention(t.out(2, heads*dim), device.Mat{}, q.RowsOf(0, 2), k, v, last)
}

func attentionGrad(t *trial) {
	q, k, v := t.act(tokens, heads*dim), t.act(tokens, kv*dim), t.act(tokens, kv*dim)
	o, lse := t.matrix(device.Act, tokens, heads*dim, nil), t.matrix(device.F32, tokens, heads, nil)
	t.Attention(o, lse, q, k, v, forest())
	t.AttentionGrad(t.out(tokens, heads*dim), t.out(tokens, kv*dim), t.out(tokens, kv*dim), t.act(tokens, heads*dim), o, lse, q, k, v, forest())
}

// scored is a head with its inputs and outputs.
func (t *trial) scored() (device.HeadOut, device.Mat, device.Head) {
	targets := make([]int32, tokens)
	for i := range targets {
		targets[i] = int32((i*i + 7) % vocabulary)
	}
	l := device.Head{W: t.weight(device.BFloat16, vocabulary, width), Temp: 0.7, Targets: t.ints(targets...), Ref: t.act(tokens, width)}
	out := device.HeadOut{LogP: t.sum(tokens, 1), LSE: t.sum(tokens, 1), Entropy: t.sum(tokens, 1), KL: t.sum(tokens, 1), RefLSE: t.matrix(device.F32, tokens, 1, nil)}
	h := t.act(tokens, width)
	t.Head(out, h, l)
	return out, h, l
}

func head(t *trial) { t.scored() }

func headGrad(t *trial) {
	out, h, l := t.scored()
	l.DW = t.sum(vocabulary, width)
	t.HeadGrad(t.out(tokens, width), device.HeadGrad{LogP: t.param(tokens, 1), Entropy: t.param(tokens, 1), KL: t.param(tokens, 1)}, out, h, l)
}

func sample(t *trial) {
	plain := device.SampleRow{Temp: 1, TopP: 1, Penalty: 1, Key: device.NewKey(3, 5)}
	greedy, filtered := plain, plain
	greedy.Greedy = true
	filtered.TopK, filtered.TopP, filtered.Index = 40, 0.9, 7
	rows := []device.SampleRow{plain, greedy, filtered}
	out := device.SampleOut{IDs: make([]int32, 3), LogP: make([]float32, 3), Filtered: make([]float32, 3)}
	t.Sample(out, t.param(3, vocabulary), rows)
	ids := make([]float32, 3)
	for i, id := range out.IDs {
		ids[i] = float32(id)
	}
	t.direct = append(t.direct, ids, out.LogP, out.Filtered)
}

func adamW(t *trial) {
	w, m, v := t.keep(t.param(tokens, width)), t.sum(tokens, width), t.sum(tokens, width)
	for step := 1; step <= 2; step++ {
		t.AdamW(w, t.param(tokens, width), m, v, device.AdamW{
			LR: 1e-2, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.1, Step: step, GradScale: 0.5,
		})
	}
}
