package device

import (
	"cmp"
	"slices"
)

// CheckEmbed checks Embed; ids must be in [0, V).
func CheckEmbed(y Mat, w Weight, ids Mem) error {
	c := check{op: "embed"}
	c.mat("y", y, -1, -1)
	c.weight(w, -1, y.Cols)
	c.ints("ids", ids, y.Rows)
	return c.err
}

// CheckEmbedGrad checks EmbedGrad; ids must be in [0, dW.Rows).
func CheckEmbedGrad(dW, dy Mat, ids Mem) error {
	c := check{op: "embed gradient"}
	c.mat("dy", dy, -1, -1)
	c.optionalF32("dW", dW, -1, dy.Cols)
	c.ints("ids", ids, dy.Rows)
	return c.err
}

// CheckRMSNorm checks RMSNorm.
func CheckRMSNorm(y, x, res, w Mat, eps float32) error {
	c := check{op: "rmsnorm"}
	c.mat("x", x, -1, -1)
	c.mat("y", y, x.Rows, x.Cols)
	c.optional("res", res, x.Rows, x.Cols)
	c.f32("w", w, 1, x.Cols)
	if !(eps >= 0) {
		c.fail("eps %g is negative", eps)
	}
	return c.err
}

// CheckRMSNormGrad checks RMSNormGrad.
func CheckRMSNormGrad(dx, dW, dy, x, w Mat, eps float32) error {
	c := check{op: "rmsnorm gradient"}
	c.mat("x", x, -1, -1)
	c.mat("dy", dy, x.Rows, x.Cols)
	c.optional("dx", dx, x.Rows, x.Cols)
	c.optionalF32("dW", dW, 1, x.Cols)
	c.f32("w", w, 1, x.Cols)
	if !(eps >= 0) {
		c.fail("eps %g is negative", eps)
	}
	return c.err
}

// CheckLinear checks Linear.
func CheckLinear(y, x Mat, l Linear) error {
	c := check{op: "linear"}
	c.mat("x", x, -1, -1)
	c.mat("y", y, x.Rows, -1)
	c.linear(l, x.Rows, y.Cols, x.Cols)
	return c.err
}

// CheckLinearGrad checks LinearGrad.
func CheckLinearGrad(dx, dy, x Mat, l Linear) error {
	c := check{op: "linear gradient"}
	c.mat("x", x, -1, -1)
	c.mat("dy", dy, x.Rows, -1)
	c.optional("dx", dx, x.Rows, x.Cols)
	c.linear(l, x.Rows, dy.Cols, x.Cols)
	return c.err
}

func (c *check) linear(l Linear, t, n, k int) {
	c.weight(l.W, n, k)
	c.optionalF32("bias", l.Bias, 1, n)
	c.optionalF32("dW", l.DW, n, k)
	c.optionalF32("dBias", l.DBias, 1, n)
	for i, p := range l.LoRA {
		c.f32("LoRA A", p.A, -1, k)
		c.f32("LoRA B", p.B, -1, p.A.Rows)
		if p.A.Rows <= 0 {
			c.fail("LoRA part %d has rank 0", i)
		}
		if p.Col < 0 || p.Col+p.B.Rows > n {
			c.fail("LoRA part %d covers columns [%d,%d) of %d", i, p.Col, p.Col+p.B.Rows, n)
		}
		c.optionalF32("LoRA dA", p.DA, p.A.Rows, p.A.Cols)
		c.optionalF32("LoRA dB", p.DB, p.B.Rows, p.B.Cols)
		if d := p.Drop; d != nil {
			if !(d.P >= 0 && d.P < 1) {
				c.fail("LoRA part %d has dropout %g, want 0 <= p < 1", i, d.P)
			}
			c.ints("dropout segments", d.Seg, t)
			c.ints("dropout positions", d.Pos, t)
		}
	}
}

// CheckRotary checks Rotary; positions must be in [0, r.Cos.Rows).
func CheckRotary(y, x Mat, r Rotary) error {
	c := check{op: "rotary"}
	c.mat("x", x, -1, -1)
	c.mat("y", y, x.Rows, x.Cols)
	c.rotary(r, x.Rows, x.Cols)
	return c.err
}

// CheckRotaryGrad checks RotaryGrad; x may be absent without r.Norm.
func CheckRotaryGrad(dx, dy, x Mat, r Rotary) error {
	c := check{op: "rotary gradient"}
	c.mat("dy", dy, -1, -1)
	c.optional("dx", dx, dy.Rows, dy.Cols)
	if !r.Norm.Absent() {
		c.mat("x", x, dy.Rows, dy.Cols)
	}
	c.rotary(r, dy.Rows, dy.Cols)
	return c.err
}

