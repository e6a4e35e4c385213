package gguf

import (
	"fmt"
	"math"

	"github.com/rubicon-rl/rubicon/policy"
)

// rope translates rotary scaling. Llama 3.x's is not in the metadata: the converter stores what each frequency is
// divided by, as a tensor, from which the parameters are found again.
func (f *File) rope(m *meta, c policy.Config, tensors map[string]Tensor) (policy.Rope, error) {
	r := policy.Rope{Theta: 10000, Type: "default"}
	if key := string(c.Arch) + ".rope.freq_base"; m.has(key) {
		r.Theta = m.float(key)
	}
	switch kind := m.textOr(string(c.Arch)+".rope.scaling.type", "none"); kind {
	case "none":
	case "linear":
		r.Type, r.Factor = "linear", m.float(string(c.Arch)+".rope.scaling.factor")
	default:
		return r, fmt.Errorf("rope scaling %q is not supported; supported: none, linear, and Llama 3's", kind)
	}
	t, ok := tensors["rope_freqs.weight"]
	if !ok || m.err != nil {
		return r, nil
	}
	divisors := make([]float32, t.Len())
	if err := t.Float32s(divisors); err != nil {
		return r, err
	}
	if len(divisors) != c.HeadDim/2 {
		return r, fmt.Errorf("rope_freqs.weight has %d values; heads of %d need %d", len(divisors), c.HeadDim, c.HeadDim/2)
	}
	plain := policy.Config{HeadDim: c.HeadDim, Rope: r}.InvFreq()
	r.Type, r.Factor = "llama3", float64(divisors[len(divisors)-1]) // the slowest frequency is divided by the whole factor
	r.LowFreqFactor, r.HighFreqFactor, r.OriginalMaxPositionEmbeddings = 1, 4, 8192
	scaled := policy.Config{HeadDim: c.HeadDim, Rope: r}.InvFreq()
	for i := range plain {
		if want := float64(plain[i]) / float64(scaled[i]); !(math.Abs(float64(divisors[i])-want) <= 1e-4*want) {
			return r, fmt.Errorf("rope_freqs.weight is not the scaling of Llama 3.x (frequency %d is divided by %v, not %.6g)", i, divisors[i], want)
		}
	}
	return r, nil
}
