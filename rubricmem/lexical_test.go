package rubricmem

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func lexicalOf(t testing.TB, texts ...string) [][]float32 {
	t.Helper()
	list, err := Lexical().Embed(t.Context(), texts)
	must(t, err)
	return list
}

// The features' FNV-1a hashes were computed by another program: no 08b35907b5589afa, #<no b574487c7c3edd59,
// #no> 5944177dfb1440cd, #<no> 937492871ed23605. Their last nine bits are the places, their first bit the sign.
func TestLexicalByHand(t *testing.T) {
	length := math.Sqrt(2*2 + 1 + 1 + 1)
	for _, text := range []string{"No,", "no NO"} { // twice as often changes all alike
		want := map[int]float64{250: 2 / length, 345: -1 / length, 205: 1 / length, 5: -1 / length}
		for i, got := range lexicalOf(t, text)[0] {
			if math.Abs(float64(got)-want[i]) > 1e-7 {
				t.Errorf("%q, number %d: %v, want %v", text, i, got, want[i])
			}
		}
	}
	// "no no a": no counts 1 + ln 2, "a" (140 and 349, both subtracted) once.
	twice := 1 + math.Ln2
	length = math.Sqrt(7*twice*twice + 4 + 1)
	got := lexicalOf(t, "no no a")[0]
	for i, want := range map[int]float64{250: 2 * twice, 345: -twice, 140: -2, 349: -1} {
		if math.Abs(float64(got[i])-want/length) > 1e-7 {
			t.Errorf("number %d: %v, want %v", i, got[i], want/length)
		}
	}
}

// Texts that share words, or parts of words, are more similar than others.
func TestLexicalSimilarity(t *testing.T) {
	texts := []string{
		"The policy repeats the rubric's words to gain length",
		"Rubric words are being repeated for length", "Citations of papers that nobody wrote",
	}
	v := lexicalOf(t, texts...)
	dot := func(a, b []float32) (sum float32) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	if near, far := dot(v[0], v[1]), dot(v[0], v[2]); near < far+0.2 {
		t.Errorf("%v for the near text, %v for the far one", near, far)
	}
}

// No text with a visible character has the zero vector, and a text's vector does not depend on others.
func TestLexicalIsNeverZero(t *testing.T) {
	texts := []string{"a", "!?", "…", "東京", "\xff", "_", strings.Repeat("x", 5000), "0"}
	for i, v := range lexicalOf(t, texts...) {
		if n, err := length(v); err != nil || math.Abs(n-1) > 1e-6 {
			t.Errorf("%q: length %v, %v", texts[i], n, err)
		}
		if !slices.Equal(v, lexicalOf(t, texts[i])[0]) {
			t.Errorf("%q has another vector alone", texts[i])
		}
	}
}

func FuzzLexical(f *testing.F) {
	f.Add("Reward hacking: \"quoted\" text, 12.5 %")
	f.Fuzz(func(t *testing.T, text string) {
		v := lexicalOf(t, text)[0]
		if _, err := length(v); (err != nil) != (strings.TrimSpace(text) == "") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
