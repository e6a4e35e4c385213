package policy

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

func TestLoadRefuses(t *testing.T) {
	dev := openCPU(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, dev, golden.Path("models", "qwen2"), LoadOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled load gives %v", err)
	}
	for _, c := range []struct {
		o    LoadOptions
		want string
	}{{LoadOptions{DType: "float8"}, "float8"}, {LoadOptions{DType: "int8", Train: "full"}, "int8 cannot be trained"}, {LoadOptions{Train: "some"}, "some"}} {
		_, err := Load(t.Context(), dev, golden.Path("models", "qwen2"), c.o)
		wantError(t, err, c.want)
	}
	dir := t.TempDir()
	copyFile(t, golden.Path("models", "qwen2", "config.json"), filepath.Join(dir, "config.json"))
	copyFile(t, golden.Path("models", "llama3", "model.safetensors"), filepath.Join(dir, "model.safetensors"))
	_, err := Load(t.Context(), dev, dir, LoadOptions{})
	wantError(t, err, "model.layers.0.self_attn.q_proj.bias")
	_, err = Load(t.Context(), dev, t.TempDir(), LoadOptions{})
	wantError(t, err, "config.json")

	m := loadTiny(t, dev, "qwen2", LoadOptions{})
	if _, err := m.Params(FullSet); err == nil {
		t.Error("frozen weights can be trained")
	}
	_, err = m.Params("nobody")
	if !errors.Is(err, ErrNoAdapter) {
		t.Errorf("error %v, want ErrNoAdapter", err)
	}
	wantError(t, m.LoadAdapter("x", golden.Path("models", "qwen2")), "adapter_config.json")
	if n := len(m.Adapters()); n != 0 {
		t.Errorf("a failed load leaves %d adapters", n)
	}
}

// A forest that cannot be computed is refused with what is wrong and where.
func TestForwardRefuses(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	ok := Segment{Parent: Root, Tokens: []int32{1, 2}}
	o := ForwardOptions{Temperature: 1}
	for _, c := range []struct {
		segments []Segment
		o        ForwardOptions
		want     []string
	}{
		{nil, o, []string{"no segments"}},
		{[]Segment{ok, {Parent: 1, Tokens: []int32{1}}}, o, []string{"segment 1", "parent is 1"}},
		{[]Segment{ok, {Parent: -2, Tokens: []int32{1}}}, o, []string{"segment 1", "parent is -2"}},
		{[]Segment{ok, {Parent: 0}}, o, []string{"segment 1", "no tokens"}},
		{[]Segment{ok, {Parent: 0, Tokens: []int32{5, 1000}}}, o, []string{"segment 1", "token 1", "1000"}},
		{[]Segment{ok, {Parent: 0, Tokens: []int32{-1}}}, o, []string{"segment 1", "-1"}},
		{[]Segment{{Parent: Root, Tokens: []int32{5}, Score: []bool{true}}}, o, []string{"segment 0", "nothing stands before"}},
		{[]Segment{{Parent: Root, Tokens: []int32{5}, Score: []bool{false, true}}}, o, []string{"1 tokens", "2 score marks"}},
		{[]Segment{ok, {Parent: 0, Tokens: make([]int32, 511)}}, o, []string{"segment 1", "513", "512"}},
		{[]Segment{{Parent: Root, Tokens: []int32{5, 6}, Score: []bool{false, true}}}, ForwardOptions{}, []string{"temperature"}},
		{[]Segment{ok}, ForwardOptions{Pool: []bool{true, true}}, []string{"2 pool marks", "1 segments"}},
		{[]Segment{ok}, ForwardOptions{Grad: true}, []string{"frozen", "adapter"}},
		{[]Segment{ok}, ForwardOptions{Adapter: "nobody"}, []string{"nobody"}},
		{[]Segment{{Parent: Root, Tokens: []int32{5, 6}, Score: []bool{false, true}}},
			ForwardOptions{Temperature: 1, HasKL: true, KL: "nobody"}, []string{"nobody"}},
	} {
		_, err := m.Forward(&Forest{Segments: c.segments}, c.o)
		wantError(t, err, c.want...)
	}
	must(t, m.dev.Err())
}

// A pass gives its gradients once, and only the ones that it has.
func TestBackwardRefuses(t *testing.T) {
	m := mixedModel(t, openCPU(t), 0)
	pass := func(grad bool) *Pass {
		p, err := m.Forward(groups(m.dev), ForwardOptions{Adapter: "policy", Temperature: 1, Grad: grad})
		must(t, err)
		return p
	}
	wantError(t, pass(false).Backward(Gradients{}), "Grad")
	wantError(t, pass(true).Backward(Gradients{LogP: []float32{1}}), "1 log-probabilities")
	wantError(t, pass(true).Backward(Gradients{Entropy: []float32{1}}), "1 entropies", "has 0")
	wantError(t, pass(true).Backward(Gradients{Pooled: make([][]float32, 1)}), "1 pooled")
	p := pass(true)
	must(t, p.Backward(Gradients{}))
	wantError(t, p.Backward(Gradients{}), "released")
	p.Release()
}
