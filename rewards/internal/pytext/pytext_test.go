package pytext

import (
	"fmt"
	"slices"
	"testing"
)

// The expected values of this file were printed by Python 3.11.

func TestLower(t *testing.T) {
	for in, want := range map[string]string{
		"ÀB":     "àb",
		"İ":      "i\u0307",
		"ΟΔΟΣ":   "οδος",
		"ΟΔΟΣ.Α": "οδοσ.α",
		"ΑΣ'":    "ας'",
		"Σ":      "σ",
		"ΑΣ Β":   "ας β",
		"ⅣǅẞΩ":   "ⅳǆßω",
	} {
		if got := Lower(in); got != want {
			t.Errorf("Lower(%q) = %q, Python has %q", in, got, want)
		}
	}
}

func TestStripAndFields(t *testing.T) {
	if got := Strip("\x1c\u00a0\u3000a b\u0085\x1f\u2029"); got != "a b" {
		t.Errorf("Strip = %q", got)
	}
	if got := Strip("\u200ba\ufeff"); got != "\u200ba\ufeff" {
		t.Errorf("zero-width characters are not white space: %q", got)
	}
	if got := fmt.Sprintf("%q", Fields(" a\x1db\u2003c ")); got != `["a" "b" "c"]` {
		t.Errorf("Fields = %s", got)
	}
}

func TestCompile(t *testing.T) {
	for _, c := range []struct {
		pattern, flags, text string
		want                 []string // re.findall
	}{
		{`\w+`, "", "naïve cafe\u0301 ½x_1 हिन्दी", []string{"naïve", "cafe", "½x_1", "ह", "न", "द"}},
		{`\d+`, "", "٣4 ½ ²", []string{"٣4"}},
		{`a\sb`, "", "a\x1cb a\u00a0b a\u200bb", []string{"a\x1cb", "a\u00a0b"}},
		{`[\w-]+`, "", "é-b c", []string{"é-b", "c"}},
		{`\W`, "", "é,", []string{","}},
		{"size", "i", "sıze SİZE ſize SIZE", []string{"sıze", "SİZE", "ſize", "SIZE"}},
		{"k", "i", "K\u212a", []string{"K", "\u212a"}},
		{"ß", "i", "ẞ", []string{"ẞ"}},
		{"\u0390", "i", "\u1fd3", []string{"\u1fd3"}},
		{"a$", "", "ab\n", nil},
		{"b$", "", "ab\n", []string{"b\n"}}, // Python leaves the newline out of the match
		{"^b.*$", "m", "a\nb1\nb2", []string{"b1", "b2"}},
	} {
		re, err := Compile(c.pattern, c.flags)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := re.FindAllString(c.text, -1); !slices.Equal(got, c.want) {
			t.Errorf("findall(%q, %q, %q) = %+q, Python has %+q", c.pattern, c.text, c.flags, got, c.want)
		}
	}
	for _, bad := range []string{`\bword\b`, `(a)\1`, `(?=a)`, `C++`, `a\`, `[\W]`, "("} {
		if _, err := Compile(bad, ""); err == nil {
			t.Errorf("pattern %q must be an error", bad)
		}
	}
}

func TestCase(t *testing.T) {
	for in, want := range map[string][2]bool{ // isupper, islower
		"": {}, "1!": {}, "A1": {true, false}, "a1": {false, true}, "aA": {}, "ǅ": {}, "Aǅ": {}, "Ⓐ": {true, false},
		"ⓐ": {false, true}, "ª": {false, true}, "Aª": {}, "Ⅳ": {true, false}, "ß": {false, true}, "中": {}, "中A": {true, false},
	} {
		if got := [2]bool{IsUpper(in), IsLower(in)}; got != want {
			t.Errorf("isupper, islower of %q = %v, Python has %v", in, got, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for in, want := range map[string]bool{"": false, "12": true, "٣²①": true, "½": false, "Ⅳ": false, "一": false, "1a": false} {
		if got := IsDigit(in); got != want {
			t.Errorf("IsDigit(%q) = %v, Python has %v", in, got, want)
		}
	}
	for in, want := range map[string]int{"0190": 190, "١٨٠٤": 1804, "𝟗𝟘": 90, "९": 9} {
		if got := Int(in); got != want {
			t.Errorf("Int(%q) = %d, Python has %d", in, got, want)
		}
	}
}

func TestUnpunctuated(t *testing.T) {
	if got := Unpunctuated(`a-b_c "d" ‘e’ —¿$`); got != "abc d ‘e’ —¿" {
		t.Errorf("Unpunctuated = %q", got)
	}
}
