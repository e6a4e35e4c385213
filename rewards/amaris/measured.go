package amaris

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Figure is a number of a report; NaN where the run left nothing to compute it from, which is null in JSON.
type Figure float64

// MarshalJSON implements json.Marshaler.
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// String is the figure for people: four digits, or a dash.
func (f Figure) String() string {
	if math.IsNaN(float64(f)) {
		return "-"
	}
	return fmt.Sprintf("%.4g", float64(f))
}

// unknown is the figure that there is nothing to compute from.
func unknown() Figure { return Figure(math.NaN()) }

// Line is a line of a run's metrics: means over the steps since the line before.
type Line struct {
	Step   int
	Values map[string]float64 // NaN: not known
}

// Measured is what a run left of the time and the tokens that it took.
type Measured struct {
	Lines     []Line    // of its metrics.jsonl, in order
	Prefix    string    // of the provider's own metrics in it: NAME/ for a part of a mix
	Latencies []Latency // of its file of latencies
}

// span is a line of the training with the number of steps that it is about.
type span struct {
	Line
	steps float64
}

// spans are the lines of the training; those of evaluations are left out. The first line is about all steps up to it, or, in a
// folder in which another run goes on, about as many as the next one.
func (m Measured) spans() []span {
	var out []span
	for _, l := range m.Lines {
		if _, training := l.Values["step_time"]; !training {
			continue
		}
		steps := l.Step
		if len(out) > 0 {
			steps -= out[len(out)-1].Step
		}
		out = append(out, span{l, float64(steps)})
	}
	if len(out) > 1 {
		out[0].steps = min(out[0].steps, out[1].steps)
	}
	return out
}

// Steps is how many steps the metrics know of.
func (m Measured) Steps() int {
	if spans := m.spans(); len(spans) > 0 {
		return spans[len(spans)-1].Step
	}
	return 0
}

// mean is a sum with the weight of what is in it.
type mean struct{ sum, weight float64 }

func (m *mean) add(value, weight float64) {
	if !math.IsNaN(value) && weight > 0 {
		m.sum += value * weight
		m.weight += weight
	}
}

// value is NaN if nothing was added.
func (m mean) value() Figure { return Figure(m.sum / m.weight) }

// average is a metric's mean over steps; NaN if no line has it.
func average(spans []span, name string) Figure {
	var m mean
	for _, s := range spans {
		if v, there := s.Values[name]; there {
			m.add(v, s.steps)
		}
	}
	return m.value()
}

// last is the value of a metric in the last line that has it.
func last(lines []Line, name string) Figure {
	for _, l := range slices.Backward(lines) {
		if v, there := l.Values[name]; there && !math.IsNaN(v) {
			return Figure(v)
		}
	}
	return unknown()
}

// asked puts together what all lines say of a stage's questions.
func (m Measured) asked(stage string) []Asked {
	var out []Asked
	for _, l := range m.Latencies {
		if a, there := l.Stages[stage]; there && a.Questions > 0 {
			out = append(out, a)
		}
	}
	return out
}

// quantile is the p-quantile of the latencies by nearest rank. Each of those that are there stands for equally many of its line.
func quantile(all []Asked, p float64) Figure {
	type latency struct{ seconds, weight float64 }
	var list []latency
	total := 0.0
	for _, a := range all {
		for _, s := range a.Latencies {
			list = append(list, latency{s, float64(a.Questions) / float64(len(a.Latencies))})
			total += list[len(list)-1].weight
		}
	}
	slices.SortFunc(list, func(a, b latency) int { return cmp.Compare(a.seconds, b.seconds) })
	sum := 0.0
	for _, l := range list {
		if sum += l.weight; sum >= p*total*(1-1e-12) {
			return Figure(l.seconds)
		}
	}
	return unknown()
}

// table writes a Markdown table.
func table(w io.Writer, head []string, rows [][]string) error {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(" " + strings.ReplaceAll(c, "|", `\|`) + " |")
		}
		b.WriteString("\n")
	}
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
