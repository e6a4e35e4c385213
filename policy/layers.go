package policy

import "github.com/rubicon-rl/rubicon/internal/device"

// acts are the activations of one layer over T rows. Where nothing is kept for a gradient, mid is x and h2 is h.
type acts struct {
	x    device.Mat // [T,D] residual stream at the layer's input
	h    device.Mat // [T,D] x normed
	qkv  device.Mat // [T,(H+2KV)·hd] projected; q and k are rotated in place unless they are normed
	qk   device.Mat // [T,(H+KV)·hd] rotated q and k
	o    device.Mat // [T,H·hd] attention's output
	lse  device.Mat // [T,H] log-sum-exp of its scores; absent without gradient
	mid  device.Mat // [T,D] residual stream after attention
	h2   device.Mat // [T,D] mid normed
	gu   device.Mat // [T,2F] gate and up
	gate device.Mat // [T,F] silu(gate)·up
}

// keep says what of a forward pass must survive it.
type keep int

const (
	keepNothing keep = iota // inference
	keepInputs              // each layer's input; the rest is recomputed
	keepAll                 // but for what one pass over memory gives back: norms and gates
)

// stack is the memory of a pass through the layers.
type stack struct {
	keep  keep
	acts  []acts     // one per layer; they share what is not kept
	y     device.Mat // [T,D] a branch's output before it joins the residual stream
	last  device.Mat // [T,D] residual stream after the last layer
	final device.Mat // [T,D] last normed
}

// stack takes a stack for t rows from s.
func (m *Model) stack(s *scope, t int, k keep) *stack {
	d := &m.dims
	mat := func(cols int) device.Mat { return s.mat(device.Act, t, cols) }
	st := &stack{keep: k, acts: make([]acts, m.cfg.Layers), y: mat(d.Width), final: mat(d.Width)}
	shared := m.acts(s, t, k)
	x := mat(d.Width)
	for i := range st.acts {
		a := &st.acts[i]
		*a = shared
		if k == keepAll && i > 0 {
			m.keptActs(s, t, a)
		}
		a.x = x
		if k == keepNothing {
			a.mid = x
		} else {
			x = mat(d.Width)
		}
	}
	st.last = x
	return st
}

// acts takes one layer's activations except x (and mid, under keepNothing) from s.
func (m *Model) acts(s *scope, t int, k keep) acts {
	d := &m.dims
	mat := func(cols int) device.Mat { return s.mat(device.Act, t, cols) }
	a := acts{h: mat(d.Width), gate: mat(d.Hidden)}
	a.h2 = a.h
	if k == keepNothing {
		a.qkv, a.o, a.gu = mat(d.qWidth+2*d.kvWidth), mat(d.qWidth), mat(2*d.Hidden)
		m.rotated(s, t, &a)
		return a
	}
	a.h2 = mat(d.Width)
	m.keptActs(s, t, &a)
	return a
}

// keptActs takes from s what a layer has for itself under keepAll, besides x.
func (m *Model) keptActs(s *scope, t int, a *acts) {
	d := &m.dims
	mat := func(cols int) device.Mat { return s.mat(device.Act, t, cols) }
	a.qkv, a.o, a.gu = mat(d.qWidth+2*d.kvWidth), mat(d.qWidth), mat(2*d.Hidden)
	a.mid, a.lse = mat(d.Width), s.mat(device.F32, t, d.Heads)
	m.rotated(s, t, a)
}

// rotated is where a.qk is: in a.qkv, unless q and k are normed.
func (m *Model) rotated(s *scope, t int, a *acts) {
	n := m.dims.qWidth + m.dims.kvWidth
	a.qk = a.qkv.ColsOf(0, n)
	if m.cfg.QKNorm() {
		a.qk = s.mat(device.Act, t, n)
	}
}

