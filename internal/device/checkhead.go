package device

import "math"

// CheckHead checks Head; targets must be in [0, V).
func CheckHead(out HeadOut, h Mat, l Head) error {
	c := check{op: "head"}
	c.head(out, h, l)
	if !out.KL.Absent() && l.Ref.Absent() {
		c.fail("KL is wanted, but there are no reference hidden states")
	}
	if !out.KL.Absent() && out.RefLSE.Absent() {
		c.fail("KL is wanted, but RefLSE is absent")
	}
	return c.err
}

// CheckHeadGrad checks HeadGrad: a gradient in the entropy needs out.Entropy, one in the KL needs l.Ref and out.RefLSE.
func CheckHeadGrad(dh Mat, g HeadGrad, out HeadOut, h Mat, l Head) error {
	c := check{op: "head gradient"}
	c.head(out, h, l)
	c.optional("dh", dh, h.Rows, h.Cols)
	c.optionalF32("gradient in logp", g.LogP, h.Rows, 1)
	c.optionalF32("gradient in entropy", g.Entropy, h.Rows, 1)
	c.optionalF32("gradient in KL", g.KL, h.Rows, 1)
	if !g.Entropy.Absent() && out.Entropy.Absent() {
		c.fail("a gradient in the entropy is given, but Head wrote none")
	}
	if !g.KL.Absent() && (l.Ref.Absent() || out.RefLSE.Absent()) {
		c.fail("a gradient in the KL is given, but Ref or RefLSE is absent")
	}
	return c.err
}

func (c *check) head(out HeadOut, h Mat, l Head) {
	c.mat("h", h, -1, -1)
	c.weight(l.W, -1, h.Cols)
	c.temperature(l.Temp)
	c.ints("targets", l.Targets, h.Rows)
	c.optional("reference hidden states", l.Ref, h.Rows, h.Cols)
	c.f32("logp", out.LogP, h.Rows, 1)
	c.f32("lse", out.LSE, h.Rows, 1)
	c.optionalF32("entropy", out.Entropy, h.Rows, 1)
	c.optionalF32("KL", out.KL, h.Rows, 1)
	c.optionalF32("reference lse", out.RefLSE, h.Rows, 1)
	if c.err == nil {
		n, k := l.W.Shape()
		c.optionalF32("dW", l.DW, n, k)
	}
}

func (c *check) temperature(t float32) {
	if !(t > 0 && !math.IsInf(float64(t), 0)) {
		c.fail("temperature %g, want a positive one", t)
	}
}

// CheckLogits checks Logits.
func CheckLogits(y, h Mat, w Weight) error {
	c := check{op: "logits"}
	c.mat("h", h, -1, -1)
	c.f32("y", y, h.Rows, -1)
	c.weight(w, y.Cols, h.Cols)
	return c.err
}

// CheckSample checks Sample, the ids in Seen and that Allowed leaves a token included.
func CheckSample(out SampleOut, logits Mat, rows []SampleRow) error {
	c := check{op: "sample"}
	c.f32("logits", logits, len(rows), -1)
	if len(out.IDs) != len(rows) || len(out.LogP) != len(rows) || len(out.Filtered) != len(rows) {
		c.fail("room for %d ids, %d and %d log-probabilities, want %d of each", len(out.IDs), len(out.LogP), len(out.Filtered), len(rows))
	}
	for i := range rows {
		if c.err == nil {
			c.sampleRow(i, &rows[i], logits.Cols)
		}
	}
	return c.err
}

func (c *check) sampleRow(i int, r *SampleRow, vocab int) {
	c.temperature(r.Temp)
	if r.TopK < 0 {
		c.fail("row %d: top-k %d is negative", i, r.TopK)
	}
	if !(r.TopP > 0 && r.TopP <= 1) {
		c.fail("row %d: top-p %g, want 0 < p <= 1 (1: off)", i, r.TopP)
	}
	if !(r.MinP >= 0 && r.MinP <= 1) {
		c.fail("row %d: min-p %g, want 0 <= p <= 1 (0: off)", i, r.MinP)
	}
	if !(r.Penalty > 0 && !math.IsInf(float64(r.Penalty), 0)) {
		c.fail("row %d: repetition penalty %g, want a positive one (1: off)", i, r.Penalty)
	}
	if c.err == nil {
		c.err = CheckIndices(c.op, "a seen id, number", r.Seen, vocab)
	}
	if r.Allowed == nil {
		return
	}
	if len(r.Allowed) != (vocab+63)/64 {
		c.fail("row %d: the mask has %d words, want %d", i, len(r.Allowed), (vocab+63)/64)
	}
	any := false
	for w, bits := range r.Allowed {
		if left := vocab - 64*w; left < 64 {
			bits &= 1<<max(left, 0) - 1
		}
		any = any || bits != 0
	}
	if !any {
		c.fail("row %d: the mask allows no token", i)
	}
}
