package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The whole program on the CPU: every part runs, the sampler and the trainer agree to the bit there, and learning in float32 is
// the CPU's own.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := run(context.Background(), "cpu", dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "gpu-check.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| conformance | 0.0 | not done: the device is not a GPU |", "| models |", "| Attention | 0.0e+00 | 0.0e+00 |", "| tiny |",
		"| 0.0000, 0.000 | 1.00000 |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "gpu-check.json")); err != nil {
		t.Error(err)
	}
}

// No time left is no fault, but is in the report.
func TestNoTime(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := run(ctx, "cpu", t.TempDir()); err != nil {
		t.Error(err)
	}
}

// By hand: 1e9 weights at 1000 tokens a second are 4e12 operations a second, 4 % of 100 TFLOP/s. A token in each of 10 samples
// reads 2 GB of weights and 10 times 2·2·2·4·8·118 bytes, which at 1000 GB/s takes 2.000604 ms; 1000 tokens a second take 10 ms.
func TestRate(t *testing.T) {
	s := shape{context: 100, batch: 10}
	s.config.Layers, s.config.KVHeads, s.config.HeadDim = 2, 4, 8
	m := modelReport{Parameters: 1e9, Train: 1000, Decode: 1000}
	m.rate(s, arithmeticReport{TFLOPS: 100, Bandwidth: 1000}, 2e9)
	kv := 10 * 2. * 2 * 2 * 4 * 8 * 118
	if want := (2e9 + kv) / 1e12 * 1000 / 10; math.Abs(m.Utilisation-0.04) > 1e-12 || math.Abs(m.DecodeOfBest-want) > 1e-9 {
		t.Errorf("shares are %g and %g, want 0.04 and %g", m.Utilisation, m.DecodeOfBest, want)
	}
}

func TestGap(t *testing.T) {
	g := gap([]float32{-1, -2}, []float32{-1, -2 + float32(math.Log(2))})
	if math.Abs(g.MeanRatio-1.5) > 1e-6 || math.Abs(g.MaxDifference-math.Log(2)) > 1e-6 || math.Abs(g.MeanDifference-math.Log(2)/2) > 1e-6 {
		t.Errorf("the gap is %+v", g)
	}
}

// Groups of cases are not cases.
func TestCount(t *testing.T) {
	c := count([]byte(`{"Action":"pass","Test":"TestConformance/float32/rotary"}
{"Action":"pass","Test":"TestConformance/float32/rotary/t1"}
{"Action":"output","Test":"TestConformance/float32/rotary/t1","Output":"x"}
{"Action":"fail","Test":"TestConformance/bfloat16/head/n5"}
not JSON
`))
	if c.Passed != 1 || len(c.Failed) != 1 || c.Failed[0] != "TestConformance/bfloat16/head/n5" {
		t.Errorf("counted %+v", c)
	}
}

// A curve that leaves the CPU's, and one that is not a number, are faults.
func TestLearningCheck(t *testing.T) {
	fall := func(off float64) []float64 {
		l := make([]float64, updates)
		for i := range l {
			l[i] = 5 - float64(i)/10 + off*float64(i)
		}
		return l
	}
	for _, c := range []struct {
		off float64
		bad bool
	}{{0, false}, {0.0005, false}, {0.1, true}, {math.NaN(), true}} {
		l := learningReport{CPU: fall(0), Float32: fall(0), BFloat16: fall(c.off)}
		if err := l.check(); (err != nil) != c.bad {
			t.Errorf("off by %g an update: %v", c.off, err)
		}
	}
}
