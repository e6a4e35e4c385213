package main

import (
	"cmp"
	"maps"
)

// criterion is an entry of the columns rubric and pool, in the form that rubric providers read; a program scores it.
type criterion struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Polarity string `json:"polarity"` // negative: the text names a defect, whose absence earns the credit
	Check    check  `json:"check"`
}

// easy is a rubric that every answer soon meets: what RARE starts from.
func (s spec) easy() []criterion {
	subject := check{"kind": "contains", "whole_words": true}
	switch s.family {
	case "list":
		subject["any"] = items[s.category]
	default:
		subject["any"] = []string{cmp.Or(s.topic, s.product)}
	}
	return []criterion{
		{"some", "The answer has at least three words.", "positive", check{"kind": "count", "unit": "words", "min": 3}},
		{"clean", "The answer ends in a full stop or an exclamation mark.", "positive", check{"kind": "regex", "pattern": `[.!]$`}},
		{"subject", "The answer mentions its subject.", "positive", subject},
		{"short", "The answer has at most thirty words.", "positive", check{"kind": "count", "unit": "words", "max": 30}},
	}
}

// defects word the checks of a task as what is missing when they fail.
var defects = map[string]string{
	"count": "The number of items, sentences or words is not the one asked for.", "case": "The letter case is not as asked.",
	"semicolons": "Commas separate the items instead of semicolons.", "start": "The answer does not start as asked.",
	"end": "The answer does not end as asked.", "bang": "There is no exclamation mark at the end.",
	"topic": "The answer strays to another subject.", "norepeat": "The answer repeats itself.",
	"nofill": "The answer has filler words.", "name": "The answer does not name the reader.",
}

// pool is every check of the task, asked for or not, as a criterion that is met when a defect is absent.
func (s spec) pool() []criterion {
	var list []criterion
	for _, c := range append(s.asked(), s.quality()...) {
		c = maps.Clone(c)
		id, _ := c["name"].(string)
		id = cmp.Or(id, c["kind"].(string))
		delete(c, "name")
		delete(c, "weight")
		list = append(list, criterion{id, defects[id], "negative", c})
	}
	return list
}
