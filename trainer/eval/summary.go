package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Result is what a measurement comes to.
type Result struct {
	Label      string   `json:"label,omitempty"` // whom it is of: the name of the answers' file
	Setting    Setting  `json:"setting"`
	Metrics    []Figure `json:"metrics"`           // the headline first
	Details    []Metric `json:"details,omitempty"` // of a Detailed benchmark
	Answers    int      `json:"answers"`
	Tokens     int      `json:"tokens"`     // of the answers
	CutOff     int      `json:"cut_off"`    // answers that ended because of max_tokens
	Refused    int      `json:"refused"`    // questions that a server refused: they count as answered by nothing
	Unscorable int      `json:"unscorable"` // answers that are left out of the metrics, because their judge gave no usable verdict
}

// Figure is a metric: the mean over the repeats, their standard error (0 if there is one), and an interval that holds 95 % of what other questions
// of the same kind would give.
type Figure struct {
	Name     string    `json:"name"`
	Value    float64   `json:"value"`
	StdErr   float64   `json:"std_err_of_repeats"`
	Low      float64   `json:"low"`
	High     float64   `json:"high"`
	Spread   float64   `json:"bootstrap_std"` // standard deviation over the draws that the interval is made of, as HealthBench reports it
	Repeated []float64 `json:"repeats,omitempty"`
}

// resamples is how often the questions are drawn anew for an interval.
const resamples = 1000

// bootSeed is the seed of these draws: an interval is the same whenever it is computed.
const bootSeed = 1

// Summarise sums up records, which are those of repeat after repeat in the order of the items. Unscorable ones are left out and counted.
func Summarise(b Benchmark, s Setting, records []Record) *Result {
	r := &Result{Setting: s, Answers: len(records)}
	questions := map[string][]Record{}
	var keys []string
	for _, rec := range records {
		r.Tokens += rec.Tokens
		r.CutOff += int(yes(rec.Finish == CutOff))
		r.Refused += int(yes(rec.Finish == Refused))
		if rec.Verdict.Unscorable != "" {
			r.Unscorable++
			continue
		}
		if questions[rec.Key] == nil {
			keys = append(keys, rec.Key)
		}
		questions[rec.Key] = append(questions[rec.Key], rec)
	}
	if len(keys) == 0 {
		return r
	}
	of := func(keys []string, metrics func([]Verdict) []Metric) []Figure {
		repeats := make([][]Verdict, max(1, s.Repeats))
		for _, k := range keys {
			for _, rec := range questions[k] {
				repeats[rec.Repeat] = append(repeats[rec.Repeat], rec.Verdict)
			}
		}
		return figures(metrics, repeats)
	}
	draws := map[string][]float64{}
	random := rand.New(rand.NewPCG(bootSeed, 0))
	drawn := make([]string, len(keys))
	for range resamples {
		for i := range drawn {
			drawn[i] = keys[random.IntN(len(keys))]
		}
		for _, f := range of(drawn, b.Metrics) {
			draws[f.Name] = append(draws[f.Name], f.Value)
		}
	}
	for _, f := range of(keys, b.Metrics) {
		if d := draws[f.Name]; len(d) > 0 {
			f.Low, f.High = interval(d)
			f.Spread = deviation(d)
		}
		r.Metrics = append(r.Metrics, f)
	}
	if parts, ok := b.(Detailed); ok {
		for _, f := range of(keys, parts.Details) {
			r.Details = append(r.Details, Metric{Name: f.Name, Value: f.Value})
		}
	}
	return r
}

// figures are the metrics of several repeats, without intervals.
func figures(metrics func([]Verdict) []Metric, repeats [][]Verdict) []Figure {
	var out []Figure
	at := map[string]int{}
	for _, verdicts := range repeats {
		if len(verdicts) == 0 {
			continue
		}
		for _, m := range metrics(verdicts) {
			i, ok := at[m.Name]
			if !ok {
				i = len(out)
				at[m.Name] = i
				out = append(out, Figure{Name: m.Name})
			}
			out[i].Repeated = append(out[i].Repeated, m.Value)
		}
	}
	for i := range out {
		f := &out[i]
		f.Value, f.StdErr = meanError(f.Repeated)
		if len(f.Repeated) == 1 {
			f.Repeated = nil
		}
	}
	return out
}

// meanError is the mean and its standard error.
func meanError(x []float64) (mean, err float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	if len(x) < 2 {
		return mean, 0
	}
	squares := 0.0
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares / (n - 1) / n)
}

// deviation is the standard deviation of all of them (numpy's default).
func deviation(x []float64) float64 {
	_, err := meanError(x)
	return err * math.Sqrt(float64(len(x)-1))
}

// interval are the 2.5th and the 97.5th percentile.
func interval(draws []float64) (low, high float64) {
	s := slices.Clone(draws)
	slices.Sort(s)
	return percentile(s, 0.025), percentile(s, 0.975)
}

// percentile interpolates between the nearest two of sorted numbers (numpy's default).
func percentile(s []float64, p float64) float64 {
	at := p * float64(len(s)-1)
	i := int(at)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}
