package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// bigGen is the BiGGen Bench (Kim et al. 2024): instances with a reference answer and a rubric of five scores.
type bigGen struct{ judged }

// BiGGen reads the official file, an object of instances, or rows of them.
func BiGGen(s Source) (Benchmark, error) {
	b := &bigGen{judged{open: s.Judge}}
	rows, err := objectRows(s.File)
	if err != nil {
		return nil, err
	}
	read := func(row map[string]any) (Item, error) {
		f, err := texts(row, "id", "system_prompt", "input", "capability")
		if err == nil {
			_, err = bigGenRubric(row)
		}
		if err != nil {
			return Item{}, err
		}
		it := Item{Key: f[0], Messages: ask(f[2])}
		if f[1] != "" {
			it.Messages = append([]grpo.Message{{Role: "system", Content: f[1]}}, it.Messages...)
		}
		return it, nil
	}
	if rows == nil {
		b.items, err = readItems(s.File, read)
		return b, err
	}
	for _, row := range rows {
		it, err := read(row)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.File, err)
		}
		it.Row = row
		b.items = append(b.items, it)
	}
	return b, nil
}

// objectRows reads a file that is one JSON object of objects, in its order; nil: it is something else.
func objectRows(file string) ([]map[string]any, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, nil
	}
	var rows []map[string]any
	for dec.More() {
		if _, err := dec.Token(); err != nil {
			return nil, nil
		}
		var row map[string]any
		if err := dec.Decode(&row); err != nil || row == nil {
			return nil, nil // a line of JSON lines, whose values are no objects
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func bigGenRubric(row map[string]any) (string, error) {
	m, _ := row["score_rubric"].(map[string]any)
	f, err := texts(m, "criteria", "score1_description", "score2_description", "score3_description", "score4_description", "score5_description")
	if err != nil {
		return "", fmt.Errorf("column score_rubric: %w", err)
	}
	out := "[" + f[0] + "]"
	for i, d := range f[1:] {
		out += fmt.Sprintf("\nScore %d: %s", i+1, d)
	}
	return out, nil
}

// Prompt implements Judged.
func (b *bigGen) Prompt() string { return "biggen-1" }

const bigGenSystem = "You assess answers fairly, with feedback that is clear, and by nothing but the rubric that you are given."

const bigGenPrompt = `Below are an instruction (which may have an input in it), an answer to it, a reference answer that deserves a 5, and a rubric.
Write feedback on the answer that keeps to the rubric, and then a whole number from 1 to 5.
The form of what you write is: Feedback: (feedback) [RESULT] (a whole number from 1 to 5)

Instruction:
%s

Answer:
%s

Reference answer (score 5):
%s

Rubric:
%s

Feedback:`

// result is the mark that Prometheus's answers carry, with all of the number behind it, so that 4.5 and 45 are none.
var result = regexp.MustCompile(`\[RESULT\][\s:]*[(\[]?\s*(-?\d+(?:\.\d+)?)`)

// readResult reads the last mark.
func readResult(answer string) (float64, error) {
	if all := result.FindAllStringSubmatch(answer, -1); all != nil {
		n, err := strconv.Atoi(all[len(all)-1][1])
		if err == nil && n >= 1 && n <= 5 {
			return float64(n), nil
		}
	}
	return 0, errors.New("there is no [RESULT] with a whole number from 1 to 5 behind it")
}

func (b *bigGen) Score(ctx context.Context, item *Item, answer string) (Verdict, error) {
	rubric, err := bigGenRubric(item.Row)
	if err != nil {
		return Verdict{}, err
	}
	f, err := texts(item.Row, "input", "reference_answer", "capability")
	if err != nil {
		return Verdict{}, err
	}
	said, unscorable, err := b.askAll(ctx, []rewards.Question{{
		Tier: rewards.TierScore, System: bigGenSystem, User: fmt.Sprintf(bigGenPrompt, f[0], answer, f[1], rubric),
		Check: func(a string) error {
			_, err := readResult(a)
			return err
		},
	}})
	if err != nil || unscorable != "" {
		return Verdict{Unscorable: unscorable}, err
	}
	score, err := readResult(said[0])
	return Verdict{Values: map[string]float64{"score": score}, Tags: []string{f[2]}, Detail: strings.TrimSpace(said[0])}, err
}

// Metrics are the mean of the capabilities' means, and those.
func (b *bigGen) Metrics(v []Verdict) []Metric {
	each := tagged(v, func(name string, of []Verdict) Metric {
		m := mean("score/"+name, "score", of)
		m.Of = ""
		return m
	})
	macro := Metric{Name: "score", Of: "score"}
	for _, m := range each {
		macro.Value += m.Value / float64(len(each))
	}
	return append([]Metric{macro}, each...)
}
