package policy

import (
	"errors"
	"fmt"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// Backward adds the gradient of the loss to the parameters of the set that the pass was made with, given the loss's
// gradients in the pass's Output, and releases the pass.
func (p *Pass) Backward(g Gradients) error {
	defer p.Release()
	if p.mem == nil {
		return errors.New("policy: the pass was released")
	}
	if !p.grad {
		return errors.New("policy: the pass was made without gradients: set ForwardOptions.Grad")
	}
	if err := p.checkGradients(g); err != nil {
		return err
	}
	if g.LogP == nil && g.Entropy == nil && g.KL == nil && g.Pooled == nil {
		return nil
	}
	t, width := p.rows.n, p.m.cfg.Width
	dFinal, slopes := p.mem.mat(device.Act, t, width), p.m.slopes(p.mem, t)
	dHidden, head := p.mem.mat(device.Act, p.head.n, width), p.headGrad(g)
	if p.mem.err != nil {
		return p.mem.err
	}
	dev, h := p.m.dev, &p.head
	dev.Zero(dFinal)
	if head != (device.HeadGrad{}) {
		h.args.DW = p.net.grads.headWeight()
		dev.HeadGrad(dHidden, head, h.out, h.hidden, h.args)
		dev.ScatterAddRows(dFinal, dHidden, h.parents)
	}
	if g.Pooled != nil {
		p.pool.grad(dev, dFinal, g.Pooled)
	}
	p.net.backward(&p.rows, p.stack, dFinal, slopes)
	return dev.Err()
}

func (p *Pass) checkGradients(g Gradients) error {
	for _, c := range []struct {
		what       string
		given, out []float32
	}{{"log-probabilities", g.LogP, p.Output.LogP}, {"entropies", g.Entropy, p.Output.Entropy}, {"KLs", g.KL, p.Output.KL}} {
		if c.given != nil && len(c.given) != len(c.out) {
			return fmt.Errorf("policy: gradients for %d %s, the pass has %d", len(c.given), c.what, len(c.out))
		}
	}
	if g.Pooled != nil && len(g.Pooled) != len(p.Output.Pooled) {
		return fmt.Errorf("policy: gradients for %d pooled vectors, the pass has %d", len(g.Pooled), len(p.Output.Pooled))
	}
	for i, v := range g.Pooled {
		if len(v) != p.m.cfg.Width {
			return fmt.Errorf("policy: the gradient of pooled vector %d has %d elements, want %d", i, len(v), p.m.cfg.Width)
		}
	}
	return nil
}

// headGrad uploads the gradients in the head's outputs.
func (p *Pass) headGrad(g Gradients) device.HeadGrad {
	column := func(v []float32) device.Mat {
		if len(v) == 0 {
			return device.Mat{}
		}
		x := p.mem.mat(device.F32, len(v), 1)
		if !x.Absent() {
			p.m.dev.Upload(x.Mem, 0, v)
		}
		return x
	}
	return device.HeadGrad{LogP: column(g.LogP), Entropy: column(g.Entropy), KL: column(g.KL)}
}

// slopes are the gradients of one layer's activations over T rows; layers take turns with them.
type slopes struct {
	x    device.Mat // [T,D] of the residual stream, carried from layer to layer
	h    device.Mat // [T,D] of a norm's output
	qkv  device.Mat // [T,(H+2KV)·hd] before the rotation
	qk   device.Mat // [T,(H+KV)·hd] after it: in place unless q and k are normed
	o    device.Mat // [T,H·hd]
	gu   device.Mat // [T,2F]
	gate device.Mat // [T,F]
}

func (m *Model) slopes(s *scope, t int) *slopes {
	d := &m.dims
	mat := func(cols int) device.Mat { return s.mat(device.Act, t, cols) }
	g := &slopes{
		x: mat(d.Width), h: mat(d.Width), qkv: mat(d.qWidth + 2*d.kvWidth),
		o: mat(d.qWidth), gu: mat(2 * d.Hidden), gate: mat(d.Hidden),
	}
	g.qk = g.qkv.ColsOf(0, d.qWidth+d.kvWidth)
	if m.cfg.QKNorm() {
		g.qk = mat(d.qWidth + d.kvWidth)
	}
	return g
}

// backward takes dFinal, the gradient of st.final, down to the embedding and adds the gradients of what n trains.
func (n *net) backward(r *rows, st *stack, dFinal device.Mat, g *slopes) {
	m, dev := n.m, n.m.dev
	dev.Zero(g.x)
	dev.RMSNormGrad(g.x, n.grads.finalNorm(), dFinal, st.last, m.vectors.norm, m.dims.eps)
	for l := len(st.acts) - 1; l >= 0; l-- {
		a := &st.acts[l]
		switch last := len(st.acts) - 1; {
		case l == last: // the forward pass left its activations in place
		case st.keep == keepAll:
			n.again(l, a)
		default:
			n.layer(l, r, a, device.Mat{}, st.y)
		}
		n.mlpGrad(l, a, g)
		n.attentionGrad(l, r, a, g)
	}
	if n.grads != nil {
		// The embedding of the padding token is not trained, as in transformers (nn.Embedding's padding_idx). It stands in
		// a text where it is an end token too.
		for _, t := range r.pad {
			dev.Zero(g.x.RowsOf(t, t+1))
		}
		dev.EmbedGrad(n.grads.embed, g.x, r.ids)
	}
}

// mlpGrad takes g.x from after layer l to between its branches.
func (n *net) mlpGrad(l int, a *acts, g *slopes) {
	dev, w := n.m.dev, &n.layers[l]
	dev.LinearGrad(g.gate, g.x, a.gate, w[fuseDown])
	dev.SwiGLUGrad(g.gu, g.gate, a.gu)
	dev.LinearGrad(g.h, g.gu, a.h2, w[fuseGateUp])
	dev.RMSNormGrad(g.x, n.grads.layer(l).mlpNorm, g.h, a.mid, n.m.vectors.layers[l].mlpNorm, n.m.dims.eps)
}

// attentionGrad takes g.x from between layer l's branches to its input.
func (n *net) attentionGrad(l int, r *rows, a *acts, g *slopes) {
	m, dev, d, w := n.m, n.m.dev, &n.m.dims, &n.layers[l]
	dev.LinearGrad(g.o, g.x, a.o, w[fuseOut])
	q := d.qWidth
	dq, dk, dv := g.qk.ColsOf(0, q), g.qk.ColsOf(q, q+d.kvWidth), d.v(g.qkv)
	dev.AttentionGrad(dq, dk, dv, g.o, a.o, a.lse, d.q(a), d.k(a), d.v(a.qkv), m.attention(r.tasks))
	n.rotateGrad(l, r, a, g)
	if l == 0 && n.grads == nil {
		dev.LinearGrad(device.Mat{}, g.qkv, a.h, w[fuseQKV]) // nothing below is trained
		return
	}
	dev.LinearGrad(g.h, g.qkv, a.h, w[fuseQKV])
	dev.RMSNormGrad(g.x, n.grads.layer(l).attnNorm, g.h, a.x, m.vectors.layers[l].attnNorm, d.eps)
}

// rotateGrad writes to g.qkv what g.qk is before the rotation.
func (n *net) rotateGrad(l int, r *rows, a *acts, g *slopes) {
	m, d := n.m, &n.m.dims
	q, qk := d.qWidth, d.qWidth+d.kvWidth
	if !m.cfg.QKNorm() {
		m.dev.RotaryGrad(g.qkv.ColsOf(0, qk), g.qk, device.Mat{}, m.rotary(r, device.Mat{}, device.Mat{}))
		return
	}
	w, dw := &m.vectors.layers[l], n.grads.layer(l)
	m.dev.RotaryGrad(g.qkv.ColsOf(0, q), g.qk.ColsOf(0, q), a.qkv.ColsOf(0, q), m.rotary(r, w.qNorm, dw.qNorm))
	m.dev.RotaryGrad(g.qkv.ColsOf(q, qk), g.qk.ColsOf(q, qk), a.qkv.ColsOf(q, qk), m.rotary(r, w.kNorm, dw.kNorm))
}