// q, k and v are what attention reads.
func (d *dims) q(a *acts) device.Mat { return a.qk.ColsOf(0, d.qWidth) }
func (d *dims) k(a *acts) device.Mat { return a.qk.ColsOf(d.qWidth, d.qWidth+d.kvWidth) }
func (d *dims) v(qkv device.Mat) device.Mat {
	return qkv.ColsOf(d.qWidth+d.kvWidth, d.qWidth+2*d.kvWidth)
}

// forward fills st from the rows r; st.final holds the last hidden states.
func (n *net) forward(r *rows, st *stack) {
	m, dev := n.m, n.m.dev
	x, rest := st.last, device.Mat{}
	if len(st.acts) > 0 {
		x = st.acts[0].x
	}
	dev.Embed(x, m.embed, r.ids)
	for l := range st.acts {
		a := &st.acts[l]
		n.layer(l, r, a, rest, st.y)
		next := st.last
		if l+1 < len(st.acts) {
			next = st.acts[l+1].x
		}
		rest = n.join(next, a.mid, st.y, a.gate, n.layers[l][fuseDown])
	}
	dev.RMSNorm(st.final, st.last, rest, m.vectors.norm, m.dims.eps)
}

// join computes a branch's last projection in·Wᵀ beside the residual stream x, which becomes sum. Where sum is x, the
// branch goes to y; otherwise it goes to sum. It returns what the norm that follows has still to add to sum: y, or x.
func (n *net) join(sum, x, y, in device.Mat, w device.Linear) (rest device.Mat) {
	if sum == x {
		n.m.dev.Linear(y, in, w)
		return y
	}
	n.m.dev.Linear(sum, in, w)
	return x
}

// layer runs layer l from its input up to the input of its last projection. rest, if given, still has to be added to
// a.x; y is scratch.
func (n *net) layer(l int, r *rows, a *acts, rest, y device.Mat) {
	m, dev, w := n.m, n.m.dev, &n.layers[l]
	dev.RMSNorm(a.h, a.x, rest, m.vectors.layers[l].attnNorm, m.dims.eps)
	dev.Linear(a.qkv, a.h, w[fuseQKV])
	n.rotate(l, r, a)
	q, k, v := m.dims.q(a), m.dims.k(a), m.dims.v(a.qkv)
	if r.cache != nil {
		k, v = r.cache.store(dev, l, k, v)
	}
	dev.Attention(a.o, a.lse, q, k, v, m.attention(r.tasks))
	rest = n.join(a.mid, a.x, y, a.o, w[fuseOut])
	dev.RMSNorm(a.h2, a.mid, rest, m.vectors.layers[l].mlpNorm, m.dims.eps)
	dev.Linear(a.gu, a.h2, w[fuseGateUp])
	dev.SwiGLU(a.gate, a.gu)
}

// again computes what keepAll does not keep of layer l.
func (n *net) again(l int, a *acts) {
	dev, v, eps := n.m.dev, &n.m.vectors.layers[l], n.m.dims.eps
	dev.RMSNorm(a.h, a.x, device.Mat{}, v.attnNorm, eps)
	dev.RMSNorm(a.h2, a.mid, device.Mat{}, v.mlpNorm, eps)
	dev.SwiGLU(a.gate, a.gu)
}

// rotate writes a.qk from a.qkv.
func (n *net) rotate(l int, r *rows, a *acts) {
	m, d := n.m, &n.m.dims
	if !m.cfg.QKNorm() {
		m.dev.Rotary(a.qk, a.qk, m.rotary(r, device.Mat{}, device.Mat{}))
		return
	}
	w, q := &m.vectors.layers[l], d.qWidth
	m.dev.Rotary(d.q(a), a.qkv.ColsOf(0, q), m.rotary(r, w.qNorm, device.Mat{}))
	m.dev.Rotary(d.k(a), a.qkv.ColsOf(q, q+d.kvWidth), m.rotary(r, w.kNorm, device.Mat{}))
}
