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
	lines := linesOf(t, file)
	var answers []string // as they are before they are scored, the fifth torn off: killed while it wrote
	for _, l := range lines[1:] {
		if strings.Contains(l, notScored) {
			answers = append(answers, l)
		}
	}
	if len(lines) != 11 || len(answers) != 5 {
		t.Fatalf("%d lines, %d of them answers before they were scored", len(lines), len(answers))
	}
	killed := lines[0] + strings.Join(answers, "")
	if err := os.WriteFile(file, []byte(killed[:len(killed)-3]), 0o644); err != nil {
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
	if err != nil || setting.Benchmark != "numbers" || len(records) != 12 || len(linesOf(t, file)) != 13 {
		t.Errorf("%+v, %d records, %v", setting, len(records), err)
	}
	for i, r := range records {
		if r.Key != fmt.Sprint(i%6) || r.Repeat != i/6 || r.Verdict.Unscorable != "" {
			t.Errorf("record %d is %+v", i, r)
		}
	}
}

func linesOf(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(raw)))
}

// mortal is a benchmark whose judge dies after it has scored so many answers.
type mortal struct {
	numbers
	left *atomic.Int32
}

func (b mortal) Prompt() string { return "mortal-1" }

func (b mortal) Score(ctx context.Context, it *Item, answer string) (Verdict, error) {
	if b.left.Add(-1) < 0 {
		return Verdict{}, errStopped
	}
	return b.numbers.Score(ctx, it, answer)
}

// A judge that dies loses no answer: all are generated and kept, and afterwards only verdicts are made.
func TestADeadJudgeLosesNoAnswer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.jsonl")
	left := &atomic.Int32{}
	left.Store(2)
	told := 0
	p := &echo{limit: 9, stop: 100}
	job := Job{Setting: Setting{Benchmark: "numbers"}, Benchmark: mortal{numbers{6}, left}, Policy: p, File: file, Notify: func(string) { told++ }}
	if _, err := Run(t.Context(), job); !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	_, records, err := Read(file)
	if err != nil || len(records) != 6 || p.asked.Load() != 6 || told != 1 {
		t.Fatalf("%d records, %d asked, told %d times, %v", len(records), p.asked.Load(), told, err)
	}
	if r, err := Collect(job.Benchmark, job.Setting, filepath.Dir(file)); err != nil || len(r) != 0 {
		t.Errorf("an incomplete measurement is summed up: %v, %v", r, err)
	}
	left.Store(100)
	r, err := Run(t.Context(), job)
	if err != nil || p.asked.Load() != 6 || r.Metrics[0].Value != 1 || 100-left.Load() > 4 {
		t.Errorf("%+v, %v: %d asked, %d scored anew", r, err, p.asked.Load(), 100-left.Load())
	}
}

// brief is a benchmark whose answers of one letter do not count.
type brief struct{ numbers }

func (b brief) Again(answer string) bool { return len(answer) < 2 }

// growing answers with one letter more at each try.
type growing struct{ tries []int }

func (p *growing) Answer(_ context.Context, asks []Ask, _ Sampling, deliver func(int, Answer) error) error {
	for i, a := range asks {
		p.tries = append(p.tries, a.Try)
		if err := deliver(i, Answer{Text: strings.Repeat("x", a.Try+1)}); err != nil {
			return err
		}
	}
	return nil
}

// An answer that does not count is asked again with other random numbers, unless they change nothing.
func TestTooShortAnswersAreAskedAgain(t *testing.T) {
	for temperature, want := range map[float64][]int{0.7: {0, 0, 1, 1}, 0: {0, 0}} {
		p := &growing{}
		job := Job{Setting: Setting{Benchmark: "b", Generation: Sampling{Temperature: temperature}}, Benchmark: brief{numbers{2}}, Policy: p, File: filepath.Join(t.TempDir(), "a.jsonl")}
		if _, err := Run(t.Context(), job); err != nil || !slices.Equal(p.tries, want) {
			t.Errorf("temperature %v: tries %v, %v", temperature, p.tries, err)
		}
	}
}

func TestADamagedLineIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.jsonl")
	job := Job{Setting: Setting{Benchmark: "numbers"}, Benchmark: numbers{2}, Policy: &echo{limit: 9, stop: 9}, File: file}
	if _, err := Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	lines := linesOf(t, file)
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

// scipy.stats.wilcoxon's values: Darwin's plants (exact), and 80 differences without and with ties (method "approx"). Of 1, 1, 1, -1, 2 and 0, by hand,
// the zero is left out and the ranks are four times 2.5, and 5: the smaller sum is 2.5 or less for 2·(1 + 4) of 32 signs.
func TestWilcoxon(t *testing.T) {
	many := func(modulus, less, over int) (d []float64) {
		for i := range 80 {
			d = append(d, float64((i+1)*37%modulus-less)/float64(over))
		}
		return d
	}
	for _, c := range []struct {
		d    []float64
		want float64
	}{
		{[]float64{6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75}, 0.041259765625},
		{[]float64{1, 1, 1, -1, 2, 0}, 10.0 / 32},
		{many(101, 45, 10), 0.11443133917365832},
		{many(11, 4, 4), 0.008635825274709808},
		{[]float64{0, 0}, 1},
	} {
		if p := wilcoxon(c.d); math.Abs(p-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.d, p, c.want)
		}
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
