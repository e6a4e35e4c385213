package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

// mcNemar is the exact two-sided p of so many changes in either direction (McNemar 1947, by the binomial distribution).
func mcNemar(better, worse int) float64 {
	n := better + worse
	p := 0.0
	for i := range min(better, worse) + 1 {
		p += math.Exp(logChoose(n, i) - float64(n)*math.Ln2)
	}
	return min(1, 2*p)
}

func logChoose(n, k int) float64 {
	factorial := func(x int) float64 {
		v, _ := math.Lgamma(float64(x) + 1)
		return v
	}
	return factorial(n) - factorial(k) - factorial(n-k)
}

// exactSigns is up to how many differences all signs are tried; with more, so many draws.
const (
	exactSigns = 16
	signDraws  = 10000
	slack      = 1e-12 // between sums that differ by their rounding
)

// signTest is the two-sided p of the sum of paired differences under all signs, or random ones (Fisher 1935, sec. 21).
func signTest(d []float64) float64 {
	d = slices.DeleteFunc(slices.Clone(d), func(x float64) bool { return x == 0 })
	sum := 0.0
	for _, x := range d {
		sum += x
	}
	extreme := func(minus func(i int) bool) int {
		s := 0.0
		for i, x := range d {
			if minus(i) {
				x = -x
			}
			s += x
		}
		return int(yes(math.Abs(s) >= math.Abs(sum)-slack))
	}
	hits := 0
	if len(d) <= exactSigns {
		for signs := range 1 << len(d) {
			hits += extreme(func(i int) bool { return signs>>i&1 == 1 })
		}
		return float64(hits) / float64(int(1)<<len(d))
	}
	random := rand.New(rand.NewPCG(bootSeed, 2))
	for range signDraws {
		hits += extreme(func(int) bool { return random.Uint64()&1 == 1 })
	}
	return float64(hits+1) / (signDraws + 1)
}

// exchanges is how often the sides of random questions are exchanged.
const exchanges = 2000

// exchangeTest is the two-sided p of the difference of the headline when the two sides of random questions are exchanged (approximate
// randomisation, Noreen 1989).
func exchangeTest(b Benchmark, pairs []pair) float64 {
	difference := func(pairs []pair) float64 {
		return math.Abs(metricsOf(b, pairs, 1)[0].Value - metricsOf(b, pairs, 0)[0].Value)
	}
	found, hits := difference(pairs), 0
	random := rand.New(rand.NewPCG(bootSeed, 3))
	exchanged := make([]pair, len(pairs))
	for range exchanges {
		for i, p := range pairs {
			if random.Uint64()&1 == 1 {
				p[0], p[1] = p[1], p[0]
			}
			exchanged[i] = p
		}
		hits += int(yes(difference(exchanged) >= found-slack))
	}
	return float64(hits+1) / (exchanges + 1)
}