func (c *check) rotary(r Rotary, t, width int) {
	if r.HeadDim <= 0 || r.HeadDim%2 != 0 {
		c.fail("head dimension %d, want an even one", r.HeadDim)
	}
	if c.err != nil {
		return
	}
	if width%r.HeadDim != 0 {
		c.fail("%d columns are no whole number of heads of %d", width, r.HeadDim)
	}
	c.f32("cos", r.Cos, -1, r.HeadDim/2)
	c.f32("sin", r.Sin, r.Cos.Rows, r.HeadDim/2)
	c.ints("positions", r.Pos, t)
	c.optionalF32("norm", r.Norm, 1, r.HeadDim)
	c.optionalF32("dNorm", r.DNorm, 1, r.HeadDim)
	if !r.DNorm.Absent() && r.Norm.Absent() {
		c.fail("dNorm is given without norm")
	}
	if !(r.Eps >= 0) {
		c.fail("eps %g is negative", r.Eps)
	}
}

// CheckAttention checks Attention.
func CheckAttention(o, lse, q, k, v Mat, a Attention) error {
	c := check{op: "attention"}
	c.attention(q, k, v, a)
	c.mat("o", o, q.Rows, q.Cols)
	c.optionalF32("lse", lse, q.Rows, a.Heads)
	return c.err
}

// AttentionGradMats are the matrices of AttentionGrad, named as its arguments.
type AttentionGradMats struct{ DQ, DK, DV, DO, O, LSE, Q, K, V Mat }

// CheckAttentionGrad checks AttentionGrad.
func CheckAttentionGrad(m AttentionGradMats, a Attention) error {
	c := check{op: "attention gradient"}
	c.attention(m.Q, m.K, m.V, a)
	c.mat("o", m.O, m.Q.Rows, m.Q.Cols)
	c.mat("do", m.DO, m.Q.Rows, m.Q.Cols)
	c.f32("lse", m.LSE, m.Q.Rows, a.Heads)
	c.optional("dq", m.DQ, m.Q.Rows, m.Q.Cols)
	c.optional("dk", m.DK, m.K.Rows, m.K.Cols)
	c.optional("dv", m.DV, m.V.Rows, m.V.Cols)
	return c.err
}

func (c *check) attention(q, k, v Mat, a Attention) {
	if a.KVHeads <= 0 || a.HeadDim <= 0 || a.Heads <= 0 {
		c.fail("heads %d, key heads %d, head dimension %d, want positive ones", a.Heads, a.KVHeads, a.HeadDim)
	}
	if c.err != nil {
		return
	}
	if a.Heads%a.KVHeads != 0 {
		c.fail("%d heads are no multiple of %d key heads", a.Heads, a.KVHeads)
	}
	c.mat("q", q, -1, a.Heads*a.HeadDim)
	c.mat("k", k, -1, a.KVHeads*a.HeadDim)
	c.mat("v", v, k.Rows, a.KVHeads*a.HeadDim)
	for i, t := range a.Tasks {
		if t.Q.Row < 0 || t.Q.N < 0 || t.Q.Row+t.Q.N > q.Rows {
			c.fail("task %d has query rows [%d,%d) of %d", i, t.Q.Row, t.Q.Row+t.Q.N, q.Rows)
		}
		c.spans("key span", t.Keys, k.Rows)
		covered := 0
		for _, s := range t.Keys {
			covered += s.N
		}
		if t.Pos < 0 || t.Pos+t.Q.N > covered {
			c.fail("task %d has %d queries at path position %d, but its keys cover %d positions", i, t.Q.N, t.Pos, covered)
		}
	}
	if !disjoint(a.Tasks) {
		c.fail("two tasks have a query row in common")
	}
}

// disjoint reports whether no query row belongs to two tasks.
func disjoint(tasks []AttentionTask) bool {
	byRow := func(a, b AttentionTask) int { return cmp.Compare(a.Q.Row, b.Q.Row) }
	if !slices.IsSortedFunc(tasks, byRow) {
		tasks = slices.SortedFunc(slices.Values(tasks), byRow)
	}
	end := 0
	for _, t := range tasks {
		if t.Q.N > 0 && t.Q.Row < end {
			return false
		}
		end = max(end, t.Q.Row+t.Q.N)
	}
	return true
}

// CheckSwiGLU checks SwiGLU.
func CheckSwiGLU(y, gu Mat) error {
	c := check{op: "swiglu"}
	c.mat("y", y, -1, -1)
	c.mat("gu", gu, y.Rows, 2*y.Cols)
	return c.err
}

// CheckSwiGLUGrad checks SwiGLUGrad.
func CheckSwiGLUGrad(dgu, dy, gu Mat) error {
	c := check{op: "swiglu gradient"}
	c.mat("dy", dy, -1, -1)
	c.mat("gu", gu, dy.Rows, 2*dy.Cols)
	c.optional("dgu", dgu, dy.Rows, 2*dy.Cols)
	return c.err
}
