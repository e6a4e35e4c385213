package main

import "slices"

// A checks column is a list of these, in the form that the reward provider verify reads.
type check = map[string]any

// asked is what the prompt asks for in so many words: the reward of the quickstart.
func (s spec) asked() []check {
	list := []check{s.count()}
	add := func(asked bool, c check) {
		if asked {
			list = append(list, c)
		}
	}
	add(s.style != "", check{"kind": "case", "weight": 2, "style": s.style, "slack": 0.25, "partial": 0.5})
	add(s.semicolons, check{"kind": "contains", "name": "semicolons", "weight": 2, "all": []string{";"}, "none": []string{","}})
	add(s.start != "", check{"kind": "starts_with", "name": "start", "weight": 2, "text": s.start})
	add(s.end != "", check{"kind": "ends_with", "name": "end", "weight": 3, "text": s.end})
	add(s.bang, check{"kind": "ends_with", "name": "bang", "weight": 2, "text": "!"})
	return list
}

// count gives half the credit if the number is off by one.
func (s spec) count() check {
	return s.units(check{"kind": "count", "weight": 3, "exactly": s.n, "partial": []float64{0.5}})
}

// units makes c look at the family's units: items, sentences or words.
func (s spec) units(c check) check {
	switch s.family {
	case "list":
		c["unit"], c["among"] = "words", allItems()
	case "note":
		c["unit"] = "sentences"
	case "slogan":
		c["unit"] = "words"
	}
	return c
}

// quality is what any reader wants and no prompt says: the subject, no repetition, no filler, the reader's name.
func (s spec) quality() []check {
	topic := check{"kind": "contains", "name": "topic", "weight": 2, "whole_words": true}
	switch s.family {
	case "list":
		topic["any"], topic["none"] = items[s.category], without(allItems(), items[s.category]...)
	case "note":
		topic["all"], topic["none"] = []string{s.topic}, without(topics, s.topic)
	case "slogan":
		topic["all"], topic["none"] = []string{s.product}, without(products, s.product)
	}
	list := []check{
		topic,
		s.units(check{"kind": "distinct", "name": "norepeat", "weight": 1}),
		{"kind": "count", "name": "nofill", "weight": 2, "among": fillers, "max": 0, "partial": []float64{0.5}},
	}
	if s.family == "note" {
		list = append(list, check{"kind": "contains", "name": "name", "weight": 1, "all": []string{s.name}, "whole_words": true})
	}
	return list
}

func without(list []string, drop ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(w string) bool { return slices.Contains(drop, w) })
}
