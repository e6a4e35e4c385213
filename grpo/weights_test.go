package grpo

import (
	"math"
	"slices"
	"testing"
)

// The clip's shares by their definition, the ratio taken after delta: above, inside and below the clip.
func TestClipShares(t *testing.T) {
	in := randomInputs(6, 40, 30, 1, 50)
	in.Sampling = nil
	for _, delta := range []*float64{nil, ptr(1.5), ptr(1.1), ptr(0.7)} {
		cfg := with(func(c *Config) { c.Delta, c.EpsilonHigh = delta, ptr(0.28) })
		low, high, own, start := 0.0, 0.0, 0.0, 0
		least, most := math.Inf(1), math.Inf(-1)
		for i, n := range in.Rows {
			rowLow, rowHigh, rowOwn := 0.0, 0.0, 0.0
			for k := start; k < start+n; k++ {
				if !in.Mask[k] {
					continue
				}
				rowOwn++
				r := math.Exp(float64(in.LogP[k]) - float64(in.Old[k]))
				if delta != nil {
					r = math.Min(r, *delta)
				}
				if r < 0.8 && in.Advantages[i] < 0 {
					rowLow++
				}
				if r > 1.28 && in.Advantages[i] > 0 {
					rowHigh++
				}
			}
			start += n
			low, high, own = low+rowLow, high+rowHigh, own+rowOwn
			least, most = math.Min(least, rowLow/rowOwn), math.Max(most, rowHigh/rowOwn)
		}
		v := evaluate(t, cfg, in).Metrics.Values()
		for name, want := range map[string]float64{
			"low_mean": low / own, "high_mean": high / own, "region_mean": (low + high) / own, "low_min": least, "high_max": most,
		} {
			if got := v["clip_ratio/"+name]; math.Abs(got-want) > 1e-15 {
				t.Errorf("delta %v: %s is %v, want %v", deref(delta), name, got, want)
			}
		}
	}
}

// A row is dropped if its mean drift from the sampler is above the threshold and its advantage negative. The sampler's
// own log-probabilities count if there are any, the old ones otherwise.
func TestOffPolicyMask(t *testing.T) {
	cfg := with(func(c *Config) { c.OffPolicyMaskThreshold, c.ImportanceSamplingCorrection = ptr(0.2), false })
	in := Inputs{Rows: []int{4, 4, 4}, Advantages: []float64{-1, -1, 1}, NumItems: 12, LogP: make([]float32, 12), Old: make([]float32, 12)}
	for k := range in.LogP {
		in.LogP[k], in.Old[k] = -1, -0.875 // drift 0.125, in sum 0.5
	}
	kept := func(in Inputs) (rows []bool) {
		g := evaluate(t, cfg, in).DLogP
		return []bool{g[0] != 0, g[4] != 0, g[8] != 0}
	}
	if got := kept(in); !slices.Equal(got, []bool{true, true, true}) {
		t.Errorf("drift below the threshold: kept %v", got)
	}
	in.Sampling = slices.Clone(in.Old)
	for k := 4; k < 12; k++ {
		in.Sampling[k] = -0.5
	}
	if got := kept(in); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("drift from the sampler: kept %v", got)
	}
	in.Sampling[4], in.Sampling[5], in.Sampling[6] = float32(nan), float32(nan), float32(nan) // unknown: 0.5/4 is left
	if got := kept(in); !slices.Equal(got, []bool{true, true, true}) {
		t.Errorf("unknown drift: kept %v", got)
	}
}

// VESPO's weight by its definition, in range and at each of its bounds.
func TestVESPOWeight(t *testing.T) {
	phi := func(k, lambda, logW float64) float64 { return math.Exp(lambda + k*logW - lambda*math.Exp(logW)) }
	for _, c := range []struct {
		name   string
		shift  float32 // logp - old of each of two tokens
		adv    float64
		lambda float64 // of both signs
		want   float64
	}{
		{"positive", 0.1, 2, 3, phi(2, 3, 0.2)},
		{"negative", 0.1, -2, 3, phi(3, 3, 0.2)},
		{"zero counts as positive", 0.1, 0, 3, phi(2, 3, 0.2)},
		{"least lambda", 0.1, 2, 0, phi(2, 1e-4, 0.2)},
		{"least weight", -12, 2, 3, phi(2, 3, math.Log(1e-8))},
		{"largest weight", 12, 2, 0, phi(2, 1e-4, 20)},
	} {
		cfg := with(func(cfg *Config) { cfg.LossType, cfg.VESPOLambdaPos, cfg.VESPOLambdaNeg = "vespo", c.lambda, c.lambda })
		in := Inputs{Rows: []int{2}, Advantages: []float64{c.adv}, NumItems: 1, LogP: []float32{-1, -1}, Old: []float32{-1 - c.shift, -1 - c.shift}}
		res := evaluate(t, cfg, in)
		if got := res.Metrics.Values()["vespo/phi_seq_mean"]; math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%s: phi is %v, want %v", c.name, got, c.want)
		}
		if got := float64(res.DLogP[1]); math.Abs(got+c.adv*c.want) > 1e-6*c.want {
			t.Errorf("%s: gradient is %v, want %v", c.name, got, -c.adv*c.want)
		}
	}
	// Each token's log ratio is bounded at 20 nats before the sum: 30 - 15 makes 5, not 15.
	cfg := with(func(cfg *Config) { cfg.LossType, cfg.VESPOLambdaPos = "vespo", 0 })
	res := evaluate(t, cfg, Inputs{Rows: []int{2}, Advantages: []float64{1}, NumItems: 1, LogP: []float32{-1, -16}, Old: []float32{-31, -1}})
	if got, want := res.Metrics.Values()["vespo/phi_seq_mean"], phi(2, 1e-4, 5); math.Abs(got-want) > 1e-9*want {
		t.Errorf("bounded tokens: phi is %v, want %v", got, want)
	}
}

// policy_loss is the loss without the bonus, of the whole optimiser step.
func TestPolicyLossMetric(t *testing.T) {
	cfg := with(func(c *Config) { c.EntropyCoef = 0.1 })
	in := randomInputs(8, 5, 6)
	in.GradAccum = 4
	without := evaluate(t, cfg, in)
	in.EntropyCoef = 0.1
	res := evaluate(t, cfg, in)
	if got := res.Metrics.Values()["policy_loss"]; relative(got, 4*without.Loss) > 1e-12 || res.Loss >= without.Loss {
		t.Errorf("policy_loss %v, loss with and without bonus %v, %v", got, res.Loss, without.Loss)
	}
}
