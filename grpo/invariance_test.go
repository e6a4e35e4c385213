package grpo

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Two micro-batches of an optimiser step give together what one large batch gives.
func TestSplitsAddUp(t *testing.T) {
	whole := randomInputs(9, 6, 8, 5, 7)
	for k := range whole.Mask {
		whole.Mask[k] = true // bnpo and the entropy bonus weigh micro-batches equally, whatever their tokens
	}
	whole.Rows, whole.NumItems, whole.GradAccum, whole.StepsPerGen = []int{6, 7, 5, 8}, 26, 1, 1
	for name, cfg := range variants() {
		if strings.HasSuffix(name, "everything") {
			cfg.TopEntropyQuantile = 1 // its threshold belongs to a micro-batch
		}
		whole.EntropyCoef = cfg.EntropyCoef
		want := evaluate(t, cfg, whole)
		a, b := part(whole, 0, 2), part(whole, 2, 4)
		for _, in := range []*Inputs{&a, &b} {
			in.GradAccum, in.StepsPerGen = 2, 2
		}
		addUp(t, name, want, evaluate(t, cfg, a), evaluate(t, cfg, b))
	}
}

// The parts of a micro-batch that several processes share, however uneven, give together its loss, its gradient and its
// metrics, with masked tokens, an entropy bonus and a threshold for the entropy.
func TestSharesAddUp(t *testing.T) {
	whole := randomInputs(9, 6, 7, 5, 8)
	shared := &Whole{Rows: 4}
	for k, own := range whole.Mask {
		if own {
			shared.Tokens++
			shared.Entropies = append(shared.Entropies, whole.Entropy[k])
		}
	}
	for name, cfg := range variants() {
		whole.EntropyCoef, whole.Whole = cfg.EntropyCoef, nil
		want := evaluate(t, cfg, whole)
		whole.Whole = shared
		a, b := evaluate(t, cfg, part(whole, 0, 1)), evaluate(t, cfg, part(whole, 1, 4))
		addUp(t, name, want, a, b)
		merged := a.Metrics
		merged.Merge(b.Metrics)
		for metric, v := range want.Metrics.Values() {
			if got := merged.Values()[metric]; relative(got, v) > 1e-12 {
				t.Errorf("%s: %s of two processes is %v, of one %v", name, metric, got, v)
			}
		}
	}
}

// part is rows [from, to) of in.
func part(in Inputs, from, to int) Inputs {
	lo, hi := 0, 0
	for i, n := range in.Rows[:to] {
		if i < from {
			lo += n
		}
		hi += n
	}
	in.Rows, in.Advantages = in.Rows[from:to], in.Advantages[from:to]
	in.LogP, in.Old, in.Ref = in.LogP[lo:hi], in.Old[lo:hi], in.Ref[lo:hi]
	in.Sampling, in.Entropy, in.Mask = in.Sampling[lo:hi], in.Entropy[lo:hi], in.Mask[lo:hi]
	return in
}

func addUp(t *testing.T, name string, want, a, b Result) {
	t.Helper()
	if got := a.Loss + b.Loss; relative(got, want.Loss) > 1e-12 {
		t.Errorf("%s: parts give %v, the whole %v", name, got, want.Loss)
	}
	for k, g := range append(a.DLogP, b.DLogP...) {
		if math.Abs(float64(g-want.DLogP[k])) > 1e-7 {
			t.Errorf("%s: parts give gradient %v at token %d, the whole %v", name, g, k, want.DLogP[k])
		}
	}
	for k, g := range append(a.DEntropy, b.DEntropy...) {
		if math.Abs(float64(g-want.DEntropy[k])) > 1e-7 {
			t.Errorf("%s: parts give gradient %v at the entropy of token %d, the whole %v", name, g, k, want.DEntropy[k])
		}
	}
}

// One objective used from several goroutines, with sizes that change, gives the same bits as alone.
func TestConcurrentUse(t *testing.T) {
	cfg := with(func(c *Config) { c.ImportanceSamplingLevel, c.Beta = "sequence", 0.1 })
	shared, err := NewObjective(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for step := range 10 {
				in := randomInputs(uint64(k), 1+(k*97+step*331)%700, 20)
				alone, err := NewObjective(cfg)
				if err != nil {
					t.Error(err)
					return
				}
				want, err1 := alone.Eval(in)
				got, err2 := shared.Eval(in)
				if err1 != nil || err2 != nil || want.Loss != got.Loss || !slices.Equal(want.DLogP, got.DLogP) {
					t.Errorf("goroutine %d, step %d: %v %v, loss %v, alone %v", k, step, err1, err2, got.Loss, want.Loss)
				}
			}
		}()
	}
	wg.Wait()
}

// Memory stays flat while batches of ever new sizes come in, and no goroutine is left behind.
func TestHeapStaysFlat(t *testing.T) {
	o, err := NewObjective(with(func(c *Config) { c.Beta = 0.1 }))
	if err != nil {
		t.Fatal(err)
	}
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / 1e6
	}
	goroutines := runtime.NumGoroutine()
	in := randomInputs(1, 600)
	run := func(from, to int) {
		for step := from; step < to; step++ {
			n := 1 + step*37%600
			part := in
			part.Rows = []int{n}
			part.LogP, part.Old, part.Ref = in.LogP[:n], in.Old[:n], in.Ref[:n]
			part.Sampling, part.Entropy, part.Mask = in.Sampling[:n], in.Entropy[:n], in.Mask[:n]
			if _, err := o.Eval(part); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(0, 600)
	before := heap()
	run(600, 3000)
	if after := heap(); after > before+2 {
		t.Errorf("heap grew from %.1f to %.1f MB", before, after)
	}
	for range 1000 { // one whose work is done still counts for a moment
		if runtime.NumGoroutine() <= goroutines {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
}
