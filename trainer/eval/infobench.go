package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards"
)

// infoBench is InFoBench (Qin et al. 2024): instructions decomposed into questions, each answered YES or NO about the answer.
type infoBench struct{ judged }

// InfoBench reads the official rows: instruction, input, decomposed_questions, question_label, subset.
func InfoBench(s Source) (Benchmark, error) {
	b := &infoBench{judged{open: s.Judge}}
	var err error
	b.items, err = readItems(s.File, func(row map[string]any) (Item, error) {
		f, err := texts(row, "id", "instruction", "input")
		if err != nil {
			return Item{}, err
		}
		if len(stringsOf(row["decomposed_questions"])) == 0 {
			return Item{}, errors.New("column decomposed_questions is empty: take the official file")
		}
		return Item{Key: f[0], Messages: ask(strings.TrimSpace(f[1] + "\n\n" + f[2]))}, nil
	})
	return b, err
}

// Prompt implements Judged.
func (b *infoBench) Prompt() string { return "infobench-1" }

const infoPrompt = `You are given a text that a model generated and a question about it. Answer the question with YES or NO.
YES: the text fulfils what the question asks for, in every part and without a doubt.
NO: it does not, or only in part, or there is no telling from the text.
%s
Generated text:
%s

Question: %s

Write YES or NO first.`

// Score asks the questions one after another; each shows what was asked and answered before, as the official protocol keeps the conversation. The
// first one without a usable answer ends it: the item is unscorable.
func (b *infoBench) Score(ctx context.Context, item *Item, answer string) (Verdict, error) {
	judge, err := b.judge()
	if err != nil {
		return Verdict{}, err
	}
	questions := stringsOf(item.Row["decomposed_questions"])
	input, _ := item.Row["input"].(string)
	before := ""
	if input != "" {
		before = "\nInput:\n" + input + "\n"
	}
	said := make([]bool, len(questions))
	for i, q := range questions {
		user := fmt.Sprintf(infoPrompt, before, answer, q)
		reply, err := judge.Ask(ctx, rewards.Question{Tier: rewards.TierScore, User: user, Check: func(a string) error {
			_, err := readYes(a)
			return err
		}})
		if errors.Is(err, rewards.ErrNoAnswer) {
			return Verdict{Unscorable: fmt.Sprintf("question %d: %v", i+1, err)}, nil
		}
		if err != nil {
			return Verdict{}, err
		}
		said[i], _ = readYes(reply)
		before += fmt.Sprintf("\nAsked before: %s\nYour answer: %s\n", q, map[bool]string{true: "YES", false: "NO"}[said[i]])
	}
	return infoVerdict(item.Row, said), nil
}

// readYes reads an answer as the official script does: by its beginning, or by the one of the two words that is in it.
func readYes(answer string) (bool, error) {
	lower := strings.ToLower(strings.TrimSpace(answer))
	switch {
	case strings.HasPrefix(lower, "yes"):
		return true, nil
	case strings.HasPrefix(lower, "no"):
		return false, nil
	}
	y, n := strings.Contains(answer, "YES"), strings.Contains(answer, "NO")
	if y == n {
		return false, errors.New("the answer is neither YES nor NO: begin with one of the two")
	}
	return y, nil
}

// infoVerdict counts the questions and those answered YES, of the item and of each label.
func infoVerdict(row map[string]any, said []bool) Verdict {
	v := Verdict{Values: map[string]float64{"yes": count(said), "questions": float64(len(said))}, Detail: said}
	if subset, ok := row["subset"].(string); ok {
		v.Tags = []string{subset}
	}
	labels, _ := row["question_label"].([]any)
	for i, l := range labels {
		for _, label := range stringsOf(l) {
			if i < len(said) {
				v.Values["yes/"+label] += yes(said[i])
				v.Values["questions/"+label]++
			}
		}
	}
	return v
}

// Metrics are DRFR, the share of questions answered YES: of all, of the two subsets, of the questions with a label.
func (b *infoBench) Metrics(v []Verdict) []Metric {
	out := []Metric{ratio("drfr", "yes", "questions", v)}
	out = append(out, tagged(v, func(subset string, of []Verdict) Metric { return ratio("drfr/"+subset, "yes", "questions", of) })...)
	var labels []string
	for _, x := range v {
		for name := range x.Values {
			if label, ok := strings.CutPrefix(name, "questions/"); ok {
				labels = append(labels, label)
			}
		}
	}
	for _, l := range sorted(labels) {
		out = append(out, ratio("drfr/label:"+l, "yes/"+l, "questions/"+l, v))
	}
	return out
}
