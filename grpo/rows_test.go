package grpo

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	rows := make([]Row, 5)
	for i := range rows {
		rows[i].Completion = &Completion{Tokens: make([]int32, i)}
	}
	micro, err := Split(rows, 3, []int{4, 0, 3, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]int
	for _, m := range micro {
		var lengths []int
		for _, r := range m {
			lengths = append(lengths, len(r.Completion.Tokens))
		}
		got = append(got, lengths)
	}
	if len(got) != 3 || !slices.Equal(got[0], []int{4}) || !slices.Equal(got[1], []int{0, 3}) || !slices.Equal(got[2], []int{1, 2}) {
		t.Error(got)
	}
	for _, perm := range [][]int{{0, 1, 2, 3}, {0, 1, 2, 3, 3}, {0, 1, 2, 3, 5}, {0, 1, 2, 3, -1}} {
		if _, err := Split(rows, 2, perm); err == nil {
			t.Errorf("%v is taken for a permutation of 5", perm)
		}
	}
	if _, err := Split(rows, 0, []int{0, 1, 2, 3, 4}); err == nil {
		t.Error("0 micro-batches")
	}
}

// A batch of two rows: the second is an episode of two turns with an observation between them.
func TestPack(t *testing.T) {
	a := &Completion{Tokens: []int32{1, 2}, LogP: []float32{-1, -2}, Ref: []float32{-3, -4}, Advantage: 0.5}
	b := &Completion{Tokens: []int32{3, 4, 5, 6}, LogP: []float32{-5, -6, -7, -8}, Ref: []float32{-9, -9, -9, -9},
		Mask: []bool{true, true, false, true}, Advantage: -1, Turns: []float64{2, 3}}
	rows := Rows(Default(), []Group{{Completions: []*Completion{a, b}}})
	in, err := Pack(rows, true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(in.Rows, []int{2, 4}) || !slices.Equal(in.Mask, []bool{true, true, true, true, false, true}) ||
		!slices.Equal(in.Advantages, []float64{0.5, -1}) || !slices.Equal(in.TokenAdvantages, []float64{0.5, 0.5, 2, 2, 0, 3}) ||
		in.Old != nil || !slices.Equal(in.Ref, []float32{-3, -4, -9, -9, -9, -9}) || !slices.Equal(in.Sampling, []float32{-1, -2, -5, -6, -7, -8}) {
		t.Errorf("%+v", in)
	}
	if NumItems(rows) != 5 {
		t.Errorf("%d loss tokens", NumItems(rows))
	}
	if in, err = Pack(rows[:1], false); err != nil || in.TokenAdvantages != nil || in.Sampling != nil {
		t.Errorf("%+v, %v", in, err)
	}
	for want, spoil := range map[string]func(c *Completion){
		"1 turn advantages for 2 turns":              func(c *Completion) { c.Turns = c.Turns[:1] },
		"1 rows have old log-probabilities and 1":    func(c *Completion) { c.Old = c.LogP },
		"as many reference log-probabilities":        func(c *Completion) { c.Ref = c.Ref[:3] },
		"row 1 has 4 tokens and a mask of 2":         func(c *Completion) { c.Mask = c.Mask[:2] },
		"1 rows have sampling log-probabilities and": func(c *Completion) { c.LogP = nil },
	} {
		bad := *b
		spoil(&bad)
		if _, err := Pack(Rows(Default(), []Group{{Completions: []*Completion{a, &bad}}}), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestMetricsMerge(t *testing.T) {
	m := Metrics{"mean": {Mean, 6, 2}, "min": {Min, 2, 1}, "max": {Rule: Max}}
	m.Merge(Metrics{"mean": {Mean, 0, 1}, "min": {Min, 1, 4}, "max": {Max, -5, 1}, "new": {Mean, 1, 1}})
	v := m.Values()
	if v["mean"] != 2 || v["min"] != 1 || v["max"] != -5 || v["new"] != 1 {
		t.Error(v)
	}
	empty := Metrics{"mean": {}, "min": {Rule: Min}}.Values()
	if empty["mean"] != 0 || !math.IsNaN(empty["min"]) {
		t.Error(empty)
	}
}

// NaN and infinities do not spoil a window, every value counts once, and a saved window goes on to the same bits.
func TestWindow(t *testing.T) {
	var w Window
	w.Add(map[string]float64{"a": 0.1, "b": nan})
	w.Add(map[string]float64{"a": nan, "b": math.Inf(1)})
	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	var restored Window
	if err := json.Unmarshal(data, &restored); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*Window{&w, &restored} {
		x.Add(map[string]float64{"a": 0.2, "c": 7})
	}
	got, again := w.Flush(), restored.Flush()
	if math.Abs(got["a"]-0.15) > 1e-15 || !math.IsNaN(got["b"]) || got["c"] != 7 || again["a"] != got["a"] {
		t.Error(got, again)
	}
	if len(w.Flush()) != 0 {
		t.Error("a flushed window is not empty")
	}
}

// The controller's rule over three steps, by hand, and its state across a restart.
func TestEntropyControl(t *testing.T) {
	cfg := with(func(c *Config) {
		c.UseAdaptiveEntropy, c.EntropyCoef, c.EntropyTarget, c.EntropyCoefDelta, c.EntropyCoefMax = true, 0.25, 1, 0.25, 0.5
	})
	c := NewEntropyControl(cfg)
	step := func(wantBefore float64, sum, count, wantAfter float64) {
		t.Helper()
		if got := c.Coef(); got != wantBefore {
			t.Errorf("coefficient %v, want %v", got, wantBefore)
		}
		c.Add(Result{EntropySum: sum / 4, EntropyCount: count / 2})
		c.Add(Result{EntropySum: 3 * sum / 4, EntropyCount: count / 2})
		c.Step(c.Window())
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		c = NewEntropyControl(cfg)
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		if got := c.Metrics().Values()["entropy_coef"]; got != wantAfter {
			t.Errorf("coefficient after the step %v, want %v", got, wantAfter)
		}
	}
	step(0, 8, 8, 0.5)     // nothing measured yet: no bonus; at the target: raised
	step(0.5, 2, 8, 0.5)   // below: raised, but for the maximum
	step(0.5, 16, 8, 0.25) // above: lowered
	step(0, 16, 8, 0)      // and resting
	step(0, 16, 8, 0)

	fixed := NewEntropyControl(with(func(c *Config) { c.EntropyCoef = 0.1 }))
	fixed.Step(100, 1)
	none := NewEntropyControl(Default())
	if fixed.Coef() != 0.1 || len(none.Metrics()) != 0 {
		t.Error("a fixed coefficient moves, or is logged without a bonus")
	}
	if err := json.Unmarshal([]byte("[]"), &fixed); err == nil {
		t.Error("a wrong state is taken")
	}
}
