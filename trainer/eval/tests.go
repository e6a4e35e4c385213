package eval

import (
	"cmp"
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

// slack is between sums that differ by their rounding.
const slack = 1e-12

// mostExact is up to how many differences the distribution of Wilcoxon's statistic is computed; with more it is taken for normal.
const mostExact = 50

// wilcoxon is the two-sided p of the signed-rank test on paired differences (Wilcoxon 1945). Differences of 0 are left out, equal ones share the
// mean of their ranks; the exact distribution is that of these ranks under all signs, the normal one has its variance corrected for them.
func wilcoxon(d []float64) float64 {
	d = slices.DeleteFunc(slices.Clone(d), func(x float64) bool { return math.Abs(x) <= slack })
	if len(d) == 0 {
		return 1
	}
	ranks, ties := doubledRanks(d)
	total, plus := 0, 0
	for i, r := range ranks {
		total += r
		if d[i] > 0 {
			plus += r
		}
	}
	least := min(plus, total-plus)
	if n := float64(len(d)); len(d) > mostExact {
		spread := math.Sqrt((n*(n+1)*(2*n+1) - ties/2) / 24)
		z := (float64(least)/2 - n*(n+1)/4) / spread
		return math.Erfc(-z / math.Sqrt2)
	}
	ways := make([]float64, total+1) // by twice the sum of the positive ranks, as shares of all signs
	ways[0] = 1
	for _, r := range ranks {
		for s := total; s >= 0; s-- {
			ways[s] /= 2
			if s >= r {
				ways[s] += ways[s-r] / 2
			}
		}
	}
	p := 0.0
	for s := range least + 1 {
		p += ways[s]
	}
	return min(1, 2*p)
}

// doubledRanks are twice the ranks of differences by their size, equal ones sharing the mean, and the sum of t³-t over groups of t equal ones.
func doubledRanks(d []float64) (ranks []int, ties float64) {
	order := make([]int, len(d))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(d[a]), math.Abs(d[b])) })
	ranks = make([]int, len(d))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && math.Abs(d[order[to]])-math.Abs(d[order[from]]) <= slack {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + to + 1 // twice the mean of from+1 ... to
		}
		t := float64(to - from)
		ties += t*t*t - t
		from = to
	}
	return ranks, ties
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
