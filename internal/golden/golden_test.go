package golden

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// recorder is a test that remembers what failed.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper()                        {}
func (r *recorder) Errorf(format string, a ...any) { r.failed = fmt.Sprintf(format, a...) }

func TestClose(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		got, want []float32
		tol       float64
		fails     string // part of the message, "" if it must pass
	}{
		{[]float32{1, 2}, []float32{1, 2.5}, 0.5, ""},
		{[]float32{1, 2, 9}, []float32{1, 2.5, 9}, 0.4, "0.5 at 1 of 3"},
		{[]float32{nan}, []float32{0}, 1e9, "NaN"},
		{[]float32{0}, []float32{nan}, 1e9, "NaN"},
		{[]float32{inf}, []float32{inf}, 0, ""},
		{[]float32{inf}, []float32{-inf}, 1e9, "Inf"},
		{[]float32{1}, []float32{1, 2}, 1, "1 values, want 2"},
		{nil, nil, 0, ""},
	} {
		r := &recorder{TB: t}
		Close(r, "x", c.got, c.want, c.tol)
		if (r.failed == "") != (c.fails == "") || !strings.Contains(r.failed, c.fails) {
			t.Errorf("Close(%v, %v, %v) reports %q, want %q", c.got, c.want, c.tol, r.failed, c.fails)
		}
	}
}

func TestTensors(t *testing.T) {
	all := Tensors(t, Path("models", "qwen2-bf16", "model.safetensors"))
	w := all["model.layers.2.self_attn.k_proj.weight"]
	if len(all) != 38 || !slices.Equal(w.Shape, []int{32, 64}) || len(w.Float) != 32*64 || w.Int != nil {
		t.Errorf("%d tensors, k_proj %v with %d values", len(all), w.Shape, len(w.Float))
	}
}
