// Package eval measures a policy on benchmarks: each is a file of questions in its official format and the official way to
// score answers. One file per benchmark; what asks the policy, keeps every answer and sums up is shared.
package eval

import (
	"context"
	"fmt"
	"slices"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer/data"
)

// Benchmark is a set of questions and how answers to them are scored. A benchmark may also be Repeated, Judged, Detailed, Retried or Sampled.
type Benchmark interface {
	// Items returns the questions in the order of the official file.
	Items() []Item
	// Score scores the answer to a question. An error means that nothing can be scored now; an answer that cannot be scored,
	// because its judge gave no usable answer, gets a Verdict that is Unscorable. It is safe for use by several goroutines.
	Score(ctx context.Context, item *Item, answer string) (Verdict, error)
	// Metrics sums up one verdict of each of some items, none of them Unscorable. It heeds nothing but the verdicts, so that
	// they may be any sample of them. The first metric is the benchmark's headline.
	Metrics(verdicts []Verdict) []Metric
}

// Repeated is a Benchmark that is officially measured several times, with questions that are worded anew each time.
type Repeated interface {
	Repeats() int        // how often
	Repeat(n int) []Item // the items of repeat n, counted from 0, with the keys and in the order of Items, which are those of repeat 0
}

// Judged is a Benchmark whose answers a language model judges. Prompt names the version of what it is asked.
type Judged interface{ Prompt() string }

// Detailed is a Benchmark with figures of parts of it, which are told without intervals, and not in tables.
type Detailed interface {
	Details(verdicts []Verdict) []Metric
}

// Retried is a Benchmark whose authors ask again where an answer is none, such as a piece of a few words.
type Retried interface{ Again(answer string) bool }

// Sampled is a Benchmark whose authors say how answers are sampled. Official returns s with their settings in it.
type Sampled interface{ Official(s Sampling) Sampling }

// Item is one question.
type Item struct {
	Key      string         // stable, unique in the benchmark
	Messages []grpo.Message // what the policy is asked
	Row      map[string]any // the official file's row, as decoded JSON
	Task     bool           // the row is also a task of several turns, for a policy with an environment
}

// Verdict is what a benchmark says about one answer.
type Verdict struct {
	Values     map[string]float64 `json:"values,omitempty"` // figures of this answer by name; what is right or wrong is 1 or 0
	Tags       []string           `json:"tags,omitempty"`   // groups of items that the answer's item belongs to
	Detail     any                `json:"detail,omitempty"` // what people read: verdicts of single checks, a judge's words
	Unscorable string             `json:"unscorable,omitempty"`
}

// Metric is one figure of a benchmark. If it is the mean of one of the verdicts' values, Of names that value, by which two
// policies are compared item by item.
type Metric struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Of    string  `json:"-"`
}

// Source is what a benchmark is made of.
type Source struct {
	File  string                        // in its official format
	Judge func() (rewards.Judge, error) // opens the judge; called only by benchmarks that need one
}

// readItems makes an item of every row of a file: JSON lines, a JSON list, or Parquet.
func readItems(file string, item func(row map[string]any) (Item, error)) ([]Item, error) {
	var items []Item
	seen := map[string]bool{}
	err := data.Rows(file, "auto", func(row map[string]any) error {
		plain(row)
		it, err := item(row)
		if err != nil {
			return err
		}
		if it.Key == "" || seen[it.Key] {
			return fmt.Errorf("its key %q is empty or was there before: take the official file", it.Key)
		}
		seen[it.Key], it.Row = true, row
		items = append(items, it)
		return nil
	})
	if err == nil && len(items) == 0 {
		err = fmt.Errorf("%s has no rows", file)
	}
	return items, err
}

// plain makes whole numbers float64, as encoding/json would.
func plain(v any) any {
	switch x := v.(type) {
	case int64:
		return float64(x)
	case map[string]any:
		for k, e := range x {
			x[k] = plain(e)
		}
	case []any:
		for i, e := range x {
			x[i] = plain(e)
		}
	}
	return v
}

// ask is a conversation that begins with one message of a user.
func ask(text string) []grpo.Message { return []grpo.Message{{Role: "user", Content: text}} }

// yes is 1 if ok.
func yes(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// mean is the metric that is the mean of a value over the verdicts that have it; 0 if none has.
func mean(name, of string, verdicts []Verdict) Metric {
	sum, n := 0.0, 0
	for _, v := range verdicts {
		if x, ok := v.Values[of]; ok {
			sum, n = sum+x, n+1
		}
	}
	return Metric{Name: name, Value: sum / float64(max(n, 1)), Of: of}
}

// ratio is the metric that is the sum of one value over the sum of another.
func ratio(name, of, over string, verdicts []Verdict) Metric {
	a, b := 0.0, 0.0
	for _, v := range verdicts {
		a, b = a+v.Values[of], b+v.Values[over]
	}
	if b == 0 {
		return Metric{Name: name}
	}
	return Metric{Name: name, Value: a / b}
}

// sorted is a list in order, each name once.
func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// text is a column of a row that must be a text.
func text(row map[string]any, column string) (string, error) {
	s, ok := row[column].(string)
	if !ok {
		return "", fmt.Errorf("column %s is not a text: take the official file", column)
	}
	return s, nil
}

// texts are columns of a row that must be texts.
func texts(row map[string]any, columns ...string) ([]string, error) {
	out := make([]string, len(columns))
	for i, c := range columns {
		var err error
		if out[i], err = text(row, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}
