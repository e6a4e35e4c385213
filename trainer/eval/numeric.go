package eval

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// checked is a benchmark whose answers checks of package verify find right or wrong.
type checked struct {
	items   []Item
	reading []reading
	checks  map[string][]verify.Check // by key, in the order of reading
}

// reading is one way to read an answer: settings of a check that compares it with the column answer.
type reading struct {
	metric string
	check  map[string]any
}

// problem is a row of such a benchmark.
type problem struct {
	key, question string
	answer        any // the right one
}

// newChecked reads a file. The first reading is the headline.
func newChecked(file, request string, readings []reading, read func(row map[string]any, n int) (problem, error)) (Benchmark, error) {
	b := &checked{checks: map[string][]verify.Check{}, reading: readings}
	var err error
	b.items, err = readItems(file, func(row map[string]any) (Item, error) {
		p, err := read(row, len(b.checks)+1)
		if err != nil {
			return Item{}, err
		}
		for _, r := range readings {
			check, err := verify.Compile(r.check, &grpo.Prompt{ID: p.key, Columns: map[string]any{"answer": p.answer}})
			if err != nil {
				return Item{}, err
			}
			b.checks[p.key] = append(b.checks[p.key], check)
		}
		return Item{Key: p.key, Messages: ask(strings.TrimSpace(p.question) + request)}, nil
	})
	return b, err
}

func (b *checked) Items() []Item { return b.items }

func (b *checked) Score(_ context.Context, item *Item, answer string) (Verdict, error) {
	v := Verdict{Values: map[string]float64{}}
	for i, check := range b.checks[item.Key] {
		credit, reason := check(&grpo.Completion{Text: answer})
		v.Values[b.reading[i].metric] = credit
		if i == 0 {
			v.Detail = reason
		}
	}
	return v, nil
}

func (b *checked) Metrics(v []Verdict) []Metric {
	var out []Metric
	for _, r := range b.reading {
		out = append(out, mean(r.metric, r.metric, v))
	}
	return out
}

// GSM8K reads the official test.jsonl (Cobbe et al. 2021). The policy is asked to end with "#### n", as the official solutions do: only the
// number there counts, as a text without its commas, as in the official comparison (accuracy). flexible_accuracy takes the last number of the answer.
func GSM8K(s Source) (Benchmark, error) {
	const request = "\n\nThink step by step. End with a line of the form \"#### n\", where n is the answer, a number without a unit."
	return newChecked(s.File, request, []reading{
		{"accuracy", map[string]any{"kind": "match", "from": "hash", "column": "answer", "compare": "exact"}},
		{"flexible_accuracy", map[string]any{"kind": "number", "column": "answer"}},
	}, func(row map[string]any, n int) (problem, error) {
		f, err := texts(row, "question", "answer")
		if err != nil {
			return problem{}, err
		}
		return problem{fmt.Sprintf("%s:%d", filepath.Base(s.File), n), f[0], f[1]}, nil
	})
}

// MATH reads rows with problem and solution (Hendrycks et al. 2021). What stands in the last \boxed{} of answer and solution must be the
// same text but for white space; other ways to write a formula are wrong here.
func MATH(s Source) (Benchmark, error) {
	const request = "\n\nThink step by step and put the final answer into \\boxed{}."
	return newChecked(s.File, request, []reading{
		{"accuracy", map[string]any{"kind": "match", "from": "boxed", "column": "answer"}},
	}, func(row map[string]any, n int) (problem, error) {
		question, answer := "problem", "solution"
		if _, ours := row["prompt"]; ours { // as rubicon data get makes them
			question, answer = "prompt", "answer"
		}
		f, err := texts(row, question, answer)
		if err != nil {
			return problem{}, err
		}
		return problem{fmt.Sprintf("%s:%d", filepath.Base(s.File), n), f[0], f[1]}, nil
	})
}

// Arithmetic reads MAWPS (input, target) and SVAMP (Body, Question, Answer). The last number of the answer counts.
func Arithmetic(s Source) (Benchmark, error) {
	const request = "\n\nEnd with the answer, a number."
	return newChecked(s.File, request, []reading{{"accuracy", map[string]any{"kind": "number", "column": "answer"}}}, func(row map[string]any, n int) (problem, error) {
		key := fmt.Sprintf("%s:%d", filepath.Base(s.File), n)
		if body, err := texts(row, "Body", "Question"); err == nil {
			return problem{key, strings.TrimSuffix(strings.TrimSpace(body[0]), ".") + ". " + body[1], fmt.Sprint(row["Answer"])}, nil
		}
		question, err := text(row, "input")
		return problem{key, question, fmt.Sprint(row["target"])}, err
	})
}
