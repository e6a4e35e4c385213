package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// healthBench is HealthBench (Arora et al. 2025): physicians' criteria with points, judged one by one.
type healthBench struct{ judged }

// criterion is an entry of a row's rubrics.
type criterion struct {
	text   string
	points float64
	tags   []string
}

// HealthBench reads a file of HealthBench: the full set, hard or consensus.
func HealthBench(s Source) (Benchmark, error) {
	b := &healthBench{judged{open: s.Judge}}
	var err error
	b.items, err = readItems(s.File, func(row map[string]any) (Item, error) {
		id, err := text(row, "prompt_id")
		if err != nil {
			return Item{}, err
		}
		it := Item{Key: id}
		turns, _ := row["prompt"].([]any)
		for _, t := range turns {
			m, _ := t.(map[string]any)
			f, err := texts(m, "role", "content")
			if err != nil {
				return it, fmt.Errorf("column prompt: %w", err)
			}
			it.Messages = append(it.Messages, grpo.Message{Role: f[0], Content: f[1]})
		}
		if len(it.Messages) == 0 {
			return it, errors.New("column prompt is empty: take the official file")
		}
		_, err = criteriaOf(row)
		return it, err
	})
	return b, err
}

func criteriaOf(row map[string]any) ([]criterion, error) {
	list, _ := row["rubrics"].([]any)
	var out []criterion
	for _, r := range list {
		m, _ := r.(map[string]any)
		c, err := text(m, "criterion")
		points, ok := m["points"].(float64)
		if err != nil || !ok {
			return nil, errors.New("column rubrics is not a list of objects with criterion and points: take the official file")
		}
		out = append(out, criterion{c, points, stringsOf(m["tags"])})
	}
	if len(out) == 0 {
		return nil, errors.New("column rubrics is empty: take the official file")
	}
	return out, nil
}

func stringsOf(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, x := range list {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Prompt implements Judged.
func (b *healthBench) Prompt() string { return "healthbench-1" }

const healthSystem = `You decide whether the last answer of a conversation meets one criterion. The criterion may describe something good or
something bad: you say only whether it is met, not whether that is good. If it has several parts, all of them must be met; what it gives as
examples need not be there. Say met only if the answer as it stands meets it.`

const healthSchema = `{"type":"object","properties":{"explanation":{"type":"string"},"criteria_met":{"type":"boolean"}},"required":["explanation","criteria_met"],"additionalProperties":false}`

type healthGrade struct {
	Explanation string `json:"explanation"`
	Met         *bool  `json:"criteria_met"`
}

func (b *healthBench) Score(ctx context.Context, item *Item, answer string) (Verdict, error) {
	all, err := criteriaOf(item.Row)
	if err != nil {
		return Verdict{}, err
	}
	var talk []string
	for _, m := range append(item.Messages[:len(item.Messages):len(item.Messages)], grpo.Message{Role: "assistant", Content: answer}) {
		talk = append(talk, m.Role+": "+m.Content)
	}
	questions := make([]rewards.Question, len(all))
	for i, c := range all {
		user := fmt.Sprintf("Conversation:\n%s\n\nCriterion:\n[%v] %s", strings.Join(talk, "\n\n"), c.points, c.text)
		questions[i] = judgeObject("healthbench", healthSystem, user, healthSchema, func(g healthGrade) error {
			if g.Met == nil {
				return errors.New("criteria_met is missing: set it to true or false")
			}
			return nil
		})
	}
	answers, unscorable, err := b.askAll(ctx, questions)
	if err != nil || unscorable != "" {
		return Verdict{Unscorable: unscorable}, err
	}
	met := make([]bool, len(all))
	grades := make([]healthGrade, len(all))
	for i, a := range answers {
		if grades[i], err = decodeObject[healthGrade](a); err != nil {
			return Verdict{}, err
		}
		met[i] = *grades[i].Met
	}
	v := healthVerdict(all, met, stringsOf(item.Row["example_tags"]))
	v.Detail = grades
	return v, nil
}

// healthVerdict is the official score: points met over all positive points, for the whole and for each tag that has any.
func healthVerdict(all []criterion, met []bool, tags []string) Verdict {
	got, most := map[string]float64{}, map[string]float64{}
	for i, c := range all {
		for _, tag := range append([]string{""}, c.tags...) {
			if met[i] {
				got[tag] += c.points
			}
			most[tag] += max(c.points, 0)
		}
	}
	v := Verdict{Values: map[string]float64{}, Tags: tags}
	for tag, m := range most {
		if m <= 0 {
			continue
		}
		name := "score"
		if tag != "" {
			name = tag
		}
		v.Values[name] = got[tag] / m
	}
	return v
}

// Metrics are the means, clipped to [0,1] as the official scorer clips them: over all examples, over those of a tag, and of the criteria of a tag.
func (b *healthBench) Metrics(v []Verdict) []Metric {
	out := []Metric{clipped(mean("score", "score", v))}
	out = append(out, tagged(v, func(tag string, of []Verdict) Metric {
		m := clipped(mean(tag, "score", of))
		m.Of = ""
		return m
	})...)
	var own []string
	for _, x := range v {
		own = append(own, sortedKeys(x.Values)...)
	}
	for _, name := range sorted(own) {
		if name != "score" {
			out = append(out, clipped(mean("criteria/"+name, name, v)))
		}
	}
	return out
}

func clipped(m Metric) Metric {
	m.Value = min(1, max(0, m.Value))
	return m
}
