package analyst

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/amaris"
)

// decision is an answer to the update question.
type decision struct {
	Reasoning string     `json:"reasoning"`
	Strategy  string     `json:"strategy"`
	Focus     string     `json:"focus"`
	History   []use      `json:"history"`
	Create    []create   `json:"create"`
	Update    []struct{} `json:"update"`
	Delete    []struct{} `json:"delete"`
	Reweight  []reweight `json:"reweight"`
	Merge     []struct{} `json:"merge"`
	Split     []split    `json:"split"`
	Lesson    string     `json:"lesson"`
}

type use struct {
	Document string `json:"document"`
	Use      string `json:"use"`
}

type create struct {
	part
	Reason string `json:"reason"`
}

type reweight struct {
	ID     string  `json:"id"`
	Weight float64 `json:"weight"`
	Reason string  `json:"reason"`
}

type split struct {
	ID     string `json:"id"`
	Into   []part `json:"into"`
	Reason string `json:"reason"`
}

// update decides on the rubric by the summary of the latest steps and by the documents that the memory gave.
func update(q *question) (any, error) {
	text, err := q.under("The summary of the step")
	if err != nil {
		return nil, err
	}
	f, err := readSummary(text)
	if err != nil {
		return nil, err
	}
	return decide(q.rubric, f, remember(q.fenced, f.share())), nil
}

// decide is the rule of updates.
func decide(rubric []criterion, f *figures, p past) decision {
	d := decision{
		Strategy: amaris.Maintenance, Focus: "no_dominant_behaviour", History: append([]use{}, p.used...), Create: []create{}, Update: []struct{}{},
		Delete: []struct{}{}, Reweight: []reweight{}, Merge: []struct{}{}, Split: []split{},
	}
	worst, pay := f.worst(rubric)
	d.Reasoning = fmt.Sprintf("%.3f of the answers game the rubric, %.3f did at first.", f.share(), p.first)
	switch high := f.share() > p.first+trigger; {
	case high && pay > leastPay:
		d.Reasoning += fmt.Sprintf(" %s pays most for it: %.3f.", worst.id, pay)
		d.defend(rubric, worst, f, &p)
	case high:
		d.Reasoning += " No criterion that rewards quantity pays for it; what was changed may need time."
		d.Focus = "recent_patch_under_evaluation"
	case p.defensive > 0:
		d.raise(rubric, f)
	}
	d.Lesson = p.lesson()
	return d
}

// defend lets the criterion that pays for gaming weigh less or, if that was tried, splits it; and penalises the commonest kind.
func (d *decision) defend(rubric []criterion, worst criterion, f *figures, p *past) {
	kind := f.commonest()
	d.Strategy, d.Focus = amaris.Defensive, types[kind]
	reason := fmt.Sprintf("It pays for %s.", kind)
	if slices.Contains(p.weakened, worst.id) {
		d.Split = append(d.Split, split{worst.id, parts[worst.text], reason + " A lower weight did not help."})
	} else {
		d.Reweight = append(d.Reweight, reweight{worst.id, worst.weight / 4, reason})
		p.weakened = append(p.weakened, worst.id)
	}
	if guard := guards[kind]; !has(rubric, guard.Text) {
		d.Create = append(d.Create, create{guard, fmt.Sprintf("%d of %d answers game by %s.", f.kinds[kind], f.answers, kind)})
	}
	p.defensive++
}

// raise replaces a criterion that rewards quantity, if one is left, and otherwise asks for more once the rubric is mastered.
func (d *decision) raise(rubric []criterion, f *figures) {
	for _, c := range rubric {
		if parts[c.text] != nil {
			d.curriculum("conciseness", "Gaming has gone back; now quality takes the place of quantity.")
			d.Split = append(d.Split, split{c.id, parts[c.text], "It rewards quantity."})
			return
		}
	}
	met := f.met(rubric)
	if met <= mastered {
		d.Focus = "held_out_improving"
		return
	}
	reason := fmt.Sprintf("What the rubric asks for is met by %.3f.", met)
	if i := slices.IndexFunc(rubric, func(c criterion) bool { return c.text == form && c.weight > 0 && c.weight < formWeight }); i >= 0 {
		d.curriculum("multi_constraint_prioritization", reason+" Form can be demanded.")
		d.Reweight = append(d.Reweight, reweight{rubric[i].id, formWeight, reason})
		return
	}
	for _, next := range ladder {
		if !has(rubric, next.Text) {
			d.curriculum("conciseness", reason+" The next fault can be penalised.")
			d.Create = append(d.Create, create{next, reason})
			return
		}
	}
	d.Focus = "already_compact"
}

// met is the mean credit of the criteria that earn something, by weight.
func (f *figures) met(rubric []criterion) float64 {
	sum, weights := 0.0, 0.0
	for _, c := range rubric {
		if c.weight > 0 {
			sum, weights = sum+c.weight*f.credits[c.id].value(), weights+c.weight
		}
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}

func (d *decision) curriculum(focus, why string) {
	d.Strategy, d.Focus = amaris.Curriculum, focus
	d.Reasoning += " " + why
}

func has(rubric []criterion, text string) bool {
	return slices.ContainsFunc(rubric, func(c criterion) bool { return c.text == text })
}

// query asks the memory for what the summary's figures point at, and for what earlier updates noted.
func query(q *question) (any, error) {
	text, err := q.under("The summary of the step")
	if err != nil {
		return nil, err
	}
	f, err := readSummary(text)
	if err != nil {
		return nil, err
	}
	worst, _ := f.worst(q.rubric)
	kind := cmp.Or(f.commonest(), Padding)
	list := []amaris.Query{
		{Aim: "failure_mode", Text: "gaming by " + kind + " hacking risk " + strings.ReplaceAll(types[kind], "_", " ")},
		{Aim: "past_update", Text: "update record: defensive. " + lessonWords},
		{Aim: "past_update", Text: "update record: curriculum. " + lessonWords},
		{Aim: "past_update", Text: "update record: maintenance. " + lessonWords},
		{Aim: "rubric_flaw", Text: "weakest criterion " + worst.id + " more credit for gaming than for other answers"},
	}
	return struct {
		Queries []amaris.Query `json:"queries"`
	}{list[:min(len(list), q.searches)]}, nil
}
