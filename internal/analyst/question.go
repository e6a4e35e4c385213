package analyst

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// question is what the built-in prompts of scoring and of AMARIS say.
type question struct {
	step, steps int // 0: it does not say
	searches    int // query: at most
	rubric      []criterion
	fenced      []fenced
}

// criterion is a line of the rubric.
type criterion struct {
	id, text string
	weight   float64
	most     int // highest score; scores only
}

// fenced is a text that nobody vouches for, under the line before its fence.
type fenced struct{ head, text string }

// What the lines outside of fences say.
var (
	scored   = regexp.MustCompile(`^- ([A-Za-z0-9_.-]+) \(0 (?:or|to) ([0-9]+)\): (.+)$`)
	weighted = regexp.MustCompile(`^([A-Za-z0-9_.-]+) \(weight ([+-][0-9.e+-]+)(?:, [a-z_]+)?(?:, ANCHOR)?\): (.+)$`)
	progress = regexp.MustCompile(`^Step ([0-9]+)(?: of ([0-9]+))?\.`)
	limit    = regexp.MustCompile(`^Write at most ([0-9]+) searches\.$`)
)

// read takes a question apart. A fence ends only with the code that it began with.
func read(text string) (*question, error) {
	q := &question{}
	lines, head := strings.Split(text, "\n"), ""
	for i := 0; i < len(lines); i++ {
		code, opens := strings.CutPrefix(lines[i], "<<<UNTRUSTED ")
		if !opens {
			q.line(lines[i])
			if lines[i] != "" {
				head = lines[i]
			}
			continue
		}
		n := slices.Index(lines[i+1:], code+" UNTRUSTED>>>")
		if n < 0 {
			return nil, fmt.Errorf("the fence under %q does not end", head)
		}
		q.fenced = append(q.fenced, fenced{head, strings.Join(lines[i+1:i+1+n], "\n")})
		i += n + 1
	}
	return q, nil
}

// line reads a line outside of fences.
func (q *question) line(line string) {
	if m := scored.FindStringSubmatch(line); m != nil {
		q.rubric = append(q.rubric, criterion{id: m[1], most: number(m[2]), text: m[3]})
	}
	if m := weighted.FindStringSubmatch(line); m != nil {
		weight, _ := strconv.ParseFloat(m[2], 64) // as it was printed
		q.rubric = append(q.rubric, criterion{id: m[1], weight: weight, text: m[3]})
	}
	if m := progress.FindStringSubmatch(line); m != nil {
		q.step, q.steps = number(m[1]), number(m[2])
	}
	if m := limit.FindStringSubmatch(line); m != nil {
		q.searches = number(m[1])
	}
}

// number is that of digits; 0: there are none.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// under returns what is fenced under the first line that begins with head.
func (q *question) under(head string) (string, error) {
	i := slices.IndexFunc(q.fenced, func(f fenced) bool { return strings.HasPrefix(f.head, head) })
	if i < 0 {
		return "", fmt.Errorf("the question has no %q", head)
	}
	return q.fenced[i].text, nil
}

// all are the texts that are fenced under lines that begin with head.
func (q *question) all(head string) []string {
	var out []string
	for _, f := range q.fenced {
		if strings.HasPrefix(f.head, head) {
			out = append(out, f.text)
		}
	}
	return out
}
