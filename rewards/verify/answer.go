package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// answer is what the kinds match and number share: where the completion's answer stands, and the right ones. The right
// answer is read in the same way if it carries the same mark, so that a column may hold whole worked solutions.
type answer struct {
	From    string `json:"from"`    // text (default), line: the last one, boxed: the last \boxed{}, hash: GSM8K's #### n, choice: GPQA's Answer: A
	Pattern string `json:"pattern"` // instead of from: the first group, or all, of a regular expression's last match
	Answer  any    `json:"answer"`  // the right answer, or a list of which any is right
	Column  string `json:"column"`  // instead of answer: the data column that holds it
}

// prepare returns what finds the answer in a text, and the right answers; none without a row.
func (a *answer) prepare(row *grpo.Prompt) (find func(string) (string, bool), right []string, err error) {
	if find, err = a.finder(); err != nil {
		return nil, nil, err
	}
	if (a.Answer == nil) == (a.Column == "") {
		return nil, nil, errors.New("set answer, or column to the data column that holds it")
	}
	value := a.Answer
	if a.Column != "" {
		if row == nil {
			return find, nil, nil
		}
		var there bool
		if value, there = row.Columns[a.Column]; !there {
			return nil, nil, fmt.Errorf("the row has no column %s: set column to the one that holds the right answer, or map it in data.columns", a.Column)
		}
	}
	if right, err = texts(value); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", verdict(a.Column == "", "answer", "column "+a.Column), err)
	}
	for i, r := range right {
		if inner, ok := find(r); ok {
			right[i] = inner
		}
	}
	return find, right, nil
}

// finder returns what finds the answer in a text.
func (a *answer) finder() (func(string) (string, bool), error) {
	if a.Pattern != "" {
		if a.From != "" {
			return nil, errors.New("from and pattern are set: use one of the two")
		}
		re, err := compileRegexp(a.Pattern, a.Pattern)
		return func(text string) (string, bool) { return lastGroup(re, text) }, err
	}
	switch a.From {
	case "", "text":
		return func(text string) (string, bool) { return text, true }, nil
	case "line":
		return lastLine, nil
	case "boxed":
		return lastBoxed, nil
	case "hash":
		return afterHash, nil
	case "choice":
		return chosen, nil
	}
	return nil, fmt.Errorf("from is %q: use text, line, boxed, hash or choice", a.From)
}

// texts takes a JSON value as a list of answers.
func texts(value any) ([]string, error) {
	switch v := value.(type) {
	case string:
		return []string{v}, nil
	case json.Number:
		return []string{v.String()}, nil
	case float64, int, int64, bool:
		return []string{fmt.Sprint(v)}, nil
	case []any:
		var all []string
		for _, e := range v {
			t, err := texts(e)
			if err != nil {
				return nil, err
			}
			all = append(all, t...)
		}
		if len(all) > 0 {
			return all, nil
		}
	}
	return nil, fmt.Errorf("is %v: give a text, a number, or a list of them", value)
}

func lastGroup(re *regexp.Regexp, text string) (string, bool) {
	all := re.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return "", false
	}
	groups := all[len(all)-1]
	return groups[min(1, len(groups)-1)], true
}

func lastLine(text string) (string, bool) {
	lines := filled(strings.Split(text, "\n"))
	if len(lines) == 0 {
		return "", false
	}
	return lines[len(lines)-1], true
}

// hashMark is the pattern of GSM8K's own grader, which takes the first match and drops the commas.
var hashMark = regexp.MustCompile(`#### (\-?[0-9\.\,]+)`)

func afterHash(text string) (string, bool) {
	groups := hashMark.FindStringSubmatch(text)
	if groups == nil {
		return "", false
	}
	return strings.ReplaceAll(groups[1], ",", ""), true
}

// choiceMark is the pattern by which simple-evals reads the answer to a question of GPQA: the first match, as it is
// written, so that a small letter is wrong.
var choiceMark = regexp.MustCompile(`(?i)Answer[ \t]*:[ \t]*\$?([A-D])\$?`)

func chosen(text string) (string, bool) {
	groups := choiceMark.FindStringSubmatch(text)
	if groups == nil {
		return "", false
	}
	return groups[1], true
}

// lastBoxed is what stands in the last \boxed{}, whose braces may be nested.
func lastBoxed(text string) (string, bool) {
	const mark = `\boxed{`
	start := strings.LastIndex(text, mark)
	if start < 0 {
		return "", false
	}
	inside := text[start+len(mark):]
	depth := 1
	for i := range len(inside) {
		switch inside[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return inside[:i], true
			}
		}
	}
	return "", false
}

// match gives full credit if the answer equals a right one.
type match struct {
	answer
	// exact; space (default): runs of white space are one blank; text: case, ASCII punctuation and the articles a, an, the
	// do not count either, as in SQuAD's exact match.
	Compare string `json:"compare"`
}

func (k *match) compile(row *grpo.Prompt) (Check, error) {
	var form func(string) string
	switch k.Compare {
	case "exact":
		form = func(s string) string { return s }
	case "space":
		form = func(s string) string { return strings.Join(strings.Fields(s), " ") }
	case "text":
		form = plainText
	default:
		return nil, fmt.Errorf("compare is %q: use exact, space or text", k.Compare)
	}
	find, right, err := k.prepare(row)
	if err != nil {
		return nil, err
	}
	return func(c *grpo.Completion) (float64, string) {
		got, ok := find(c.Text)
		if !ok {
			return 0, "no answer found"
		}
		for _, r := range right {
			if form(got) == form(r) {
				return 1, "right"
			}
		}
		return 0, fmt.Sprintf("%.60q is not %.60q", form(got), right)
	}, nil
}

// plainText is the normal form of SQuAD's and HotpotQA's exact match: lower case, ASCII punctuation deleted, articles
// dropped, runs of white space one blank.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", r) {
			return -1
		}
		return r
	}, pytext.Lower(s))
	var b strings.Builder
	for rest := s; rest != ""; { // runs of word characters and what stands between them
		word := rest[:runLength(rest, true)]
		rest = rest[len(word):]
		gap := rest[:runLength(rest, false)]
		rest = rest[len(gap):]
		if word == "a" || word == "an" || word == "the" {
			word = " "
		}
		b.WriteString(word + gap)
	}
	return strings.Join(pytext.Fields(b.String()), " ")
}

// runLength is the length in bytes of the word, or of the gap between words, that s starts with.
func runLength(s string, word bool) int {
	for i, r := range s {
		if pytext.IsWord(r) != word {
			return i
		}
	}
	return len(s)
}
