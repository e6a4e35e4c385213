package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards"
)

// writingBench is WritingBench (Wu et al. 2025): requests with five criteria of their own, each scored from 1 to 10.
type writingBench struct{ judged }

// WritingBench reads the official rows: index, query, checklist.
func WritingBench(s Source) (Benchmark, error) {
	b := &writingBench{judged{open: s.Judge}}
	var err error
	b.items, err = readItems(s.File, func(row map[string]any) (Item, error) {
		query, err := text(row, "query")
		if err == nil {
			_, err = checklist(row)
		}
		return Item{Key: keyOf(row["index"]), Messages: ask(query)}, err
	})
	return b, err
}

// Official implements Sampled.
func (b *writingBench) Official(s Sampling) Sampling {
	s.Temperature, s.TopP, s.TopK, s.MaxTokens = 0.7, 0.8, 20, 16000
	return s
}

// Prompt implements Judged.
func (b *writingBench) Prompt() string { return "writingbench-1" }

// levels are the keys of a criterion's descriptions.
var levels = []string{"1-2", "3-4", "5-6", "7-8", "9-10"}

// checklist words a row's criteria.
func checklist(row map[string]any) ([]string, error) {
	list, _ := row["checklist"].([]any)
	var out []string
	for _, c := range list {
		m, _ := c.(map[string]any)
		f, err := texts(m, append([]string{"name", "criteria_description"}, levels...)...)
		if err != nil {
			return nil, fmt.Errorf("column checklist: %w", err)
		}
		said := f[0] + ": " + f[1]
		for i, l := range levels {
			said += "\n" + l + ": " + f[2+i]
		}
		out = append(out, said)
	}
	if len(out) == 0 {
		return nil, errors.New("column checklist is empty: take the official file")
	}
	return out, nil
}

const writingSystem = `You score how well a response answers a request, by one criterion with its scale. Be strict. Neither length nor form impresses
you; what only announces the work without doing it has failed. Quote what you rest your score on.`

const writingSchema = `{"type":"object","properties":{"reason":{"type":"string"},"score":{"type":"integer","minimum":1,"maximum":10}},"required":["reason","score"],"additionalProperties":false}`

type writingGrade struct {
	Reason string  `json:"reason"`
	Score  float64 `json:"score"`
}

func (b *writingBench) Score(ctx context.Context, item *Item, answer string) (Verdict, error) {
	all, err := checklist(item.Row)
	if err != nil {
		return Verdict{}, err
	}
	if at := strings.LastIndex(answer, endOfThought); at >= 0 { // what a model thought before is not its answer
		answer = answer[at+len(endOfThought):]
	}
	query, _ := item.Row["query"].(string)
	questions := make([]rewards.Question, len(all))
	for i, c := range all {
		user := fmt.Sprintf("Criterion:\n%s\n\nRequest:\n%s\n\nResponse:\n%s\n\nThe criterion once more:\n%s", c, query, answer, c)
		questions[i] = judgeObject("writingbench", writingSystem, user, writingSchema, func(g writingGrade) error {
			if g.Score != math.Trunc(g.Score) || g.Score < 1 || g.Score > 10 {
				return fmt.Errorf("score is %v: give a whole number from 1 to 10", g.Score)
			}
			return nil
		})
	}
	answers, unscorable, err := b.askAll(ctx, questions)
	if err != nil || unscorable != "" {
		return Verdict{Unscorable: unscorable}, err
	}
	grades, sum := make([]writingGrade, len(all)), 0.0
	for i, a := range answers {
		if grades[i], err = decodeObject[writingGrade](a); err != nil {
			return Verdict{}, err
		}
		sum += grades[i].Score
	}
	v := Verdict{Values: map[string]float64{"sum": sum, "criteria": float64(len(all)), "score": sum / float64(len(all))}, Detail: grades}
	if domain, err := text(item.Row, "domain1"); err == nil {
		v.Tags = append(v.Tags, domain)
		if sub, err := text(item.Row, "domain2"); err == nil {
			v.Tags = append(v.Tags, domain+subdomain+sub)
		}
	}
	return v, nil
}

const (
	endOfThought = "</think>\n\n"
	subdomain    = " / " // between the names of a domain and of a part of it
)

// Metrics are the mean over all criteria's scores, 1 to 10, the same of each domain, and ten times the first as the leaderboard has it.
func (b *writingBench) Metrics(v []Verdict) []Metric {
	all := ratio("score", "sum", "criteria", v)
	all.Of = "score"
	out := []Metric{all, {Name: "score_100", Value: 10 * all.Value}}
	for _, m := range b.domains(v) {
		if !strings.Contains(m.Name, subdomain) {
			out = append(out, m)
		}
	}
	return out
}

// Details are the same of each part of a domain.
func (b *writingBench) Details(v []Verdict) []Metric {
	var out []Metric
	for _, m := range b.domains(v) {
		if strings.Contains(m.Name, subdomain) {
			out = append(out, m)
		}
	}
	return out
}

func (b *writingBench) domains(v []Verdict) []Metric {
	return tagged(v, func(name string, of []Verdict) Metric { return ratio("score/"+name, "sum", "criteria", of) })
}

// tagged is a metric of each tag.
func tagged(v []Verdict, metric func(tag string, of []Verdict) Metric) []Metric {
	groups := map[string][]Verdict{}
	var names []string
	for _, x := range v {
		for _, tag := range x.Tags {
			groups[tag] = append(groups[tag], x)
			names = append(names, tag)
		}
	}
	var out []Metric
	for _, name := range sorted(names) {
		out = append(out, metric(name, groups[name]))
	}
	return out
}
