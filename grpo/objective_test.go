package grpo

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func ptr[T any](v T) *T { return &v }

func with(change func(*Config)) Config {
	cfg := Default()
	change(&cfg)
	return cfg
}

// evaluate runs one micro-batch on a fresh objective.
func evaluate(t testing.TB, cfg Config, in Inputs) Result {
	t.Helper()
	o, err := NewObjective(cfg)
	if err != nil {
		t.Fatal(err)
	}
	res, err := o.Eval(in)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// variants are configurations that together use every option of the loss.
func variants() map[string]Config {
	out := map[string]Config{}
	for name := range families {
		for _, level := range []string{"token", "sequence"} {
			out[name+" "+level] = with(func(c *Config) {
				c.LossType, c.ImportanceSamplingLevel, c.ImportanceSamplingCorrection = name, level, false
			})
			out[name+" "+level+" everything"] = with(func(c *Config) {
				c.LossType, c.ImportanceSamplingLevel, c.ImportanceSamplingMode = name, level, "token_truncate"
				c.Beta, c.EntropyCoef, c.TopEntropyQuantile = 0.3, 0.05, 0.6
				c.EpsilonHigh, c.Delta, c.OffPolicyMaskThreshold = ptr(0.28), ptr(1.4), ptr(0.02)
			})
		}
	}
	for _, kl := range []string{"k1", "k2", "k3"} {
		out["dapo "+kl] = with(func(c *Config) { c.Beta, c.KLEstimator, c.UseBiasCorrectionKL = 0.3, kl, false })
	}
	for _, mode := range []string{"token_mask", "sequence_truncate", "sequence_mask"} {
		out["grpo "+mode] = with(func(c *Config) {
			c.LossType, c.ImportanceSamplingMode, c.ImportanceSamplingClipMax = "grpo", mode, ptr(1.1)
		})
	}
	return out
}

// Gradients are those of the loss: central differences in float64, what the loss detaches held fixed.
func TestFiniteDifferences(t *testing.T) {
	const h = 1e-6
	worst := 0.0
	for name, cfg := range variants() {
		for _, tokenAdvantages := range []bool{false, true} {
			in := randomInputs(7, 5, 0, 9, 3)
			in.EntropyCoef = cfg.EntropyCoef
			if tokenAdvantages {
				for k := range in.LogP {
					in.TokenAdvantages = append(in.TokenAdvantages, math.Sin(float64(3*k)))
				}
			}
			o, err := NewObjective(cfg)
			if err != nil {
				t.Fatal(err)
			}
			b, err := o.prepare(in)
			if err != nil {
				t.Fatal(err)
			}
			b.lane[laneLogP] = slices.Clone(b.lane[laneLogP]) // apart from laneDetached
			base, err := o.run(b)
			if err != nil {
				t.Fatal(err)
			}
			for _, by := range []struct {
				lane lane
				grad []float64
			}{{laneLogP, base.dlogp}, {laneEntropy, base.dentropy}} {
				for k := range by.grad {
					at := func(delta float64) float64 {
						keep := b.lane[by.lane][k]
						defer func() { b.lane[by.lane][k] = keep }()
						b.lane[by.lane][k] += delta
						out, err := o.run(b)
						if err != nil {
							t.Fatal(err)
						}
						return out.loss
					}
					want := (at(h) - at(-h)) / (2 * h)
					e := math.Abs(by.grad[k] - want)
					worst = math.Max(worst, e)
					if !(e <= 1e-8) {
						t.Errorf("%s: derivative by lane %d of %s is %v, differences give %v", name, by.lane, b.where(k), by.grad[k], want)
					}
				}
			}
		}
	}
	t.Logf("worst error %.2g", worst)
}

// The graphs equal hand-written loops, over several chunks, with rows longer than a chunk, and where TRL has no numbers
// (k1, k2).
func TestHandWritten(t *testing.T) {
	shapes := map[string][]int{
		"small": {5, 0, 9, 3}, "one token": {1}, "chunks": {9000, 7384, 1, 16383, 0, 3000}, "long row": {3, 20000, 5},
	}
	worst := 0.0
	for shape, rows := range shapes {
		in := randomInputs(3, rows...)
		in.Sampling = nil
		for _, lossType := range []string{"grpo", "bnpo", "dr_grpo", "dapo", "luspo"} {
			for _, level := range []string{"token", "sequence"} {
				for i, kl := range []string{"", "", "", "", "k1", "k2", "k3", "k3 corrected"} {
					var delta *float64 // above the clip, in it, below it
					if i < 3 {
						delta = ptr([]float64{1.5, 1.1, 0.7}[i])
					}
					cfg := with(func(c *Config) {
						c.LossType, c.ImportanceSamplingLevel, c.EpsilonHigh = lossType, level, ptr(0.28)
						if kl != "" {
							c.Beta, c.KLEstimator, c.UseBiasCorrectionKL = 0.04, kl[:2], kl == "k3 corrected"
						}
						c.Delta = delta
					})
					if len(in.LogP) > 1000 && (lossType != "grpo" || i%3 != 0 && i != 7) {
						continue // the large shapes are about chunks
					}
					res := evaluate(t, cfg, in)
					loss, grad := handLoss(cfg, in)
					e := relative(res.Loss, loss)
					scale := 0.0
					for _, g := range grad {
						scale = math.Max(scale, math.Abs(g))
					}
					for k := range grad {
						e = math.Max(e, math.Abs(float64(res.DLogP[k])-grad[k])/math.Max(scale, 1e-30))
					}
					if cfg.Beta != 0 && !cfg.UseBiasCorrectionKL {
						e = math.Max(e, relative(res.Metrics.Values()["kl"], handMeanKL(cfg, in)))
					}
					worst = math.Max(worst, e)
					if !(e < 1e-7) {
						t.Errorf("%s, %s, %s, %q: relative error %.2g", shape, lossType, level, kl, e)
					}
				}
			}
		}
	}
	t.Logf("worst relative error %.2g", worst)
}

// Where policy and reference have nothing in common the KL is bounded at 20 nats and has no gradient. One token, ratio 1.
func TestKLIsBounded(t *testing.T) {
	for _, c := range []struct {
		kl   string
		logp float32
		want float64
	}{{"k1", -1, 20}, {"k2", -1, 200}, {"k3", -1, math.Exp(-20) + 19}, {"k1", -61, -20}, {"k3", -61, math.Exp(20) - 21}} {
		cfg := with(func(cfg *Config) { cfg.Beta, cfg.KLEstimator, cfg.UseBiasCorrectionKL = 0.5, c.kl, false })
		res := evaluate(t, cfg, Inputs{Rows: []int{1}, LogP: []float32{c.logp}, Ref: []float32{-31}, Advantages: []float64{2}, NumItems: 1})
		if relative(res.Loss, -2+0.5*c.want) > 1e-12 || res.DLogP[0] != -2 || relative(res.Metrics.Values()["kl"], c.want) > 1e-12 {
			t.Errorf("%s at %v: loss %v, gradient %v, metric %v", c.kl, c.logp, res.Loss, res.DLogP, res.Metrics.Values()["kl"])
		}
	}
}

// Without old log-probabilities every ratio is exactly 1: the gradient is -advantage times the token's weight to the
// last bit, and the same as with a copy of the current ones.
func TestRatioIsOne(t *testing.T) {
	in := randomInputs(11, 40, 31, 7)
	in.Old, in.Sampling = nil, nil
	in.NumItems, in.GradAccum, in.StepsPerGen = 64, 1, 1
	copied := in
	copied.Old = slices.Clone(in.LogP)
	for _, level := range []string{"token", "sequence"} {
		for _, lossType := range []string{"dapo", "luspo", "cispo", "vespo", "sapo"} {
			cfg := with(func(c *Config) {
				c.LossType, c.ImportanceSamplingLevel, c.EpsilonHigh = lossType, level, ptr(2.0)
			})
			res, same := evaluate(t, cfg, in), evaluate(t, cfg, copied)
			if res.Loss != same.Loss || !slices.Equal(res.DLogP, same.DLogP) {
				t.Errorf("%s: detached and copied log-probabilities differ", lossType)
			}
			if lossType != "dapo" || level != "token" {
				continue
			}
			start := 0
			for i, n := range in.Rows {
				for k := start; k < start+n; k++ {
					want := float32(0)
					if in.Mask[k] {
						want = float32(-in.Advantages[i] / 64)
					}
					if res.DLogP[k] != want {
						t.Fatalf("gradient of token %d is %v, want exactly %v", k, res.DLogP[k], want)
					}
				}
				start += n
			}
			for name, v := range res.Metrics.Values() {
				if strings.HasPrefix(name, "clip_ratio/") && v != 0 {
					t.Errorf("%s is %v", name, v)
				}
			}
		}
	}
}

// What stands at tokens outside of the mask must not matter, however extreme.
func TestMaskedValuesDoNotMatter(t *testing.T) {
	poison := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32}
	for name, cfg := range variants() {
		clean := randomInputs(5, 12, 6, 20)
		clean.EntropyCoef = cfg.EntropyCoef
		dirty := clean
		for _, p := range []*[]float32{&dirty.LogP, &dirty.Old, &dirty.Ref, &dirty.Sampling, &dirty.Entropy} {
			*p = slices.Clone(*p)
			for k, own := range clean.Mask {
				if !own {
					(*p)[k] = poison[k%len(poison)]
				}
			}
		}
		a, b := evaluate(t, cfg, clean), evaluate(t, cfg, dirty)
		if a.Loss != b.Loss || !slices.Equal(a.DLogP, b.DLogP) || !slices.Equal(a.DEntropy, b.DEntropy) {
			t.Errorf("%s: masked values change the result", name)
		}
		for k, own := range clean.Mask {
			if !own && a.DLogP[k] != 0 {
				t.Errorf("%s: masked token %d has gradient %v", name, k, a.DLogP[k])
			}
		}
		for metric, v := range a.Metrics.Values() {
			if w := b.Metrics.Values()[metric]; v != w {
				t.Errorf("%s: masked values change %s from %v to %v", name, metric, v, w)
			}
		}
	}
}

