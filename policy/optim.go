package policy

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// AdamW is the state of the optimiser of that name (Loshchilov and Hutter, "Decoupled Weight Decay Regularization",
// ICLR 2019) for one set of parameters, computed as torch.optim.AdamW does.
type AdamW struct {
	dev  device.Device
	m, v device.Mem // [n] first and second moments
	n    int
	step int // updates made
}

// AdamWOptions are the constants of AdamW. Weight decay applies to the tensors that Params.Decay marks.
type AdamWOptions struct{ Beta1, Beta2, Eps, WeightDecay float64 }

// AdamWState is an AdamW in host memory: the updates made and the moments, element for element as in Params.
type AdamWState struct {
	Step int
	M, V []float32
}

// NewAdamW returns an optimiser for p that has made no update. Close frees its memory.
func NewAdamW(dev device.Device, p *Params) (*AdamW, error) {
	a := &AdamW{dev: dev, n: p.Len}
	var err error
	if a.m, err = dev.Alloc(device.F32, p.Len); err != nil {
		return nil, fmt.Errorf("policy: no memory for the optimiser: %w", err)
	}
	if a.v, err = dev.Alloc(device.F32, p.Len); err != nil {
		dev.Free(a.m)
		return nil, fmt.Errorf("policy: no memory for the optimiser: %w", err)
	}
	return a, nil
}

// Close frees the moments.
func (a *AdamW) Close() {
	if a.m != nil {
		a.dev.Free(a.m)
		a.dev.Free(a.v)
		a.m, a.v = nil, nil
	}
}

// Step makes one update of p with learning rate lr. The gradient is multiplied by gradScale first (clipping; 1: none).
// Where p is all weights of a model, Model.Refresh has to follow; Params.ZeroGrad makes room for the next gradient.
func (a *AdamW) Step(p *Params, lr float64, o AdamWOptions, gradScale float64) error {
	if p.Len != a.n || p.Grad == nil {
		return fmt.Errorf("policy: the optimiser was made for %d trainable parameters, not for these %d", a.n, p.Len)
	}
	a.step++
	h := device.AdamW{LR: lr, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, Step: a.step, GradScale: gradScale}
	for i := 0; i < len(p.Decay); {
		from, decay := i, p.Decay[i]
		for i < len(p.Decay) && p.Decay[i] == decay {
			i++
		}
		to := p.Len
		if i < len(p.Decay) {
			to = p.Offsets[i]
		}
		h.WeightDecay = 0
		if decay {
			h.WeightDecay = o.WeightDecay
		}
		chunks(p.Offsets[from], to, func(view func(device.Mem) device.Mat) {
			a.dev.AdamW(view(p.W), view(p.Grad), view(a.m), view(a.v), h)
		})
	}
	return a.dev.Err()
}

// State copies the optimiser's state to the host.
func (a *AdamW) State() (AdamWState, error) {
	s := AdamWState{Step: a.step, M: make([]float32, a.n), V: make([]float32, a.n)}
	if err := a.dev.Download(s.M, a.m, 0); err != nil {
		return AdamWState{}, err
	}
	return s, a.dev.Download(s.V, a.v, 0)
}

// SetState replaces the optimiser's state.
func (a *AdamW) SetState(s AdamWState) error {
	if len(s.M) != a.n || len(s.V) != a.n || s.Step < 0 {
		return fmt.Errorf("policy: the optimiser's state is of %d and %d parameters, %d are trained: it belongs to another run", len(s.M), len(s.V), a.n)
	}
	a.dev.Upload(a.m, 0, s.M)
	a.dev.Upload(a.v, 0, s.V)
	a.step = s.Step
	return a.dev.Err()
}
