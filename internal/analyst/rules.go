package analyst

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
)

// The texts of the criteria that can be scored. The last three name faults: their credit is how far the fault is there, as it
// has to be where a weight is below 0.
const (
	detail   = "The answer is rich in detail."
	mentions = "The answer keeps coming back to its subject."
	form     = "The answer has the form that the request asks for: case, marks, first and last words."
	size     = "The answer has as many items, sentences or words as the request asks for."
	brief    = "The answer is no longer than the request needs."
	topic    = "The answer is about the subject of the request and no other."
	named    = "The answer names its reader, if it is a note."

	fillers = "The answer has filler words."
	repeats = "The answer repeats itself."
	beyond  = "The answer goes on beyond what the request asks for."
)

// rules give an answer's credit under a criterion, from 0 to 1.
var rules = map[string]func(t *Task, answer string) float64{
	detail:   func(_ *Task, answer string) float64 { return min(float64(len(words(answer)))/36, 1) },
	mentions: func(t *Task, answer string) float64 { return min(float64(len(only(words(answer), t.subject)))/3, 1) },
	form:     (*Task).form,
	size:     (*Task).size,
	brief:    (*Task).brief,
	topic:    func(t *Task, answer string) float64 { return t.check("topic", answer) },
	named:    func(t *Task, answer string) float64 { return t.check("name", answer) },

	fillers: func(t *Task, answer string) float64 { return 1 - t.check("nofill", answer) },
	repeats: func(t *Task, answer string) float64 { return 1 - t.check("norepeat", answer) },
	beyond: func(t *Task, answer string) float64 {
		if len(t.units(answer)) > t.n+1 {
			return 1
		}
		return 0
	},
}

// credit is an answer's under a criterion with this text.
func (t *Task) credit(text, answer string) (float64, error) {
	rule := rules[text]
	if rule == nil {
		return 0, fmt.Errorf("there is no rule for the criterion %q, but for: %s", text, strings.Join(slices.Sorted(maps.Keys(rules)), " "))
	}
	return rule(t, answer), nil
}

// check is an answer's credit by a check of the task; 1 if it has none of that name.
func (t *Task) check(id, answer string) float64 {
	check := t.checks[id]
	if check == nil {
		return 1
	}
	credit, _ := check(&grpo.Completion{Text: answer})
	return credit
}

// form is the mean credit by the checks that the request asks for in so many words, its number apart.
func (t *Task) form(answer string) float64 {
	sum, n := 0.0, 0.0
	for _, id := range []string{"case", "semicolons", "start", "end", "bang"} {
		if t.checks[id] != nil {
			sum, n = sum+t.check(id, answer), n+1
		}
	}
	if n == 0 {
		return 1
	}
	return sum / n
}

// size never stops falling: an answer that is far off gains by every unit that it comes nearer.
func (t *Task) size(answer string) float64 {
	return 1 / (1 + math.Abs(float64(len(t.units(answer))-t.n))/2)
}

// brief falls with every word beyond what the number of units needs.
func (t *Task) brief(answer string) float64 {
	most := t.n + 1
	switch {
	case t.unit == "sentences":
		most = 7*t.n + 3
	case len(t.among) > 0:
		most = t.n + 8
	}
	return 1 / (1 + float64(max(len(words(answer))-most, 0))/4)
}
