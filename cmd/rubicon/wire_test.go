package main

import (
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer"
)

// A run that starts from an adapter has as its reference what grpo.reference says: the base without it, or that adapter as it was,
// wherever training moves the policy.
func TestReferenceOfARunFromAnAdapter(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	c := configs.Default()
	c.Model.Path, c.Model.Adapter, c.GRPO.Beta = golden.Path("models", "qwen2"), golden.Path("lora", "qwen2-all-plain", "adapter"), 0.1
	m, adapter, err := openModel(t.Context(), c, dev)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	base, first := logProbs(t, m, ""), logProbs(t, m, adapter)
	refs := map[string]trainer.Reference{}
	for _, kind := range []string{"base", "initial"} {
		c.GRPO.Reference = kind
		if refs[kind], err = openReference(t.Context(), c, dev, m); err != nil {
			t.Fatal(err)
		}
	}
	move(t, m, adapter)
	for kind, want := range map[string][]float32{"base": base, "initial": first} {
		if got := logProbs(t, refs[kind].Model, refs[kind].Adapter); !slices.Equal(got, want) {
			t.Errorf("%s: log-probabilities %v, want %v", kind, got, want)
		}
	}
	if got := logProbs(t, m, adapter); slices.Equal(got, first) || slices.Equal(got, base) || slices.Equal(base, first) {
		t.Error("the three policies are not apart")
	}
}

func logProbs(t *testing.T, m *policy.Model, adapter string) []float32 {
	t.Helper()
	f := &policy.Forest{Segments: []policy.Segment{{Parent: policy.Root, Tokens: []int32{5, 6, 7, 8}, Score: []bool{false, true, true, true}}}}
	pass, err := m.Forward(f, policy.ForwardOptions{Adapter: adapter, Temperature: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Release()
	return slices.Clone(pass.Output.LogP)
}

// move doubles what is trained.
func move(t *testing.T, m *policy.Model, adapter string) {
	t.Helper()
	p, err := m.Params(adapter)
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.Download(m.Device())
	if err != nil {
		t.Fatal(err)
	}
	for i := range v {
		v[i] *= 2
	}
	if err := p.Upload(m.Device(), v); err != nil {
		t.Fatal(err)
	}
}
