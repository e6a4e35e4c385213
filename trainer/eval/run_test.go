package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// numbers is a benchmark of n questions; an answer is right if it repeats the question.
type numbers struct{ n int }

func (b numbers) Items() []Item {
	items := make([]Item, b.n)
	for i := range items {
		items[i] = Item{Key: fmt.Sprint(i), Messages: ask(fmt.Sprint(i))}
	}
	return items
}

func (b numbers) Score(_ context.Context, it *Item, answer string) (Verdict, error) {
	return Verdict{Values: map[string]float64{"right": yes(answer == it.Messages[0].Content)}}, nil
}

func (b numbers) Metrics(v []Verdict) []Metric { return []Metric{mean("accuracy", "right", v)} }

// echo answers the questions below limit rightly, up to stop of them in all.
type echo struct {
	limit, stop int
	asked       atomic.Int32
}

var errStopped = errors.New("stopped")

func (p *echo) Answer(_ context.Context, asks []Ask, _ Sampling, deliver func(int, Answer) error) error {
	for i, a := range asks {
		if int(p.asked.Add(1)) > p.stop {
			return errStopped
		}
		text := a.Item.Messages[0].Content
		if len(text) > 1 || text >= fmt.Sprint(p.limit) {
			text = "?"
		}
		if err := deliver(i, Answer{Text: text, Finish: Stopped, Tokens: 1}); err != nil {
			return err
		}
	}
	return nil
}

// What an interrupted measurement has is not asked again; a torn last line is; other settings are refused.
func TestAMeasurementGoesOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "numbers", "base.jsonl")
	job := func(p Policy) Job {
		return Job{Setting: Setting{Benchmark: "numbers", Data: "d", Policy: "p", Repeats: 2}, Benchmark: numbers{6}, Policy: p, File: file}
	}
	if _, err := Run(t.Context(), job(&echo{limit: 3, stop: 5})); !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil || strings.Count(string(raw), "\n") != 6 {
		t.Fatalf("%v, %s", err, raw)
	}
	if err := os.WriteFile(file, raw[:len(raw)-3], 0o644); err != nil { // killed while it wrote
		t.Fatal(err)
	}
	p := &echo{limit: 3, stop: 100}
	r, err := Run(t.Context(), job(p))
	if err != nil {
		t.Fatal(err)
	}
	if p.asked.Load() != 8 { // 12 answers, of which 4 are whole
		t.Errorf("%d were asked", p.asked.Load())
	}
	if m := r.Metrics[0]; m.Name != "accuracy" || m.Value != 0.5 || m.StdErr != 0 || len(m.Repeated) != 2 || r.Answers != 12 || r.Tokens != 12 {
		t.Errorf("%+v", r)
	}
	other := job(p)
	other.Setting.Policy = "q"
	if _, err := Run(t.Context(), other); !errors.Is(err, ErrOther) {
		t.Errorf("other settings: %v", err)
	}
	setting, records, err := Read(file)
	if err != nil || setting.Benchmark != "numbers" || len(records) != 12 {
		t.Errorf("%+v, %d records, %v", setting, len(records), err)
	}
}

func TestADamagedLineIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.jsonl")
	job := Job{Setting: Setting{Benchmark: "numbers"}, Benchmark: numbers{2}, Policy: &echo{limit: 9, stop: 9}, File: file}
	if _, err := Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(raw), "\n")
	lines[1] = "{\n"
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), job); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

// McNemar's exact test for 10 and 2 changes: 2·(1 + 12 + 66)/2^12 = 158/4096.
func TestMcNemarExact(t *testing.T) {
	if p := mcNemar(10, 2); math.Abs(p-158.0/4096) > 1e-12 {
		t.Errorf("%v", p)
	}
	if p := mcNemar(3, 3); p != 1 {
		t.Errorf("%v", p)
	}
	if p := mcNemar(0, 0); p != 1 {
		t.Errorf("%v", p)
	}
}

// Two policies on the same ten questions: by hand, five changes to the better and none to the worse, p = 2/2^5.
func TestCompare(t *testing.T) {
	records := func(right string) []Record {
		var out []Record
		for i, c := range right {
			out = append(out, Record{Key: fmt.Sprint(i), Verdict: Verdict{Values: map[string]float64{"right": yes(c == '1')}}})
		}
		return out
	}
	c, err := Compare(numbers{10}, records("1110000000"), records("1111111100"))
	if err != nil {
		t.Fatal(err)
	}
	m := c.Metrics[0]
	if c.Test != "mcnemar" || math.Abs(c.P-2.0/32) > 1e-12 || c.Better != 5 || c.Worse != 0 || m.First != 0.3 || m.Second != 0.8 {
		t.Errorf("%+v", c)
	}
	// The difference is a mean of ten draws of 0 or 1 with probability 1/2: its 95 % interval is 0.2 to 0.8.
	if math.Abs(m.Low-0.2) > 0.051 || math.Abs(m.High-0.8) > 0.051 {
		t.Errorf("interval %v to %v", m.Low, m.High)
	}
}

func TestPercentilesAreNumpys(t *testing.T) { // numpy.percentile([1,2,3,4], [2.5, 97.5]) = [1.075, 3.925]
	low, high := interval([]float64{4, 2, 1, 3})
	if !slices.Equal([]float64{math.Round(low*1e6) / 1e6, math.Round(high*1e6) / 1e6}, []float64{1.075, 3.925}) {
		t.Errorf("%v, %v", low, high)
	}
}
