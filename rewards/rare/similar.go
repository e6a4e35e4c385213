package rare

import (
	"strings"
	"unicode"
)

// gram is the length of the pieces that two texts are compared by.
const gram = 3

// similarity is the Jaccard similarity of two texts' sets of runs of three letters, without case, punctuation and layout:
// 1 if these are equal, 0 if they share none. It needs no word boundaries, so that it serves any script. Texts without a letter
// or digit are like nothing.
func similarity(a, b string) float64 {
	x, y := grams(a), grams(b)
	shared := 0
	for g := range x {
		if y[g] {
			shared++
		}
	}
	if shared == 0 {
		return 0
	}
	return float64(shared) / float64(len(x)+len(y)-shared)
}

// grams is the set of a text's runs of three letters or digits; the gaps between words count as one space. A shorter
// text is one run.
func grams(text string) map[string]bool {
	letters := []rune(strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N)
	}), " "))
	set := map[string]bool{}
	if 0 < len(letters) && len(letters) < gram {
		set[string(letters)] = true
	}
	for i := range len(letters) - gram + 1 {
		set[string(letters[i:i+gram])] = true
	}
	return set
}
