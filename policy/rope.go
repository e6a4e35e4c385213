package policy

import (
	"fmt"
	"math"
)

// Rope says how rotary frequencies are made.
type Rope struct {
	Theta  float64
	Type   string  // "default", "linear" or "llama3"
	Factor float64 // linear, llama3

	// llama3 only
	LowFreqFactor, HighFreqFactor float64
	OriginalMaxPositionEmbeddings int
}

// rope reads rope_parameters (transformers 5), or rope_theta and rope_scaling (transformers 4).
func (f *fields) rope() Rope {
	p := f.object("rope_parameters")
	if !f.has("rope_parameters") {
		p = f.object("rope_scaling")
	}
	r := Rope{
		Theta: p.float("rope_theta", f.float("rope_theta", 10000)),
		Type:  p.text("rope_type", p.text("type", "default")),
	}
	switch r.Type {
	case "linear":
		r.Factor = p.float("factor", 0)
	case "llama3":
		r.Factor = p.float("factor", 0)
		r.LowFreqFactor = p.float("low_freq_factor", 0)
		r.HighFreqFactor = p.float("high_freq_factor", 0)
		r.OriginalMaxPositionEmbeddings = p.int("original_max_position_embeddings", f.int("max_position_embeddings", 0))
	}
	for key, value := range p.values {
		if _, nested := value.(map[string]any); nested && f.err == nil {
			f.err = fmt.Errorf("rotary parameters per layer type (%s) are not supported", key)
		}
	}
	for _, g := range []*fields{f, p} {
		if part := g.float("partial_rotary_factor", 1); part != 1 && f.err == nil {
			f.err = fmt.Errorf("partial_rotary_factor %v is not supported; supported: 1", part)
		}
	}
	if f.err == nil && p.err != nil {
		f.err = fmt.Errorf("rope_scaling or rope_parameters: %w", p.err)
	}
	return r
}

func (r Rope) check() error {
	switch {
	case r.Type != "default" && r.Type != "linear" && r.Type != "llama3":
		return fmt.Errorf("rope scaling %q is not supported; supported: default, linear, llama3", r.Type)
	case !(r.Theta > 0) || math.IsInf(r.Theta, 0):
		return fmt.Errorf("rope_theta %v is not positive", r.Theta)
	case r.Type != "default" && !(r.Factor >= 1):
		return fmt.Errorf("rope scaling %q: factor %v is missing or below 1", r.Type, r.Factor)
	case r.Type == "llama3" && !(r.LowFreqFactor > 0 && r.HighFreqFactor > r.LowFreqFactor):
		return fmt.Errorf("rope scaling llama3: low_freq_factor %v, high_freq_factor %v: missing, or not 0 < low < high", r.LowFreqFactor, r.HighFreqFactor)
	case r.Type == "llama3" && r.OriginalMaxPositionEmbeddings < 1:
		return fmt.Errorf("rope scaling llama3: original_max_position_embeddings %d is not positive", r.OriginalMaxPositionEmbeddings)
	}
	return nil
}

// InvFreq is the angle per position of each pair of a head, [HeadDim/2], in float32 arithmetic step by step as
// transformers' modeling_rope_utils computes it.
func (c Config) InvFreq() []float32 {
	inv := make([]float32, c.HeadDim/2)
	theta := float64(float32(c.Rope.Theta))
	for i := range inv {
		exponent := float32(2*i) / float32(c.HeadDim)
		inv[i] = 1 / float32(math.Pow(theta, float64(exponent)))
		switch c.Rope.Type {
		case "linear":
			inv[i] /= float32(c.Rope.Factor)
		case "llama3":
			inv[i] = c.Rope.llama3(inv[i])
		}
	}
	return inv
}

// llama3 divides frequencies by Factor where the wavelength exceeds the original context / LowFreqFactor, keeps them
// where it is below the original context / HighFreqFactor, and blends in between (transformers'
// _compute_llama3_parameters).
func (r Rope) llama3(inv float32) float32 {
	context := float64(r.OriginalMaxPositionEmbeddings)
	wavelength := float32(2*math.Pi) / inv
	if wavelength > float32(context/r.LowFreqFactor) {
		return inv / float32(r.Factor)
	}
	if wavelength < float32(context/r.HighFreqFactor) {
		return inv
	}
	smooth := float32(float32(context)/wavelength-float32(r.LowFreqFactor)) / float32(r.HighFreqFactor-r.LowFreqFactor)
	slowed := float32(float32(1-smooth)*inv) / float32(r.Factor)
	return slowed + float32(smooth*inv)
}

// RotaryTables are cos and sin of position·InvFreq, [positions, HeadDim/2]. The angle is rounded to float32 before its
// cosine is taken, as in transformers.
func (c Config) RotaryTables(positions int) (cos, sin []float32) {
	inv := c.InvFreq()
	cos, sin = make([]float32, positions*len(inv)), make([]float32, positions*len(inv))
	for p := range positions {
		for i, f := range inv {
			s, co := math.Sincos(float64(float32(p) * f))
			cos[p*len(inv)+i], sin[p*len(inv)+i] = float32(co), float32(s)
		}
	}
	return cos, sin
}
