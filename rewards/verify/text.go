package verify

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/grpo"
)

// pattern is the kind regex: full credit if a regular expression (Go's RE2 syntax, flags inside as in (?i)) matches.
type pattern struct {
	Pattern string `json:"pattern"`
	Full    bool   `json:"full"`   // it must match the whole text
	Forbid  bool   `json:"forbid"` // full credit if it does not match
}

func (k *pattern) compile(*grpo.Prompt) (Check, error) {
	text := k.Pattern
	if k.Full {
		text = `\A(?:` + text + `)\z`
	}
	re, err := compileRegexp(text, k.Pattern)
	if err != nil {
		return nil, err
	}
	return func(c *grpo.Completion) (float64, string) {
		found := re.MatchString(c.Text)
		return yes(found != k.Forbid), verdict(found, "matches", "does not match")
	}, nil
}

// compileRegexp compiles text, in whose errors the user reads what was written.
func compileRegexp(text, written string) (*regexp.Regexp, error) {
	if written == "" {
		return nil, errors.New("pattern is empty: set a regular expression")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", written, err)
	}
	return re, nil
}

func verdict(ok bool, good, bad string) string {
	if ok {
		return good
	}
	return bad
}

// contains gives full credit if the text has all of some pieces, at least one of others, and none of a third list.
type contains struct {
	All        []string `json:"all"`
	Any        []string `json:"any"`
	None       []string `json:"none"`
	WholeWords bool     `json:"whole_words"` // a piece counts only where no letter or digit stands beside it
	MatchCase  bool     `json:"match_case"`
}

func (k *contains) compile(*grpo.Prompt) (Check, error) {
	if len(k.All)+len(k.Any)+len(k.None) == 0 {
		return nil, errors.New("nothing to look for: set all, any or none")
	}
	return func(c *grpo.Completion) (float64, string) {
		for _, p := range k.All {
			if !k.has(c.Text, p) {
				return 0, fmt.Sprintf("%q is missing", p)
			}
		}
		for _, p := range k.None {
			if k.has(c.Text, p) {
				return 0, fmt.Sprintf("has %q", p)
			}
		}
		for _, p := range k.Any {
			if k.has(c.Text, p) {
				return 1, fmt.Sprintf("has %q", p)
			}
		}
		return yes(len(k.Any) == 0), verdict(len(k.Any) == 0, "as asked", "has none of the pieces")
	}, nil
}

func (k *contains) has(text, piece string) bool {
	if !k.MatchCase {
		text, piece = strings.ToLower(text), strings.ToLower(piece)
	}
	if !k.WholeWords {
		return strings.Contains(text, piece)
	}
	for from := 0; piece != ""; {
		i := strings.Index(text[from:], piece)
		if i < 0 {
			return false
		}
		i += from
		after, _ := utf8.DecodeRuneInString(text[i+len(piece):])
		if !inWord(lastRune(text[:i])) && !inWord(after) {
			return true
		}
		_, width := utf8.DecodeRuneInString(text[i:])
		from = i + width
	}
	return false
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// inWord tells whether r can be part of a word.
func inWord(r rune) bool {
	return r != utf8.RuneError && (r == '_' || unicode.In(r, unicode.L, unicode.M, unicode.N))
}

// affix is the kinds starts_with and ends_with. White space at the end of the completion does not count.
type affix struct {
	Text      string `json:"text"`
	MatchCase bool   `json:"match_case"`
	end       bool
}

func (k *affix) compile(*grpo.Prompt) (Check, error) {
	if k.Text == "" {
		return nil, errors.New("text is empty: set what the completion must begin or end with")
	}
	return func(c *grpo.Completion) (float64, string) {
		text, want := strings.TrimRightFunc(c.Text, unicode.IsSpace), k.Text
		if !k.MatchCase {
			text, want = strings.ToLower(text), strings.ToLower(want)
		}
		ok := strings.HasPrefix(text, want)
		if k.end {
			ok = strings.HasSuffix(text, want)
		}
		return yes(ok), verdict(ok, "as asked", fmt.Sprintf("%q is not there", k.Text))
	}, nil
}

// letterCase is the kind case: full credit if every word is written in a style.
type letterCase struct {
	Style   string  `json:"style"`   // lower, upper, or title: every word starts with a capital letter
	Slack   float64 `json:"slack"`   // share of the words that may be wrong
	Partial float64 `json:"partial"` // credit if some are wrong, but no more than that share
}

func (k *letterCase) compile(*grpo.Prompt) (Check, error) {
	var as func(word string) string // the word as it should be
	switch k.Style {
	case "lower":
		as = strings.ToLower
	case "upper":
		as = strings.ToUpper
	case "title":
		as = func(w string) string {
			r, n := utf8.DecodeRuneInString(w)
			return string(unicode.ToTitle(r)) + w[n:]
		}
	default:
		return nil, fmt.Errorf("style is %q: use lower, upper or title", k.Style)
	}
	if k.Slack < 0 || k.Slack > 1 || k.Partial < 0 || k.Partial > 1 {
		return nil, errors.New("slack and partial are shares: set them between 0 and 1")
	}
	return func(c *grpo.Completion) (float64, string) {
		all := words(c.Text)
		wrong := 0
		for _, w := range all {
			if w != as(w) {
				wrong++
			}
		}
		reason := fmt.Sprintf("%d of %d words wrong", wrong, len(all))
		switch {
		case len(all) == 0:
			return 0, "no words"
		case wrong == 0:
			return 1, reason
		case float64(wrong) <= k.Slack*float64(len(all)):
			return k.Partial, reason
		}
		return 0, reason
	}, nil
}
