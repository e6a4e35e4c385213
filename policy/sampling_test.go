package policy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// With stop strings a sample ends with the token that completes one, wherever in the token it ends.
func TestStopStrings(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	letters := func(ids []int32) string {
		var b strings.Builder
		for _, id := range ids {
			fmt.Fprintf(&b, "<%d>", id)
		}
		return b.String()
	}
	reqs := []Request{{Prompt: []int32{1, 2, 3}, N: 2}}
	free := generate(t, m, reqs, GenerateOptions{SamplingParams: plain(40)})
	p := plain(40)
	p.Decode = letters
	tokens := free[0][1].Tokens
	p.Stop = []string{"never", fmt.Sprintf("%d><%d", tokens[19], tokens[20])}
	got := generate(t, m, reqs, GenerateOptions{SamplingParams: p})
	checkTokens(t, "stopped", got[0][1].Tokens, tokens[:21])
	if got[0][1].Finish != FinishStop {
		t.Errorf("finish %q", got[0][1].Finish)
	}
	checkTokens(t, "not stopped", got[0][0].Tokens, free[0][0].Tokens)
}

// Tokens that decode to nothing may stand inside a stop string, and what stood before it does not matter.
func TestStopsSeesThroughEmptyTokens(t *testing.T) {
	p := SamplingParams{Stop: []string{"xyz", "ab"}, Decode: func(ids []int32) string {
		var b strings.Builder
		for _, id := range ids {
			b.WriteString([]string{"", "a", "b", "c"}[id])
		}
		return b.String()
	}}
	for _, c := range []struct {
		ids  []int32
		want bool
	}{
		{[]int32{3, 1, 0, 0, 0, 0, 2}, true}, {[]int32{3, 1, 0, 3, 2}, false}, {[]int32{2, 1}, false}, {[]int32{1, 2}, true}, {nil, false},
	} {
		if got := p.stops(c.ids); got != c.want {
			t.Errorf("stops(%v) is %v", c.ids, got)
		}
	}
}

// A token is the first in ascending order at which the cumulative probability exceeds the uniform number of the stream:
// Philox with the key of (Stream, sample) and the counter of the token's index.
func TestDrawsByInverseCDF(t *testing.T) {
	m := loadTiny(t, openReference(t), "qwen2", LoadOptions{})
	r := Request{Prompt: []int32{4, 5, 6}, N: 2, Stream: []uint64{3, 1, 4}}
	for k, s := range generate(t, m, []Request{r}, GenerateOptions{SamplingParams: plain(12)})[0] {
		logits := m.testLogits(t, roots([][]int32{append(slices.Clone(r.Prompt), s.Tokens...)}), "")
		key := device.NewKey(3, 1, 4, uint64(k))
		for i, id := range s.Tokens {
			u := float64(device.Uniform(device.Philox(key, [4]uint32{uint32(i)})[0]))
			p := softmax(logits[(len(r.Prompt)-1+i)*m.cfg.Vocab:][:m.cfg.Vocab], 1)
			below := 0.0
			for _, x := range p[:id] {
				below += x
			}
			if u < below-1e-6 || u > below+p[id]+1e-6 {
				t.Errorf("sample %d, token %d: %d covers %v to %v, the uniform number is %v", k, i, id, below, below+p[id], u)
			}
		}
	}
}

// softmax is the distribution of logits at a temperature, in float64.
func softmax(z []float32, temp float64) []float64 {
	p, sum := make([]float64, len(z)), 0.0
	for v, x := range z {
		p[v] = math.Exp(float64(x) / temp)
		sum += p[v]
	}
	for v := range p {
		p[v] /= sum
	}
	return p
}

// A sample ends where the context does, and a prompt that leaves no room is refused.
func TestContextLimit(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	long := make([]int32, m.cfg.MaxPositions-3)
	got := generate(t, m, []Request{{Prompt: long, N: 1}}, GenerateOptions{SamplingParams: plain(10)})[0][0]
	if len(got.Tokens) != 3 || got.Finish != FinishLength {
		t.Errorf("%d tokens, finish %q, want 3 and length", len(got.Tokens), got.Finish)
	}
	_, err := m.Generate(t.Context(), []Request{{Prompt: make([]int32, m.cfg.MaxPositions), N: 1}}, GenerateOptions{SamplingParams: plain(1)})
	wantError(t, err, "context of 512", "shorten")
}

func TestGenerateRefuses(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	ok := []Request{{Prompt: []int32{1, 2}, N: 1}}
	for _, c := range []struct {
		change func(o *GenerateOptions)
		reqs   []Request
		want   string
	}{
		{func(o *GenerateOptions) { o.Temperature = 0 }, ok, "temperature"},
		{func(o *GenerateOptions) { o.Temperature = float32(math.NaN()) }, ok, "temperature"},
		{func(o *GenerateOptions) { o.TopP = 0 }, ok, "top_p"},
		{func(o *GenerateOptions) { o.TopK = -1 }, ok, "top_k"},
		{func(o *GenerateOptions) { o.MinP = 2 }, ok, "min_p"},
		{func(o *GenerateOptions) { o.RepetitionPenalty = 0 }, ok, "repetition_penalty"},
		{func(o *GenerateOptions) { o.MaxNewTokens = 0 }, ok, "max new tokens"},
		{func(o *GenerateOptions) { o.Stop = []string{"x"} }, ok, "Decode"},
		{func(o *GenerateOptions) { o.KVTokens = 32 }, ok, "need 64"},
		{func(o *GenerateOptions) { o.Adapter = "nobody" }, ok, "nobody"},
		{func(o *GenerateOptions) {}, []Request{{Prompt: nil, N: 1}}, "empty"},
		{func(o *GenerateOptions) {}, []Request{{Prompt: []int32{1000}, N: 1}}, "vocabulary"},
	} {
		o := GenerateOptions{SamplingParams: plain(4)}
		c.change(&o)
		_, err := m.Generate(t.Context(), c.reqs, o)
		wantError(t, err, c.want)
	}
}

// Generation stops between two steps when its context is done, and leaves the model usable.
func TestGenerateStops(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	reqs := []Request{{Prompt: []int32{1, 2}, N: 3}}
	_, err := m.Generate(ctx, reqs, GenerateOptions{SamplingParams: plain(5), MaxBatch: 1, OnSample: func(request, sample int, s Sample) {
		if request != 0 || sample != done || len(s.Tokens) != 5 {
			t.Errorf("sample %d of request %d with %d tokens", sample, request, len(s.Tokens))
		}
		done++
		cancel()
	}})
	if !errors.Is(err, context.Canceled) || done != 1 {
		t.Errorf("error %v after %d samples, want one and a cancelled context", err, done)
	}
	generate(t, m, reqs, GenerateOptions{SamplingParams: plain(5)})
}
