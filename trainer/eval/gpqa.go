package eval

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// gpqa is GPQA (Rein et al. 2023) as simple-evals asks it: four choices in a random order, the answer's letter in a last line. Its authors
// ask that no question be shown in plain text where crawlers find it: keep the answers' file to yourself.
type gpqa struct {
	rows   []map[string]any
	random *twister
	items  [][]Item // of each repeat
}

// gpqaRepeats is over how many measurements AMARIS's paper takes the mean.
const gpqaRepeats = 10

// letterColumn is where an item has the letter of the right choice.
const letterColumn = "(letter)"

// GPQA reads the authors' CSV (gpqa_main.csv, gpqa_diamond.csv). The orders of the choices are simple-evals':
// random.Random(0).sample(range(4), 4), question after question, repeat after repeat.
func GPQA(s Source) (Benchmark, error) {
	rows, err := readCSV(s.File)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		if _, err := texts(row, gpqaColumns...); err != nil {
			return nil, fmt.Errorf("%s, row %d: %w", s.File, i+1, err)
		}
	}
	b := &gpqa{rows: rows, random: newTwister(0)}
	for range gpqaRepeats {
		b.items = append(b.items, b.repeat())
	}
	return b, nil
}

var gpqaColumns = []string{"Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"}

// repeat words the questions with the next orders.
func (b *gpqa) repeat() []Item {
	items := make([]Item, len(b.rows))
	for i, row := range b.rows {
		f, _ := texts(row, gpqaColumns...) // checked above
		order := b.random.permutation(4)
		choices := make([]any, 0, 5)
		choices = append(choices, strings.TrimSpace(f[0]))
		for _, from := range order {
			choices = append(choices, f[1+from])
		}
		own := maps.Clone(row)
		right := slices.IndexFunc(order, func(from int) bool { return f[1+from] == f[1] }) // the first, where a wrong choice is the same text
		own[letterColumn] = string(rune('A' + right))
		items[i] = Item{Key: fmt.Sprint(i + 1), Row: own, Messages: ask(fmt.Sprintf(gpqaPrompt, choices...))}
	}
	return items
}

const gpqaPrompt = `Here is a question with four choices, of which one is right. Think step by step, and then write as the last line
Answer: $LETTER
with A, B, C or D in the place of $LETTER and nothing else in that line.

%s

A) %s
B) %s
C) %s
D) %s`

// readCSV reads a file whose first row names the columns.
func readCSV(file string) ([]map[string]any, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.LazyQuotes = true
	all, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("%s: %w", file, errors.New("no rows below the names of the columns"))
	}
	var out []map[string]any
	for _, record := range all[1:] {
		row := map[string]any{}
		for i, name := range all[0] {
			row[strings.TrimPrefix(name, "\ufeff")] = record[i]
		}
		out = append(out, row)
	}
	return out, nil
}

func (b *gpqa) Items() []Item { return b.items[0] }

func (b *gpqa) Repeats() int { return gpqaRepeats }

func (b *gpqa) Repeat(n int) []Item {
	for len(b.items) <= n {
		b.items = append(b.items, b.repeat())
	}
	return b.items[n]
}

func (b *gpqa) Score(_ context.Context, item *Item, answer string) (Verdict, error) {
	check, err := verify.Compile(map[string]any{"kind": "match", "from": "choice", "answer": item.Row[letterColumn], "compare": "exact"}, &grpo.Prompt{})
	if err != nil {
		return Verdict{}, err
	}
	right, reason := check(&grpo.Completion{Text: answer})
	return Verdict{Values: map[string]float64{"right": right}, Detail: reason}, nil
}

func (b *gpqa) Metrics(v []Verdict) []Metric { return []Metric{mean("accuracy", "right", v)} }
