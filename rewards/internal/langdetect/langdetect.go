// Package langdetect tells the language of a text as Python's langdetect 1.0.9 does: a naive Bayes classifier over
// character n-grams of 55 profiles (N. Shuyo, Language detection library for Java, 2010). That library draws n-grams at
// random; here the draws are those of Python's generator with one fixed seed, so that a text has one answer, and where
// the library's answer doesn't depend on its seed it is the same.
package langdetect

import (
	"slices"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// The constants of the method.
const (
	trials     = 7
	alpha      = 0.5  // smoothing, drawn around this
	alphaWidth = 0.05 // with this standard deviation
	baseFreq   = 10000
	converged  = 0.99999
	maxDraws   = 1000
	threshold  = 0.1 // least probability of an answer
	seed       = 0
)

// Unknown is the answer for a text none of whose languages is probable.
const Unknown = "unknown"

// Detect returns the code of text's language, such as en or zh-cn, or Unknown. It is not ok if text has nothing that
// tells a language. It is safe for concurrent use.
func Detect(text string) (language string, ok bool) {
	m := model()
	grams := m.grams(prepare(text))
	if len(grams) == 0 {
		return "", false
	}
	total := make([]float64, len(m.languages))
	draw := newRandom(seed)
	for range trials {
		for i, p := range m.trial(grams, draw) {
			total[i] += p / trials
		}
	}
	best := 0
	for i, p := range total {
		if p > total[best] {
			best = i
		}
	}
	if total[best] <= threshold {
		return Unknown, true
	}
	return m.languages[best], true
}

// Languages lists the codes that Detect can answer.
func Languages() []string { return slices.Clone(model().languages) }

// trial draws n-grams until one language is all but certain and returns the probability of each.
func (m *profiles) trial(grams []int, draw *random) []float64 {
	n := len(m.languages)
	p := slices.Repeat([]float64{1 / float64(n)}, n)
	weight := (alpha + draw.gauss()*alphaWidth) / baseFreq
	for i := 0; ; i++ {
		seen := m.frequency[grams[draw.below(len(grams))]]
		for l := range p {
			if len(seen) > 0 && seen[0].language == l {
				p[l] *= weight + seen[0].value
				seen = seen[1:]
			} else {
				p[l] *= weight
			}
		}
		if i%5 == 0 && (normalize(p) > converged || i >= maxDraws) {
			return p
		}
	}
}

// normalize makes p sum to 1 and returns its maximum.
func normalize(p []float64) float64 {
	sum := 0.0
	for _, v := range p {
		sum += v
	}
	for i := range p {
		p[i] /= sum
	}
	return slices.Max(p)
}

// grams lists the 1-, 2- and 3-grams of text that are in the profiles, those of words in capitals left out.
func (m *profiles) grams(text []rune) []int {
	var found []int
	window := []rune{' '} // the last characters, at most three, from the last word's start on
	capitals := false
	for _, r := range text {
		r = m.fold(r)
		last := window[len(window)-1]
		if last == ' ' {
			window = []rune{' '}
			capitals = false
			if r == ' ' {
				continue
			}
		} else if len(window) == 3 {
			window = window[1:]
		}
		window = append(window, r)
		upper := pytext.IsUpper(string(r))
		capitals = upper && (capitals || pytext.IsUpper(string(last)))
		if capitals {
			continue
		}
		for n := 1; n <= len(window); n++ {
			if gram := string(window[len(window)-n:]); gram != " " {
				if i, ok := m.index[gram]; ok {
					found = append(found, i)
				}
			}
		}
	}
	return found
}
