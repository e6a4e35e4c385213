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

// Two micro-batches of an optimiser step, or two processes, give together what one large batch gives; so do rows in
// another order.
func TestSplitsAddUp(t *testing.T) {
	whole := randomInputs(9, 6, 8, 5, 7)
	for k := range whole.Mask {
		whole.Mask[k] = true // bnpo and the entropy bonus weigh micro-batches equally, whatever their tokens
	}
	whole.Rows, whole.NumItems, whole.World, whole.GradAccum, whole.StepsPerGen = []int{6, 7, 5, 8}, 26, 1, 1, 1
	part := func(lo, hi, row int) Inputs {
		in := whole
		in.Rows, in.Advantages = whole.Rows[row:row+2], whole.Advantages[row:row+2]
		in.LogP, in.Old, in.Ref = whole.LogP[lo:hi], whole.Old[lo:hi], whole.Ref[lo:hi]
		in.Sampling, in.Entropy, in.Mask = whole.Sampling[lo:hi], whole.Entropy[lo:hi], whole.Mask[lo:hi]
		return in
	}
	for name, cfg := range variants() {
		if strings.HasSuffix(name, "everything") {
			cfg.TopEntropyQuantile = 1 // its threshold belongs to a micro-batch
		}
		whole.EntropyCoef = cfg.EntropyCoef
		want := evaluate(t, cfg, whole)
		for _, how := range []string{"micro-batches", "processes"} {
			a, b := part(0, 13, 0), part(13, 26, 2)
			divisor := 1.0
			for _, in := range []*Inputs{&a, &b} {
				if how == "processes" {
					in.World, divisor = 2, 2 // gradients are averaged over processes
				} else {
					in.GradAccum, in.StepsPerGen = 2, 2
				}
			}
			ra, rb := evaluate(t, cfg, a), evaluate(t, cfg, b)
			if got := (ra.Loss + rb.Loss) / divisor; relative(got, want.Loss) > 1e-12 {
				t.Errorf("%s: %s give %v, the whole %v", name, how, got, want.Loss)
			}
			for k, g := range append(ra.DLogP, rb.DLogP...) {
				if math.Abs(float64(g)/divisor-float64(want.DLogP[k])) > 1e-7 {
					t.Errorf("%s: %s give gradient %v at token %d, the whole %v", name, how, g, k, want.DLogP[k])
				}
			}
			merged := ra.Metrics
			merged.Merge(rb.Metrics)
			for metric, v := range want.Metrics.Values() {
				if got := merged.Values()[metric]; how == "processes" && metric != "policy_loss" && relative(got, v) > 1e-12 {
					t.Errorf("%s: %s of two processes is %v, of one %v", name, metric, got, v)
				}
			}
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
