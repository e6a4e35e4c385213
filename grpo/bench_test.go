package grpo

import "testing"

// Compare with hand: the same loss written as a loop with its derivative by hand.
func BenchmarkObjective(b *testing.B) {
	for _, size := range []struct {
		name string
		rows int
	}{{"16k", 16}, {"262k", 256}} {
		rows := make([]int, size.rows)
		for i := range rows {
			rows[i] = 1024
		}
		in := randomInputs(1, rows...)
		in.Sampling = nil
		run := func(name string, cfg Config, f func(Config, Inputs)) {
			b.Run(size.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f(cfg, in)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(in.LogP)), "ns/token")
			})
		}
		graph := func(cfg Config) func(Config, Inputs) {
			o, err := NewObjective(cfg)
			if err != nil {
				b.Fatal(err)
			}
			return func(_ Config, in Inputs) {
				if _, err := o.Eval(in); err != nil {
					b.Fatal(err)
				}
			}
		}
		kl := with(func(c *Config) { c.Beta = 0.04 })
		run("dapo+kl/hand", kl, func(cfg Config, in Inputs) { handLoss(cfg, in) })
		run("dapo+kl/graph", kl, graph(kl))
		run("dapo/graph", Default(), graph(Default()))
		gspo := with(func(c *Config) { c.LossType, c.ImportanceSamplingLevel = "grpo", "sequence" })
		run("gspo/hand", gspo, func(cfg Config, in Inputs) { handLoss(cfg, in) })
		run("gspo/graph", gspo, graph(gspo))
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		o, err := NewObjective(with(func(c *Config) { c.Beta = 0.04 }))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := o.compile(programKey{size: maxChunk}); err != nil {
			b.Fatal(err)
		}
	}
}