// Everything masked: loss and gradient 0, no metric is NaN or infinite except the row extremes, which have no rows.
func TestNothingToTrainOn(t *testing.T) {
	for name, cfg := range variants() {
		for _, rows := range [][]int{{}, {0, 0}, {3, 2}} {
			in := randomInputs(2, rows...)
			in.Mask = make([]bool, len(in.Mask))
			in.NumItems, in.EntropyCoef = 0, cfg.EntropyCoef
			res := evaluate(t, cfg, in)
			if res.Loss != 0 {
				t.Errorf("%s: loss %v", name, res.Loss)
			}
			for _, g := range res.DLogP {
				if g != 0 {
					t.Errorf("%s: gradient %v", name, g)
				}
			}
		}
	}
}

func TestNonFiniteInputsAreReported(t *testing.T) {
	nan := float32(math.NaN())
	cfg := with(func(c *Config) { c.Beta, c.EntropyCoef, c.EpsilonHigh = 0.1, 0.01, ptr(0.3) })
	cases := map[string]func(in *Inputs){
		"log-probability":           func(in *Inputs) { in.LogP[6] = nan },
		"old log-probability":       func(in *Inputs) { in.Old[6] = float32(math.Inf(-1)) },
		"reference log-probability": func(in *Inputs) { in.Ref[6] = nan },
		"entropy":                   func(in *Inputs) { in.Entropy[6] = nan },
		"advantage":                 func(in *Inputs) { in.Advantages[1] = math.Inf(1) },
		"gradient":                  func(in *Inputs) { in.Old[6] = -2000 }, // the ratio overflows
	}
	for what, spoil := range cases {
		in := randomInputs(1, 5, 4)
		for k := range in.Mask {
			in.Mask[k] = k >= 6 || k < 5
		}
		spoil(&in)
		o, err := NewObjective(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.Eval(in)
		if !errors.Is(err, ErrNonFinite) || !strings.Contains(err.Error(), what+" of token 1 of row 1") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestInputsThatDoNotFit(t *testing.T) {
	cases := map[string]func(cfg *Config, in *Inputs){
		"Ref was not given":        func(cfg *Config, in *Inputs) { cfg.Beta, in.Ref = 0.1, nil },
		"Entropy was not given":    func(cfg *Config, in *Inputs) { cfg.TopEntropyQuantile, in.Entropy = 0.5, nil },
		"LogP has 8 values":        func(_ *Config, in *Inputs) { in.LogP = in.LogP[:8] },
		"Mask has 0 values":        func(_ *Config, in *Inputs) { in.Mask = []bool{} },
		"1 advantages for 2 rows":  func(_ *Config, in *Inputs) { in.Advantages = in.Advantages[:1] },
		"row 0 has -1 tokens":      func(_ *Config, in *Inputs) { in.Rows = []int{-1, 10} },
		"NumItems is 0":            func(_ *Config, in *Inputs) { in.NumItems = 0 },
		"importance_sampling_mode": func(cfg *Config, _ *Inputs) { cfg.LossType = "vespo" },
	}
	for want, spoil := range cases {
		cfg, in := Default(), randomInputs(1, 5, 4)
		spoil(&cfg, &in)
		o, err := NewObjective(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = o.Eval(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The threshold is torch.quantile's: linear between neighbours.
func TestEntropyThreshold(t *testing.T) {
	x := []float32{4, 1, 3, 2}
	for share, want := range map[float64]float64{0: 4, 0.5: 2.5, 0.9: 1.3, 0.25: 3.25, 1: 1} {
		if got := EntropyThreshold(x, share); math.Abs(got-want) > 1e-6 {
			t.Errorf("threshold for a share of %v is %v, want %v", share, got, want)
		}
	}
	if got := EntropyThreshold(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("threshold of nothing is %v", got)
	}
}
