package device

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkQuantise reports weights quantised per second.
func BenchmarkQuantise(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 1<<16)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for _, dtype := range []DType{Int8, Int4} {
		b.Run(dtype.String(), func(b *testing.B) {
			q := NewQuant(dtype, len(x)/512, 512)
			for b.Loop() {
				if err := q.Quantise(x); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(x))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mweights/s")
		})
	}
}
