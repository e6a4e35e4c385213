package policy

import (
	"fmt"
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// Quantised matrices are those of the layers; embedding and head stay in bfloat16, vectors in float32. The bounds on the
// mean change of a log-probability are about twice what these models show, whose random weights spread more than trained
// ones.
func TestQuantisedLayers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		for _, name := range []string{"qwen2", "qwen3", "llama3"} {
			f, o := groups(dev), ForwardOptions{Temperature: 1}
			want := forward(t, loadTiny(t, dev, name, LoadOptions{DType: "bfloat16"}), f, o).LogP
			for dtype, most := range map[string]float64{"int8": 0.08, "int4": 1} {
				m := loadTiny(t, dev, name, LoadOptions{DType: dtype})
				if m.embed.DType() != device.BFloat16 || m.head.DType() != device.BFloat16 {
					t.Errorf("%s, %s: embedding %v, head %v", name, dtype, m.embed.DType(), m.head.DType())
				}
				for _, w := range m.fused[1] {
					if w.DType().String() != dtype {
						t.Errorf("%s: a weight of a layer is %v, want %s", name, w.DType(), dtype)
					}
				}
				mean := 0.0
				for i, logp := range forward(t, m, f, o).LogP {
					mean += math.Abs(float64(logp-want[i])) / float64(len(want))
				}
				if !(mean > 0 && mean < most) {
					t.Errorf("%s, %s: log-probabilities differ by %.3g in the mean, allowed %.3g, not 0", name, dtype, mean, most)
				}
			}
		}
	})
}

// On quantised weights too, an adapter's gradients are the central differences of the loss.
func TestQuantisedGradientIsCentralDifference(t *testing.T) {
	f, _ := family3()
	for _, dtype := range []string{"int8", "int4"} {
		t.Run(dtype, func(t *testing.T) {
			m := loadTiny(t, openReference(t), "qwen3", LoadOptions{DType: dtype})
			addScrambled(t, m, "policy", 0.25)
			checkDifferences(t, m, f, loss{ForwardOptions{Temperature: 0.7, Entropy: true, HasKL: true, Train: true, Seed: 3, Step: 4, Adapter: "policy"}})
		})
	}
}

// On quantised weights too, sampling and passes have the same bits, however tokens are batched, and gradients do not
// depend on the batch.
func TestQuantisedInvariance(t *testing.T) {
	dev := openCPU(t)
	for _, dtype := range []string{"int8", "int4"} {
		m := loadTiny(t, dev, "qwen3", LoadOptions{DType: dtype})
		addScrambled(t, m, "policy", 0)
		p, reqs := mixedParams(dev, 1), mixedRequests(dev)
		samples := generate(t, m, reqs, GenerateOptions{SamplingParams: p, Adapter: "policy", MaxBatch: 6})
		checkAgreement(t, m, reqs, samples, ForwardOptions{Adapter: "policy", Temperature: p.Temperature})
		alone := generate(t, m, reqs, GenerateOptions{SamplingParams: p, Adapter: "policy", MaxBatch: 1, PrefillChunk: 7})
		checkSamples(t, fmt.Sprintf("%s, one at a time", dtype), alone, samples)

		whole := groups(dev)
		grad, logp := gradientOf(t, m, everything(), []*Forest{whole}, byToken)
		split, splitLogp := gradientOf(t, m, everything(), byRoot(whole), byToken)
		checkBits(t, dtype+": logp of micro-batches", splitLogp, logp)
		closeGradients(t, dtype+": micro-batches", split, grad, 1e-5)
	}
}

// Matrices that are computed as one are kept in a type that holds each of them.
func TestWeightType(t *testing.T) {
	stored := map[string]device.DType{"a": device.Int8, "b": device.Int8, "c": device.Int4K, "d": device.BFloat16, "e": device.Float32}
	for names, want := range map[[3]string]device.DType{
		{"a", "b", "a"}: device.Int8, {"a", "b", "c"}: device.BFloat16, {"c", "d", "d"}: device.BFloat16, {"a", "e", "c"}: device.Float32,
		{"e", "d", "a"}: device.Float32, {"c", "c", "c"}: device.Int4K,
	} {
		if got := (LoadOptions{}).weightType(func(name string) device.DType { return stored[name] }, names[:]...); got != want {
			t.Errorf("%v are kept as %v, want %v", names, got, want)
		}
		if want == device.Float32 {
			want = device.BFloat16
		}
		if got := (LoadOptions{DType: "auto16"}).weightType(func(name string) device.DType { return stored[name] }, names[:]...); got != want {
			t.Errorf("auto16: %v are kept as %v, want %v", names, got, want)
		}
	}
}
