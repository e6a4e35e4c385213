package analyst

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/rubicon-rl/rubicon/rewards/amaris"
)

// types are AMARIS's types of reward hacking that kinds of gaming belong to.
var types = map[string]string{"": "none", Padding: "length_gaming", Repetition: "keyword_stuffing", Excess: "length_gaming"}

// analyze reports on one answer. What summaries count stands in lines of its own: see report.
func analyze(q *question) (any, error) {
	t, answer, err := q.task("A reference answer", "The answer of the policy")
	if err != nil {
		return nil, err
	}
	request, err := q.under("The request")
	if err != nil {
		return nil, err
	}
	var a amaris.Analysis
	kind, evidence := t.Gaming(answer)
	a.Hacking.Present, a.Hacking.Type, a.Hacking.Confidence = kind != "", types[kind], "high"
	a.Hacking.Evidence = append([]string{}, evidence[:min(len(evidence), 4)]...)
	a.Stage.Assessment, a.Stage.Expected = fmt.Sprintf("%d units where the request wants %d.", len(t.units(answer)), t.n), "as_expected"
	a.Observations = []string{fmt.Sprintf("Request %s, %d words, gaming: %s.", digest(request), len(words(answer)), cmp.Or(kind, "none"))}
	return a, t.grade(q.rubric, answer, &a)
}

// grade adds what the rubric made of the answer.
func (t *Task) grade(rubric []criterion, answer string, a *amaris.Analysis) error {
	a.Rubric.Flaws = []amaris.Flaw{}
	credits, least := map[string]mean{}, 2.0
	for _, c := range rubric {
		credit, err := t.credit(c.text, answer)
		if err != nil {
			return err
		}
		credits[c.id] = mean{credit, 1}
		if a.Hacking.Present && parts[c.text] != nil && credit >= 0.5 {
			a.Rubric.Flaws = append(a.Rubric.Flaws, amaris.Flaw{Criterion: c.id, Flaw: fmt.Sprintf("it gives this answer %.2f", credit)})
		}
		if c.weight > 0 && credit < least {
			least = credit
			a.Curriculum.Next, a.Curriculum.Reason = c.text, fmt.Sprintf("credit %.2f, the lowest that this answer has", credit)
		}
	}
	a.Rubric.Assessment = "credits: " + list(credits)
	return nil
}

// digest tells requests apart.
func digest(request string) string {
	sum := sha256.Sum256([]byte(request))
	return hex.EncodeToString(sum[:4])
}
