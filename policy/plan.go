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
	Device   device.Footprint
	Memory   int64 // of the device; 0: unknown, and no bound
}

// Plan is what a run takes on the device, in bytes by part. What the device takes beyond its device.Footprint comes on top.
type Plan struct {
	Weights, Adapters, Gradients, Optimizer int64
	Activations                             int64 // of a training pass
	Logits                                  int64 // of the head's chunk in it
	Cache                                   int64 // keys and values of generation
	Decoding                                int64 // activations and logits of generation
	Fixed                                   int64 // the device's own

	// KVTokens is what the cache has room for, WantedKVTokens what the samples can need. Where PlanOptions bound neither the
	// cache nor the memory, they are the same.
	KVTokens, WantedKVTokens int
}

// Total is the sum of the parts.
func (p Plan) Total() int64 {
	return p.Weights + p.Adapters + p.Gradients + p.Optimizer + p.Activations + p.Logits + p.Cache + p.Decoding + p.Fixed
}

// MemoryPlan estimates the device memory of a run with a model of configuration c. The cache gets what it needs, or what the
// other parts leave of o.Memory, but room for one sample at least: where Total is more than the memory, the run cannot fit.
func MemoryPlan(c Config, o PlanOptions) (Plan, error) {
	if err := o.check(); err != nil {
		return Plan{}, err
	}
	var p Plan
	trained := p.addWeights(c, o)
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
		frozen.addWeights(c, PlanOptions{LoadOptions: LoadOptions{DType: o.DType}, Stored: o.Stored, Device: o.Device})
		p.Weights += int64(o.Frozen) * frozen.Weights
	}
	if o.Update {
		p.Gradients, p.Optimizer = f32Bytes*trained, 2*f32Bytes*trained
	}
	m := &Model{cfg: c, dims: newDims(c)}
	p.Fixed = o.Device.Fixed
	if o.Tokens > 0 {
		p.Activations = m.planPass(o)
		p.Logits = min(o.Device.Head, int64(o.Scored)*int64(c.Vocab)*o.logitBytes())
	}
	if o.Generate.MaxNewTokens > 0 {
		return p, p.addGeneration(m, o)
	}
	return p, nil
}

const f32Bytes = 4

// addWeights adds the weights and returns how many there are to train.
func (p *Plan) addWeights(c Config, o PlanOptions) (count int64) {
	stored := o.Stored
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
	for _, w := range c.weightSizes(o.LoadOptions, stored) {
		if o.Device.Dense && w.dtype != device.Float32 {
			p.Weights += sizeOfAct(o.Device) * int64(w.n) * int64(w.k)
		} else {
			p.Weights += w.dtype.Bytes(w.n, w.k)
		}
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
	return s.bytes(o.Device)
}

// logitBytes is what one logit takes in a training pass: itself, the reference's, and its gradient for the products, if that is
// not as wide and so lies beside it.
func (o *PlanOptions) logitBytes() int64 {
	n := int64(f32Bytes)
	if o.HasKL {
		n += f32Bytes
	}
	if act := sizeOfAct(o.Device); o.Update && act < f32Bytes {
		n += act
	}
	return n
}

// sizeOfAct is the size of an activation.
func sizeOfAct(f device.Footprint) int64 {
	if f.ActBytes == 0 {
		return actBytes
	}
	return int64(f.ActBytes)
}

// bytes is the size of what was counted.
func (s *scope) bytes(f device.Footprint) int64 {
	return sizeOfAct(f)*int64(s.counted[device.Act]) + f32Bytes*int64(s.counted[device.F32]+s.counted[device.I32])
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
	p.Decoding, p.WantedKVTokens = s.bytes(o.Device), pages*pageLen
	page := m.cfg.kvBytes(pageLen) / actBytes * sizeOfAct(o.Device)
	if o.Memory > 0 && g.KVTokens == 0 {
		pages = min(pages, max(most.both, int((o.Memory-p.Total())/page)))
	}
	p.Cache, p.KVTokens = page*int64(pages), pages*pageLen
	return nil
}
