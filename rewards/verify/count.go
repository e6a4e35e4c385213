package verify

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
)

// count gives full credit if a number of units lies in a range: lengths in characters, words or tokens, numbers of
// sentences, items or anything a pattern finds.
type count struct {
	Unit    string    `json:"unit"`    // chars, words, sentences, lines, paragraphs, matches (of pattern), or tokens
	Pattern string    `json:"pattern"` // for matches: a regular expression in RE2 syntax
	Among   []string  `json:"among"`   // for words: only those of this list count, case apart
	Exactly *int      `json:"exactly"`
	Min     *int      `json:"min"`
	Max     *int      `json:"max"`
	Partial []float64 `json:"partial"` // credit if off by 1, by 2, ...; 0 beyond the list
	HalfAt  float64   `json:"half_at"` // instead of partial: credit 1/(1+off/half_at), which never stops falling
}

func (k *count) compile(*grpo.Prompt) (Check, error) {
	low, high, err := k.bounds()
	if err != nil {
		return nil, err
	}
	measure, err := k.measure()
	if err != nil {
		return nil, err
	}
	return func(c *grpo.Completion) (float64, string) {
		n := measure(c)
		return k.credit(max(low-n, n-high)), fmt.Sprintf("%d %s", n, k.Unit)
	}, nil
}

// bounds is the range of full credit.
func (k *count) bounds() (low, high int, err error) {
	low, high = 0, math.MaxInt
	switch {
	case k.Exactly != nil && (k.Min != nil || k.Max != nil):
		return 0, 0, errors.New("exactly and min or max are set: use one of the two")
	case k.Exactly != nil:
		low, high = *k.Exactly, *k.Exactly
	case k.Min == nil && k.Max == nil:
		return 0, 0, errors.New("no number is asked for: set exactly, min or max")
	}
	if k.Min != nil {
		low = *k.Min
	}
	if k.Max != nil {
		high = *k.Max
	}
	if low < 0 || high < low {
		return 0, 0, fmt.Errorf("the range %d to %d is empty", low, high)
	}
	if len(k.Partial) > 0 && k.HalfAt != 0 {
		return 0, 0, errors.New("partial and half_at are set: use one of the two")
	}
	if k.HalfAt < 0 || slices.ContainsFunc(k.Partial, func(c float64) bool { return c < 0 || c > 1 }) {
		return 0, 0, errors.New("half_at must be above 0, every credit of partial between 0 and 1")
	}
	return low, high, nil
}

// credit is what being off by so many units is worth.
func (k *count) credit(off int) float64 {
	switch {
	case off <= 0:
		return 1
	case off <= len(k.Partial):
		return k.Partial[off-1]
	case k.HalfAt > 0:
		return 1 / (1 + float64(off)/k.HalfAt)
	}
	return 0
}

// measure counts the units of a completion.
func (k *count) measure() (func(*grpo.Completion) int, error) {
	if k.Pattern != "" && k.Unit != "matches" {
		return nil, errors.New("pattern goes with unit: matches")
	}
	switch k.Unit {
	case "tokens":
		return (*grpo.Completion).Own, nil
	case "matches":
		re, err := compileRegexp(k.Pattern, k.Pattern)
		if err != nil {
			return nil, err
		}
		return func(c *grpo.Completion) int { return len(re.FindAllStringIndex(c.Text, -1)) }, nil
	case "chars":
		return func(c *grpo.Completion) int { return len([]rune(c.Text)) }, nil
	}
	split, err := splitter(k.Unit, k.Among)
	if err != nil {
		return nil, err
	}
	return func(c *grpo.Completion) int { return len(split(c.Text)) }, nil
}

// distinct gives full credit if no unit occurs twice, case apart, and there is at least one.
type distinct struct {
	Unit  string   `json:"unit"`  // words, sentences, lines or paragraphs
	Among []string `json:"among"` // for words: only those of this list
}

func (k *distinct) compile(*grpo.Prompt) (Check, error) {
	split, err := splitter(k.Unit, k.Among)
	if err != nil {
		return nil, err
	}
	return func(c *grpo.Completion) (float64, string) {
		seen := map[string]bool{}
		for _, u := range split(c.Text) {
			u = strings.ToLower(u)
			if seen[u] {
				return 0, fmt.Sprintf("%q is repeated", u)
			}
			seen[u] = true
		}
		return yes(len(seen) > 0), verdict(len(seen) > 0, "no repetition", "nothing there")
	}, nil
}

var (
	wordRun      = regexp.MustCompile(`[\p{L}\p{M}\p{N}_]+(?:['’][\p{L}\p{M}\p{N}_]+)*`)
	sentenceEnd  = regexp.MustCompile(`[.!?]+`)
	paragraphEnd = regexp.MustCompile(`\n\s*\n`)
)

// words are the runs of letters, marks, digits and underscores; an apostrophe inside does not end a word.
func words(text string) []string { return wordRun.FindAllString(text, -1) }

// splitter cuts a text into units. Sentences end at runs of . ! ?, paragraphs at blank lines; blank units do not count.
func splitter(unit string, among []string) (func(string) []string, error) {
	if len(among) > 0 && unit != "words" {
		return nil, errors.New("among goes with unit: words")
	}
	switch unit {
	case "words":
		if len(among) == 0 {
			return words, nil
		}
		list := map[string]bool{}
		for _, w := range among {
			list[strings.ToLower(w)] = true
		}
		return func(text string) []string {
			return slices.DeleteFunc(words(text), func(w string) bool { return !list[strings.ToLower(w)] })
		}, nil
	case "sentences":
		return func(text string) []string { return filled(sentenceEnd.Split(text, -1)) }, nil
	case "lines":
		return func(text string) []string { return filled(strings.Split(text, "\n")) }, nil
	case "paragraphs":
		return func(text string) []string { return filled(paragraphEnd.Split(text, -1)) }, nil
	}
	return nil, fmt.Errorf("unit %q cannot be used here: use words, sentences, lines or paragraphs; "+
		"the kind count also takes chars, tokens and matches", unit)
}

// filled trims the pieces and drops the blank ones.
func filled(pieces []string) []string {
	var out []string
	for _, p := range pieces {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}
