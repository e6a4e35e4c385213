package eval

import (
	"errors"
	"math/rand/v2"
)

// Comparison is how two measurements of the same questions differ, question by question.
type Comparison struct {
	Benchmark string       `json:"benchmark"`
	Questions int          `json:"questions"` // scored in both
	Metrics   []Difference `json:"metrics"`
	Better    int          `json:"better"` // questions on which the second has more of the headline
	Worse     int          `json:"worse"`
	Test      string       `json:"test"` // of the headline: mcnemar, wilcoxon or exchange
	P         float64      `json:"p"`    // two-sided
}

// Difference is a metric of two measurements, with an interval that holds 95 % of the differences (second less first) under the paired bootstrap.
type Difference struct {
	Name   string  `json:"name"`
	First  float64 `json:"first"`
	Second float64 `json:"second"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// pair is the verdicts of two measurements on one question, of all repeats.
type pair [2][]Verdict

// Compare compares two measurements' records. Questions that one of them has not, or could not score, are left out.
func Compare(b Benchmark, first, second []Record) (*Comparison, error) {
	pairs := pairUp(first, second)
	if len(pairs) == 0 {
		return nil, errors.New("the two have no scored question in common")
	}
	c := &Comparison{Questions: len(pairs)}
	before, after := metricsOf(b, pairs, 0), metricsOf(b, pairs, 1)
	other := values(after)
	for _, m := range before {
		c.Metrics = append(c.Metrics, Difference{Name: m.Name, First: m.Value, Second: other[m.Name]})
	}
	c.intervals(b, pairs)
	c.test(b, pairs, before[0].Of != "")
	return c, nil
}

// pairUp pairs the questions that are scored in both, in the order of the first.
func pairUp(first, second []Record) []pair {
	x, keys := scored(first)
	y, _ := scored(second)
	var out []pair
	for _, k := range keys {
		if len(y[k]) > 0 {
			out = append(out, pair{x[k], y[k]})
		}
	}
	return out
}

// scored are the verdicts on each question, and the questions in order.
func scored(records []Record) (map[string][]Verdict, []string) {
	out := map[string][]Verdict{}
	var keys []string
	for _, r := range records {
		if r.Verdict.Unscorable != "" {
			continue
		}
		if out[r.Key] == nil {
			keys = append(keys, r.Key)
		}
		out[r.Key] = append(out[r.Key], r.Verdict)
	}
	return out, keys
}

// metricsOf are the metrics of one side of pairs.
func metricsOf(b Benchmark, pairs []pair, side int) []Metric {
	var all []Verdict
	for _, p := range pairs {
		all = append(all, p[side]...)
	}
	return b.Metrics(all)
}

func values(metrics []Metric) map[string]float64 {
	out := map[string]float64{}
	for _, m := range metrics {
		out[m.Name] = m.Value
	}
	return out
}

// intervals draws the questions anew, both sides together.
func (c *Comparison) intervals(b Benchmark, pairs []pair) {
	draws := map[string][]float64{}
	random := rand.New(rand.NewPCG(bootSeed, 1))
	drawn := make([]pair, len(pairs))
	for range resamples {
		for i := range drawn {
			drawn[i] = pairs[random.IntN(len(pairs))]
		}
		before := values(metricsOf(b, drawn, 0))
		for name, v := range values(metricsOf(b, drawn, 1)) {
			draws[name] = append(draws[name], v-before[name])
		}
	}
	for i := range c.Metrics {
		if m := &c.Metrics[i]; len(draws[m.Name]) > 0 {
			m.Low, m.High = interval(draws[m.Name])
		}
	}
}

// test tests the headline: by McNemar's exact test if it is right or wrong for each question; by Wilcoxon's signed ranks if it is a mean over
// questions; else by exchanging the two sides of random questions.
func (c *Comparison) test(b Benchmark, pairs []pair, mean bool) {
	d, binary := make([]float64, len(pairs)), mean
	for i := range pairs {
		x, y := metricsOf(b, pairs[i:i+1], 0)[0].Value, metricsOf(b, pairs[i:i+1], 1)[0].Value
		binary = binary && (x == 0 || x == 1) && (y == 0 || y == 1)
		d[i] = y - x
		c.Better += int(yes(y > x))
		c.Worse += int(yes(y < x))
	}
	switch {
	case binary:
		c.Test, c.P = "mcnemar", mcNemar(c.Better, c.Worse)
	case mean:
		c.Test, c.P = "wilcoxon", wilcoxon(d)
	default:
		c.Test, c.P = "exchange", exchangeTest(b, pairs)
	}
}
