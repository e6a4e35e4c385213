package policy

import "github.com/rubicon-rl/rubicon/internal/device"

// PlanOptions describe a run to MemoryPlan.
type PlanOptions struct {
	LoadOptions
	Stored   func(name string) device.DType // type of a tensor in the files; nil: what config.json says
	LoRA     *LoRAConfig                    // the adapter that is trained; nil: none
	Frozen   int                            // frozen copies of it; where all weights are trained, frozen models beside it
	Update   bool                           // something is trained: gradients and AdamW's moments
	KeepAll  bool                           // ForwardOptions.KeepAll
	Tokens   int                            // of the largest forest of a training pass, a shared prompt counting once; 0: no such pass
	Scored   int                            // of these
	HasKL    bool
	Generate GenerateOptions // MaxBatch, PrefillChunk, KVTokens, MaxNewTokens; MaxNewTokens 0: nothing is generated
	Samples  int             // of a call to Generate
	Prompts  int
	Prompt   int // tokens of the longest prompt
}

// Plan is what a run takes on the device, in bytes by part. A device's own scratch comes on top.
type Plan struct {
	Weights, Adapters, Gradients, Optimizer int64
	Activations                             int64 // of a training pass
	Cache                                   int64 // keys and values of generation
	Decoding                                int64 // activations and logits of generation
}

// Total is the sum of the parts.
func (p Plan) Total() int64 {
	return p.Weights + p.Adapters + p.Gradients + p.Optimizer + p.Activations + p.Cache + p.Decoding
}

// MemoryPlan estimates the device memory of a run with a model of configuration c.
func MemoryPlan(c Config, o PlanOptions) (Plan, error) {
	if err := o.check(); err != nil {
		return Plan{}, err
	}
	var p Plan
	trained := p.addWeights(c, o.LoadOptions, o.Stored)
	if o.LoRA != nil {
		mods, err := o.LoRA.Modules(c)
		if err != nil {
			return Plan{}, err
		}
		trained = 0
		for _, mod := range mods {
			in, out := c.ProjectionSize(mod.Projection)
			trained += int64(mod.R) * int64(in+out)
		}
		p.Adapters = f32Bytes * trained * int64(1+o.Frozen)
	}
	if o.LoRA == nil && o.Frozen > 0 {
		var frozen Plan
		frozen.addWeights(c, LoadOptions{DType: o.DType}, o.Stored)
		p.Weights += int64(o.Frozen) * frozen.Weights
	}
	if o.Update {
		p.Gradients, p.Optimizer = f32Bytes*trained, 2*f32Bytes*trained
	}
	m := &Model{cfg: c, dims: newDims(c)}
	if o.Tokens > 0 {
		p.Activations = m.planPass(o)
	}
	if o.Generate.MaxNewTokens > 0 {
		return p, p.addGeneration(m, o)
	}
	return p, nil
}

const f32Bytes = 4

// addWeights adds the weights and returns how many there are to train.
func (p *Plan) addWeights(c Config, o LoadOptions, stored func(name string) device.DType) (count int64) {
	if stored == nil {
		dtype := device.Float32
		if c.DType == "bfloat16" {
			dtype = device.BFloat16
		}
		stored = func(string) device.DType { return dtype }
	}
	for _, t := range c.Parameters() {
		n := int64(elements(t.Shape))
		count += n
		if o.Train == "full" || len(t.Shape) == 1 {
			p.Weights += f32Bytes * n
		}
	}
	for _, w := range c.weightSizes(o, stored) {
		p.Weights += w.dtype.Bytes(w.n, w.k)
	}
	return count
}

// planPass is the memory of a forward and backward pass.
func (m *Model) planPass(o PlanOptions) int64 {
	k, s := keepNothing, &scope{}
	if o.Update {
		k = keepInputs
		if o.KeepAll {
			k = keepAll
		}
		m.slopes(s, o.Tokens)
		s.mat(device.Act, o.Tokens, m.cfg.Width)
		s.mat(device.Act, o.Scored, m.cfg.Width)
	}
	m.stack(s, o.Tokens, k)
	s.mat(device.Act, o.Scored, m.cfg.Width)
	if o.HasKL {
		s.mat(device.Act, o.Scored, m.cfg.Width)
	}
	return s.bytes()
}

// bytes is the size of what was counted.
func (s *scope) bytes() int64 {
	n := 0
	for _, count := range s.counted {
		n += count
	}
	return actBytes * int64(n)
}

func (p *Plan) addGeneration(m *Model, o PlanOptions) error {
	g := o.Generate.withDefaults()
	g.MaxBatch = min(g.MaxBatch, o.Samples)
	var most needs
	most.add(o.Prompt-1, min(g.MaxNewTokens, m.cfg.MaxPositions-o.Prompt))
	pages, err := most.pages(m.cfg, &g, o.Samples, o.Prompts, 0)
	if err != nil {
		return err
	}
	s := &scope{}
	m.decoder(s, &g)
	p.Cache, p.Decoding = m.cfg.kvBytes(pages*pageLen), s.bytes()
	return nil
}
