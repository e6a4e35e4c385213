package policy

import "github.com/rubicon-rl/rubicon/internal/device"

// net is the model as one pass sees it: with one adapter set's low-rank parts, with dropout, and with the places where
// gradients go.
type net struct {
	m      *Model
	layers [][len(fusions)]device.Linear
	grads  *leaves // where the gradients of all weights go; nil unless they are trained in this pass
}

// netOptions choose what a net has beside the frozen weights.
type netOptions struct {
	set  *adapter // nil: none
	grad bool     // gradients: to set, or to all weights if set is nil
	drop *dropping
}

// dropping is what dropout needs beside the adapter's rate.
type dropping struct {
	seed, step uint64
	rows       *rows
}

func (m *Model) net(o netOptions) *net {
	n := &net{m: m, layers: make([][len(fusions)]device.Linear, m.cfg.Layers)}
	if o.grad && o.set == nil {
		n.grads = &m.grads
	}
	for l := range n.layers {
		for f, ps := range fusions {
			lin := &n.layers[l][f]
			*lin = device.Linear{W: m.fused[l][f], Bias: m.vectors.layers[l].fused[f].bias}
			g := n.grads.layer(l).fused[f]
			lin.DW, lin.DBias = g.w, g.bias
			if o.set != nil {
				lin.LoRA = o.loras(m.cfg, l, ps)
			}
		}
	}
	return n
}

// loras are the low-rank parts of layer l's fused projections.
func (o *netOptions) loras(c Config, l int, ps []Projection) []device.LoRA {
	var list []device.LoRA
	col := 0
	for _, p := range ps {
		if low := o.set.layers[l][p]; !low.a.Absent() {
			list = append(list, o.lora(low, l, p, col))
		}
		_, out := c.ProjectionSize(p)
		col += out
	}
	return list
}

func (o *netOptions) lora(low lowRank, l int, p Projection, col int) device.LoRA {
	lora := device.LoRA{Col: col, A: low.a, B: low.b, Scale: low.scale}
	if o.grad {
		lora.DA, lora.DB = low.da, low.db
	}
	if rate := o.set.config.Dropout; o.drop != nil && rate > 0 {
		lora.Drop = &device.Dropout{
			P: float32(rate), Key: device.NewKey(o.drop.seed, o.drop.step, uint64(l), uint64(p)),
			Seg: o.drop.rows.seg, Pos: o.drop.rows.pos,
		}
	}
	return lora
}

// attention is the attention of a pass over tasks.
func (m *Model) attention(tasks []device.AttentionTask) device.Attention {
	d := &m.dims
	return device.Attention{Heads: d.Heads, KVHeads: d.KVHeads, HeadDim: d.HeadDim, Scale: d.scale, Tasks: tasks}
}

// rotary is the rotation of a pass's rows; norm and its gradient are of q or k where the architecture has them.
func (m *Model) rotary(r *rows, norm, dNorm device.Mat) device.Rotary {
	return device.Rotary{
		HeadDim: m.dims.HeadDim, Cos: m.rope.cos, Sin: m.rope.sin, Pos: r.pos, Norm: norm, DNorm: dNorm, Eps: m.dims.eps,
	}
}
