package rare

import (
	"math"
	"testing"
)

// By hand: the sets of three letters, how many are shared, and how many there are in all.
func TestSimilarity(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"abcd", "abce", 1.0 / 3},  // abc bcd | abc bce
		{"abcd", "abcde", 2.0 / 3}, // abc bcd | abc bcd cde
		{"Abc, d!", "abc  D", 1},   // abc, "bc ", "c d" in both
		{"a b", "ab", 0},           // "a b" | "ab"
		{"ab", "AB.", 1},           // shorter than three
		{"漫画の線", "漫画の色", 1.0 / 3},  // 漫画の 画の線 | 漫画の 画の色
		{"", "", 0}, {"...", "!", 0}, {"abc", "xyz", 0},
	} {
		if got := similarity(c.a, c.b); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%q and %q: %v, want %v", c.a, c.b, got, c.want)
		}
		if similarity(c.a, c.b) != similarity(c.b, c.a) {
			t.Errorf("%q and %q differ by their order", c.a, c.b)
		}
	}
}
