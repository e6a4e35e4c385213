package policy

import (
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// The plan says what a step really takes: weights, adapter and optimiser exactly, passes as far as the planned sizes are
// those of the batch.
func TestMemoryPlan(t *testing.T) {
	lora := LoRAConfig{R: 4, Alpha: 8, TargetModules: []string{AllLinear}}
	for _, o := range []PlanOptions{
		{LoRA: &lora, Update: true},
		{LoRA: &lora, Update: true, Frozen: 1, KeepAll: true, HasKL: true},
		{LoadOptions: LoadOptions{Train: "full"}, Update: true},
		{LoadOptions: LoadOptions{Train: "full"}, Update: true, Frozen: 1},
		{LoadOptions: LoadOptions{DType: "bfloat16"}, LoRA: &lora, Update: true},
		{LoadOptions: LoadOptions{DType: "int8"}, LoRA: &lora, Update: true},
		{LoadOptions: LoadOptions{DType: "int4"}, LoRA: &lora, Update: true},
	} {
		dev := openReference(t) // its sizes are those of its elements, without padding
		m := loadTiny(t, dev, "qwen2", o.LoadOptions)
		if o.LoRA == nil && o.Frozen > 0 {
			loadTiny(t, dev, "qwen2", LoadOptions{})
		}
		f := groups(dev)
		l, err := arrange(f, limits{m.cfg.Vocab, m.cfg.MaxPositions})
		must(t, err)
		o.Tokens, o.Scored = len(l.ids), len(l.targets)
		o.Samples, o.Prompts, o.Prompt = 12, 3, 40
		o.Generate = GenerateOptions{SamplingParams: plain(30), MaxBatch: 5, PrefillChunk: 20}
		plan, err := MemoryPlan(m.cfg, o)
		must(t, err)

		weights := plan.Weights
		if o.Train == FullSet {
			weights += plan.Gradients
		}
		checkBytes(t, "weights", weights, dev.Allocated(), 0)
		set := "policy"
		if o.LoRA == nil {
			set = FullSet
		} else {
			must(t, m.AddAdapter(set, lora, 1))
		}
		params, err := m.Params(set)
		must(t, err)
		if o.LoRA != nil && o.Frozen > 0 {
			must(t, m.CopyAdapter("start", set))
		}
		adam, err := NewAdamW(dev, params)
		must(t, err)
		checkBytes(t, "parameters", plan.Weights+plan.Adapters+plan.Gradients+plan.Optimizer, dev.Allocated(), 0)
		base := dev.Allocated()
		planPass(t, m, f, o)
		checkBytes(t, "pass", plan.Activations, dev.Allocated()-base-tableBytes(m), 0.03)
		m.pool.drop(func(block) bool { return true })
		planGenerate(t, m, o)
		checkBytes(t, "generation", plan.Cache+plan.Decoding, dev.Allocated()-base-tableBytes(m), 0.03)
		adam.Close()
	}
}

// planPass runs the pass that was planned.
func planPass(t *testing.T, m *Model, f *Forest, o PlanOptions) {
	t.Helper()
	fo := ForwardOptions{Temperature: 1, Grad: true, KeepAll: o.KeepAll, HasKL: o.HasKL}
	if o.LoRA != nil {
		fo.Adapter = "policy"
	}
	p, err := m.Forward(f, fo)
	must(t, err)
	_, grad := meanLoss(p.Output.LogP)
	must(t, p.Backward(Gradients{LogP: grad}))
}

func planGenerate(t *testing.T, m *Model, o PlanOptions) {
	t.Helper()
	reqs := []Request{{Prompt: sequenceOf(40, 1), N: 4}, {Prompt: sequenceOf(7, 2), N: 4}, {Prompt: sequenceOf(40, 3), N: 4}}
	generate(t, m, reqs, o.Generate)
}

// tableBytes is the size of the rotation tables.
func tableBytes(m *Model) int64 { return 2 * f32Bytes * int64(m.rope.n) * int64(m.cfg.HeadDim/2) }

func checkBytes(t *testing.T, what string, plan, real int64, tol float64) {
	t.Helper()
	if math.Abs(float64(plan-real)) > tol*float64(real) {
		t.Errorf("%s: %d bytes planned, %d taken", what, plan, real)
	}
}

// Memory of passes is used again by passes of about their size, and goes back to the device when none comes.
func TestPool(t *testing.T) {
	dev := openReference(t)
	p := &pool{dev: dev}
	pass := func(n int) {
		s := p.scope()
		s.mat(device.Act, n, 10)
		s.ints(make([]int32, n))
		must(t, s.err)
		s.release()
	}
	pass(1000)
	held := dev.Allocated()
	pass(990)
	if dev.Allocated() != held {
		t.Errorf("%d bytes after a second pass, %d after the first", dev.Allocated(), held)
	}
	for range idlePasses + 2 {
		pass(3)
	}
	if dev.Allocated() >= held/10 {
		t.Errorf("%d bytes are still held", dev.Allocated())
	}
	p.drop(func(block) bool { return true })
}
