package track

import (
	"math"
	"strings"
)

// Series are the values of a metric over the run; lines without it, or where it is NaN, are left out.
func Series(records []Record, name string) []float64 {
	var out []float64
	for _, r := range records {
		if v, ok := r.Values[name]; ok && !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// Shorten averages neighbours until at most n values are left.
func Shorten(v []float64, n int) []float64 {
	if len(v) <= n {
		return v
	}
	out := make([]float64, n)
	for i := range out {
		from, to := i*len(v)/n, (i+1)*len(v)/n
		for _, x := range v[from:to] {
			out[i] += x / float64(to-from)
		}
	}
	return out
}

// Sparkline draws values as one line of block characters from their minimum to their maximum.
func Sparkline(values []float64) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		lo, hi = min(lo, v), max(hi, v)
	}
	blocks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		i := 0
		if hi > lo {
			i = int((v - lo) / (hi - lo) * float64(len(blocks)-1))
		}
		b.WriteRune(blocks[i])
	}
	return b.String()
}
