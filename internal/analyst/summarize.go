package analyst

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/rubicon-rl/rubicon/rewards/amaris"
)

// summarize adds up reports, or summaries of parts of a step.
func summarize(q *question) (any, error) {
	var f *figures
	if reports := q.all("Report "); len(reports) > 0 {
		var list []*report
		for _, text := range reports {
			r, err := readReport(text)
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
		f = together(list)
	} else {
		f = newFigures()
		for _, text := range q.all("Summary ") {
			part, err := readSummary(text)
			if err != nil {
				return nil, err
			}
			f.add(part)
		}
	}
	if f.answers == 0 {
		return nil, errors.New("there is nothing to summarise")
	}
	return f.summary(q), nil
}

// summary words the figures. Those that later stages need are in lines of their own: see readSummary.
func (f *figures) summary(q *question) amaris.Summary {
	s := amaris.Summary{Phase: "developing", Plan: "Keep it.", Behaviours: []amaris.Behaviour{}}
	if 4*q.step < q.steps {
		s.Phase = "early"
	}
	s.Health = fmt.Sprintf("%d of %d answers game the rubric, %d words in all.", f.gaming(), f.answers, f.words)
	for _, kind := range []string{Padding, Repetition, Excess} {
		if n := f.kinds[kind]; n > 0 {
			s.Behaviours = append(s.Behaviours, amaris.Behaviour{Pattern: "gaming by " + kind, Share: fmt.Sprintf("%d of %d", n, f.answers)})
		}
	}
	s.Risk.Type, s.Risk.Severity, s.Risk.Evidence = types[f.commonest()], f.severity(), append([]string{}, f.evidence[:min(len(f.evidence), 3)]...)
	s.Saturation = []string{"mean credits: " + list(f.credits)}
	if worst, pay := f.worst(q.rubric); worst.id != "" && len(f.pays) > 0 {
		s.Weakest.ID, s.Weakest.Reason = worst.id, "More credit for gaming than for other answers to the same request: "+list(f.pays)
		if pay > leastPay {
			s.Plan = "Pay less for quantity: " + worst.text
		}
	}
	return s
}

func (f *figures) severity() string {
	switch s := f.share(); {
	case s > 0.5:
		return "high"
	case s > 0.2:
		return "medium"
	case s > 0:
		return "low"
	}
	return "none"
}

// worst is the criterion that pays most for gaming, of those that reward quantity, and what it pays: its weight times what
// gaming answers have more than others to the same request. Where all answers game there are no others; then half the
// credit takes their place.
func (f *figures) worst(rubric []criterion) (worst criterion, pay float64) {
	for _, c := range rubric {
		if parts[c.text] == nil || c.weight <= 0 {
			continue
		}
		more := f.credits[c.id].value() - 0.5
		if m := f.pays[c.id]; m.n > 0 {
			more = m.value()
		}
		if p := c.weight * more; worst.id == "" || p > pay {
			worst, pay = c, p
		}
	}
	return worst, pay
}

// The lines of a summary. Quotations of answers stand in the one on the hacking risk only.
var (
	summaryHealth  = regexp.MustCompile(`(?m)^Health: [0-9]+ of ([0-9]+) answers game the rubric, ([0-9]+) words in all\.$`)
	summaryKind    = regexp.MustCompile(`(?m)^- gaming by ([a-z]+) \(([0-9]+) of [0-9]+\)$`)
	summaryPays    = regexp.MustCompile(`(?m)^Weakest criterion: [A-Za-z0-9_.-]+\. More credit for gaming than for other answers to the same request: (.*)$`)
	summaryCredits = regexp.MustCompile(`(?m)^Saturation: mean credits: (.*)$`)
	summaryQuotes  = regexp.MustCompile(`(?m)^Hacking risk: [a-z_]+, severity [a-z]+\. Evidence: (.*)$`)
)

func readSummary(text string) (*figures, error) {
	health, credits := summaryHealth.FindStringSubmatch(text), summaryCredits.FindStringSubmatch(text)
	if health == nil || credits == nil {
		return nil, errors.New("a summary is not one of the rule-based judge: let it answer all kinds of questions (judge.tiers)")
	}
	f := newFigures()
	f.answers, f.words, f.credits = number(health[1]), number(health[2]), readList(credits[1])
	for _, m := range summaryKind.FindAllStringSubmatch(text, -1) {
		f.kinds[m[1]] = number(m[2])
	}
	if m := summaryPays.FindStringSubmatch(text); m != nil {
		f.pays = readList(m[1])
	}
	if m := summaryQuotes.FindStringSubmatch(text); m != nil && f.gaming() > 0 {
		f.evidence = []string{m[1]}
	}
	return f, nil
}
