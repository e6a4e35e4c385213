package instruct

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// arguments reads an instruction's kwargs and remembers the first thing wrong with them.
type arguments struct {
	values map[string]any
	used   []string
	err    error
}

func (a *arguments) fail(name, format string, v ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("argument %s %s", name, fmt.Sprintf(format, v...))
	}
}

// get is the value of an argument that must be there.
func (a *arguments) get(name string) any {
	a.used = append(a.used, name)
	v := a.values[name]
	if v == nil {
		a.fail(name, "is missing")
	}
	return v
}

func (a *arguments) text(name string) string {
	v := a.get(name)
	s, ok := v.(string)
	if v != nil && (!ok || s == "") {
		a.fail(name, "is %v, not a text", v)
	}
	return s
}

func (a *arguments) texts(name string) []string {
	v := a.get(name)
	var texts []string
	switch list := v.(type) {
	case []string:
		texts = list
	case []any:
		for _, e := range list {
			s, ok := e.(string)
			if !ok {
				a.fail(name, "holds %v, not a text", e)
			}
			texts = append(texts, s)
		}
	}
	if v != nil && len(texts) == 0 {
		a.fail(name, "is %v, not a list of texts", v)
	}
	return texts
}

// amount is a number of at least 0.
func (a *arguments) amount(name string) float64 {
	v := a.get(name)
	f := -1.0
	switch n := v.(type) {
	case float64:
		f = n
	case int:
		f = float64(n)
	case int64: // as rows of data have whole numbers
		f = float64(n)
	case json.Number:
		f, _ = n.Float64()
	}
	if v != nil && !(f >= 0) {
		a.fail(name, "is %v, not a number of at least 0", v)
	}
	return max(f, 0)
}

// number is a whole number of at least 0; JSON may have written it as 3.0.
func (a *arguments) number(name string) int {
	f := a.amount(name)
	if f != float64(int(f)) {
		a.fail(name, "is %v, not a whole number", f)
	}
	return int(f)
}

// positive is a whole number of at least 1.
func (a *arguments) positive(name string) int {
	n := a.number(name)
	if n < 1 {
		a.fail(name, "is %d: the first is 1", n)
	}
	return n
}

// compare reads a limit and a relation, "less than" or "at least", and returns the comparison of a count with it.
func (a *arguments) compare(limit, relation string) func(n int) bool {
	number, r := a.number(limit), a.text(relation)
	switch r {
	case "at least":
		return func(n int) bool { return n >= number }
	case "less than":
		return func(n int) bool { return n < number }
	}
	if r != "" {
		a.fail(relation, `is %q: use "at least" or "less than"`, r)
	}
	return nil
}

// pattern compiles a pattern made from argument name.
func (a *arguments) pattern(name, pattern, flags string) *regexp.Regexp {
	re, err := pytext.Compile(pattern, flags)
	if err != nil {
		a.fail(name, "cannot be searched for: %v", err)
		return regexp.MustCompile("")
	}
	return re
}

// words compiles \bpattern\b for a pattern that matches text, or, if it is no plain text, texts that start and end as it
// does. Go's engine has no Unicode bound, so the character next to an end is matched instead: another kind than the end
// itself, or the text's own end.
func (a *arguments) words(name, text, pattern string) *regexp.Regexp {
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	before, after := `(?:\A|\W)`, `(?:\W|\z)`
	if !pytext.IsWord(first) {
		before = `\w`
	}
	if !pytext.IsWord(last) {
		after = `\w`
	}
	return a.pattern(name, before+pattern+after, "i")
}

// finish returns the first error, which may be an argument that no one asked for.
func (a *arguments) finish() error {
	if a.err != nil {
		return a.err
	}
	for _, name := range slices.Sorted(maps.Keys(a.values)) {
		if a.values[name] != nil && !slices.Contains(a.used, name) {
			return errors.New("unknown argument " + name)
		}
	}
	return nil
}
