package grpo

import "math"

// Rule says how two parts of a metric become one.
type Rule int

const (
	Mean Rule = iota // weighted by Count
	Min
	Max
	Sum // parts add up
)

// Metric is one number of a micro-batch in a form that parts (processes) can be merged in.
type Metric struct {
	Rule  Rule
	Sum   float64 // Mean: sum over Count values; Min, Max, Sum: the value
	Count float64 // values seen; Min, Max with 0: no value
}

// Value is the number to log. A mean of nothing is 0, as in TRL; a minimum or maximum of nothing is NaN.
func (m Metric) Value() float64 {
	switch {
	case m.Rule == Mean:
		return m.Sum / math.Max(m.Count, 1)
	case m.Count == 0 && m.Rule != Sum:
		return math.NaN()
	}
	return m.Sum
}

// merge is m and n taken together.
func (m Metric) merge(n Metric) Metric {
	switch {
	case m.Rule == Mean || m.Rule == Sum:
		return Metric{m.Rule, m.Sum + n.Sum, m.Count + n.Count}
	case n.Count == 0:
		return m
	case m.Count == 0:
		return n
	case m.Rule == Min:
		return Metric{Min, math.Min(m.Sum, n.Sum), m.Count + n.Count}
	}
	return Metric{Max, math.Max(m.Sum, n.Sum), m.Count + n.Count}
}

// Metrics are the metrics of one micro-batch, or of one generation, under TRL's names.
type Metrics map[string]Metric

// set records a plain number.
func (m Metrics) set(name string, value float64) { m[name] = Metric{Mean, value, 1} }

// Merge takes the part of another process into m.
func (m Metrics) Merge(part Metrics) {
	for name, v := range part {
		if have, ok := m[name]; ok {
			v = have.merge(v)
		}
		m[name] = v
	}
}

// Values are the numbers to log.
func (m Metrics) Values() map[string]float64 {
	out := make(map[string]float64, len(m))
	for name, v := range m {
		out[name] = v.Value()
	}
	return out
}

// Total is a running mean in a Window.
type Total struct {
	Sum   float64 `json:"sum"`
	Count int     `json:"count"`
}

// Window averages metrics over a logging window as TRL does: every value counts once, NaN and infinities count not at
// all. Its JSON form, taken at any moment, continues bit for bit. The zero value is an empty window.
type Window struct {
	Totals map[string]Total `json:"totals"`
}

// Add records one value of each metric.
func (w *Window) Add(values map[string]float64) {
	if w.Totals == nil {
		w.Totals = make(map[string]Total)
	}
	for name, v := range values {
		t := w.Totals[name]
		if finite(v) {
			t.Sum += v
			t.Count++
		}
		w.Totals[name] = t
	}
}

// Flush returns the means and empties the window. A metric that only had NaN is NaN.
func (w *Window) Flush() map[string]float64 {
	out := make(map[string]float64, len(w.Totals))
	for name, t := range w.Totals {
		out[name] = t.Sum / float64(t.Count) // 0/0 is NaN
	}
	w.Totals = nil
	return out
}

// LengthMetrics are TRL's completions/* metrics of all sampled groups. A completion's length is its number of tokens
// without observations, as in TRL; terminated ones are those that no limit cut.
func LengthMetrics(groups []Group) Metrics {
	var all, terminated []float64
	for _, g := range groups {
		for _, c := range g.Completions {
			n := float64(c.Own())
			all = append(all, n)
			if !c.Truncated {
				terminated = append(terminated, n)
			}
		}
	}
	m := Metrics{}
	lengths := func(suffix string, xs []float64) {
		s := summarise(xs)
		m.set("completions/mean_"+suffix, orZero(s.mean))
		m.set("completions/min_"+suffix, orZero(s.low))
		m.set("completions/max_"+suffix, orZero(s.high))
	}
	lengths("length", all)
	lengths("terminated_length", terminated)
	m.set("completions/clipped_ratio", float64(len(all)-len(terminated))/math.Max(float64(len(all)), 1))
	return m
}

// orZero is x, or 0 for NaN.
func orZero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// summary holds statistics of the values that are not NaN; all NaN if there are none.
type summary struct {
	n               int
	mean, low, high float64
	std             float64 // Bessel's; NaN for fewer than two values
}

// summarise is a two-pass summary of xs.
func summarise(xs []float64) summary {
	s := summary{mean: math.NaN(), low: math.NaN(), high: math.NaN(), std: math.NaN()}
	sum := 0.0
	for _, x := range xs {
		if math.IsNaN(x) {
			continue
		}
		if s.n == 0 || x < s.low {
			s.low = x
		}
		if s.n == 0 || x > s.high {
			s.high = x
		}
		s.n++
		sum += x
	}
	if s.n == 0 {
		return s
	}
	s.mean = sum / float64(s.n)
	if s.n < 2 {
		return s
	}
	if s.low == s.high { // rounding in the mean must not make a spread
		s.mean, s.std = s.low, 0
		return s
	}
	squares := 0.0
	for _, x := range xs {
		if !math.IsNaN(x) {
			squares += (x - s.mean) * (x - s.mean)
		}
	}
	s.std = math.Sqrt(squares / float64(s.n-1))
	return s
}

// equal reports that the values leave nothing to compare: fewer than two, or all the same.
func (s summary) equal() bool { return s.n < 2 || s.low == s.high }
