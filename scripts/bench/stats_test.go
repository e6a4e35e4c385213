package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.x); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.x, got, c.want)
		}
	}
}

func TestGain(t *testing.T) {
	for _, c := range []struct {
		metric string
		ours   float64
		peers  []float64
		want   float64
	}{
		{"seconds", 2, []float64{10}, 5},
		{"seconds", 2, []float64{10, 3}, 1.5}, // the faster peer counts
		{"tok_s", 90, []float64{20, 30}, 3},
		{"peak_mib", 500, []float64{2000}, 4},
	} {
		if got := gain(c.metric, c.ours, c.peers); got != c.want {
			t.Errorf("gain(%s, %v, %v) = %v, want %v", c.metric, c.ours, c.peers, got, c.want)
		}
	}
}

func TestClean(t *testing.T) {
	of := func(v, foreign float64) sample { return sample{Values: values{"seconds": v}, Foreign: foreign} }
	for _, c := range []struct {
		name    string
		samples []sample
		want    []float64
		ok      bool
	}{
		{"disturbed ones do not count", []sample{of(1, 0.02), of(9, 0.5), of(2, 0.1)}, []float64{1, 2}, true},
		{"all count if all are disturbed", []sample{of(8, 0.4), of(9, 0.5)}, []float64{8, 9}, false},
	} {
		got, ok := clean(c.samples, "seconds", 0.1)
		if !slices.Equal(got, c.want) || ok != c.ok {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestLosses(t *testing.T) {
	was := map[string]float64{"kept": 4, "hardly lost": 4, "lost": 4, "gone": 1, "not a number": 1, "other case": 1}
	now := map[string]float64{"kept": 4.2, "hardly lost": 3.84, "lost": 3.76, "not a number": math.NaN(), "new": 1}
	got := losses(was, now, func(name string) bool { return name != "other case" })
	want := []string{"gone: 1 before, not measured now", "lost: 4 before, 3.76 now (-6 %)", "not a number: 1 before, NaN now (+NaN %)"}
	if !slices.Equal(got, want) {
		t.Errorf("lost %q, want %q", got, want)
	}
}

func TestDistances(t *testing.T) {
	rms, most := distance([]float64{1, 5}, []float64{1, 2})
	if math.Abs(rms-3/math.Sqrt2) > 1e-15 || most != 3 {
		t.Errorf("distance %v, %v", rms, most)
	}
	err, gap := relative([]float64{3, 1}, []float64{3, 0}) // a right triangle
	if math.Abs(err-1./3) > 1e-15 || math.Abs(gap-(1-3/math.Sqrt(10))) > 1e-15 {
		t.Errorf("relative %v, %v", err, gap)
	}
}

func TestParseBusy(t *testing.T) {
	got, err := parseBusy("cpu  100 20 30 9000 500 4 6 40 0 0")
	if err != nil || got != 2 { // user, nice, system, irq, softirq, steal
		t.Errorf("%v, %v; want 2 seconds", got, err)
	}
	if _, err := parseBusy("intr 1 2 3"); err == nil {
		t.Error("took another line")
	}
}

func TestBaselineOfAnotherMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	b, err := json.Marshal(baseline{Machine: machine{CPU: "one", Threads: 2}, Ratios: map[string]float64{"a": 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		here machine
		ok   bool
	}{{machine{CPU: "one", Threads: 2}, true}, {machine{CPU: "two", Threads: 2}, false}, {machine{CPU: "one", Threads: 4}, false}} {
		if _, err := readBaseline(path, c.here); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.here, err)
		}
	}
}

// TestClaims catches a claim about a subject that its case does not have, which would never be measured.
func TestClaims(t *testing.T) {
	p := places{gguf: func(kind string) string { return kind }}
	for _, c := range cases(p, 2) {
		for _, l := range c.Claims {
			for _, name := range append([]string{l.Ours}, l.Peers...) {
				if !slices.ContainsFunc(c.Subjects, func(s subject) bool { return s.Name == name }) {
					t.Errorf("%s has no %s", c.Name, name)
				}
			}
		}
		labels := map[string]bool{}
		for _, at := range c.Points {
			labels[label(c, at)] = true
		}
		if len(labels) != len(c.Points) {
			t.Errorf("%s: %d points have %d names", c.Name, len(c.Points), len(labels))
		}
	}
}
