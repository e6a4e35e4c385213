package arco

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
)

// Step is what a rubric model, or a teacher, says of a step: K criteria, and in annotations a score of each in [-1,1].
type Step struct {
	Criteria []string
	Scores   []float64
}

// Score is the step's: the mean over its criteria (eq. 3).
func (s Step) Score() float64 {
	sum := 0.0
	for _, x := range s.Scores {
		sum += x
	}
	return sum / math.Max(1, float64(len(s.Scores)))
}

// The forms that answers come in beside plain JSON.
var (
	thinking = regexp.MustCompile(`(?is)<think>.*?</think>`)
	trailing = regexp.MustCompile(`,(\s*[}\]])`)
)

// body is the JSON value in an answer, from its first open to its last shut, without commas that nothing follows.
func body(text string, open, shut string) string {
	i, j := strings.Index(text, open), strings.LastIndex(text, shut)
	if i < 0 || j < i {
		return ""
	}
	return trailing.ReplaceAllString(text[i:j+1], "$1")
}

// ParseRubric reads k criteria from {"criteria": [...]} or {"criterion": "..."}. Missing ones are empty, further ones are left out. An
// answer that is neither is the first criterion as it stands, and ok is false.
func ParseRubric(text string, k int) (criteria []string, ok bool) {
	text = strings.TrimSpace(thinking.ReplaceAllString(text, ""))
	var answer struct {
		Criteria  []string
		Criterion *string
	}
	ok = json.Unmarshal([]byte(body(text, "{", "}")), &answer) == nil
	criteria = answer.Criteria
	if answer.Criterion != nil && len(criteria) == 0 {
		criteria = []string{*answer.Criterion}
	}
	if ok = ok && len(criteria) > 0; !ok {
		criteria = []string{text}
	}
	return filled(criteria, k), ok
}

// filled are the first k criteria.
func filled(criteria []string, k int) []string {
	out := make([]string, k)
	copy(out, criteria)
	return out
}

// ParseTrajectory reads a teacher's annotation of an episode of so many steps, a list of {"criteria": [...], "scores": [...]}, and projects the
// scores onto its reward. A single score (or "score") is that of all criteria of its step; what is no number is 0. An answer that is no
// such list, or has too few steps, gives empty criteria and an equal share of the reward to each step, and ok is false.
func ParseTrajectory(text string, steps, k int, reward float64) (out []Step, ok bool) {
	var list []struct {
		Criteria []string
		Scores   []any
		Score    any
	}
	text = thinking.ReplaceAllString(text, "")
	ok = json.Unmarshal([]byte(body(text, "[", "]")), &list) == nil && len(list) >= steps
	scores := make([][]float64, steps)
	out = make([]Step, steps)
	for t := range out {
		out[t].Criteria = make([]string, k)
		if !ok {
			continue
		}
		out[t].Criteria = filled(list[t].Criteria, k)
		given := list[t].Scores
		if len(given) == 0 {
			given = []any{list[t].Score}
		}
		for i := range k {
			at := i
			if len(given) == 1 {
				at = 0
			}
			x := 0.0
			if at < len(given) {
				x, _ = given[at].(float64)
			}
			scores[t] = append(scores[t], x)
		}
	}
	for t, projected := range Project(scores, k, reward) {
		out[t].Scores = projected
	}
	return out, ok
}
