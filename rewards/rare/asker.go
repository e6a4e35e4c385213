package rare

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// asker asks a judge for replacements, one question for a visit.
type asker struct {
	options  Options
	judge    rewards.Judge
	template *template.Template
}

func newAsker(o Options, judge rewards.Judge) (*asker, error) {
	t, err := openTemplate(o.UpdatePrompt)
	if err != nil {
		return nil, err
	}
	return &asker{o, judge, t}, nil
}

func (a *asker) propose(ctx context.Context, step int, v *visit) error {
	system, user, err := fill(a.template, a.request(v))
	if err != nil {
		return err
	}
	labels := make([]string, len(v.asked))
	for i, k := range v.asked {
		labels[i] = label(k)
	}
	form := reply{labels, a.options.Polarity}
	answer, err := a.judge.Ask(ctx, rewards.Question{
		Tier: rewards.TierUpdate, System: system, User: user, Name: "rubric_update", Schema: form.schema(),
		Check: func(answer string) error {
			_, err := form.read(answer)
			return err
		},
	})
	if err != nil {
		return err
	}
	updates, err := form.read(answer)
	if err != nil {
		return fmt.Errorf("%w: %w", rewards.ErrNoAnswer, err)
	}
	a.accept(step, v, updates)
	return nil
}

// accept makes proposals of the updates that repeat no other criterion.
func (a *asker) accept(step int, v *visit, updates []update) {
	known := v.known()
	for _, u := range updates {
		place := v.asked[u.label]
		if like := a.nearest(known, u.Criterion); like != "" {
			v.rejected = append(v.rejected, refusal{place, u.Criterion, like})
			continue
		}
		c := criteria.Criterion{ID: newID(known, step, place), Text: u.Criterion, Polarity: u.Polarity, MaxScore: a.options.Levels}
		known = append(known, c)
		v.proposals = append(v.proposals, proposal{place, c, u.Difference, len(v.proposals)})
	}
	v.silence = "the generator proposed nothing for it"
	if a.options.Polarity == polarityBoth && len(v.proposals) > 1 && !bothPolarities(v.proposals) {
		v.proposals, v.silence = v.proposals[:1], "one polarity alone was left"
	}
}

// nearest is the id of the criterion that text repeats, empty if there is none.
func (a *asker) nearest(known []criteria.Criterion, text string) string {
	for _, c := range known {
		if similarity(c.Text, text) >= a.options.Similarity {
			return c.ID
		}
	}
	return ""
}

func bothPolarities(list []proposal) bool {
	return slices.ContainsFunc(list, func(p proposal) bool { return p.criterion.Polarity != list[0].criterion.Polarity })
}

// newID is an id that no known criterion has: of the step and the place, which occur together once in a rubric's life.
func newID(known []criteria.Criterion, step, place int) string {
	id := fmt.Sprintf("rare-%d-%d", step, place+1)
	for taken := func(c criteria.Criterion) bool { return c.ID == id }; slices.ContainsFunc(known, taken); {
		id += "b"
	}
	return id
}

// request is what the template is filled with.
type request struct {
	Goal     string
	Polarity string
	Levels   int
	Task     bool // the rubric is shared by several requests
	Criteria []graded
	Earlier  []string // texts of criteria that were replaced
	Requests []asking
	Ask      string // labels of the criteria to replace
}

type graded struct {
	Label, Text, Credits string
	Weight               float64
	Saturated            bool
}

type asking struct {
	Text    string // fenced
	Answers []answer
}

type answer struct {
	Number int
	Text   string // fenced
}

// request shows a visit: the rubric, and at most max_rollouts completions that are spread evenly over its groups.
func (a *asker) request(v *visit) request {
	r := request{Goal: a.options.Goal, Polarity: a.options.Polarity, Levels: a.options.Levels, Task: a.options.Mode == modeTask}
	credits := make([][]string, v.set.Len())
	number := 0
	for g, places := range pick(v.sizes(), a.options.MaxRollouts) {
		if len(places) == 0 {
			continue
		}
		ask := asking{Text: scoring.Fence(scoring.Conversation(v.groups[g].Prompt))}
		for _, i := range places {
			number++
			ask.Answers = append(ask.Answers, answer{number, scoring.Fence(v.groups[g].Completions[i].Text)})
			for k := range credits {
				credits[k] = append(credits[k], fmt.Sprintf("answer %d: %.3g", number, v.verdicts[g][i].Credits[k]))
			}
		}
		r.Requests = append(r.Requests, ask)
	}
	for k, c := range v.set.All() {
		r.Criteria = append(r.Criteria, graded{label(k), describe(c), strings.Join(credits[k], ", "), c.Weight, slices.Contains(v.asked, k)})
	}
	for _, c := range v.start.retired() {
		r.Earlier = append(r.Earlier, describe(c))
	}
	var ask []string
	for _, k := range v.asked {
		ask = append(ask, label(k))
	}
	r.Ask = strings.Join(ask, ", ")
	return r
}

// pick chooses at most n of the completions in groups of these sizes, spread evenly: group -> places.
func pick(sizes []int, n int) [][]int {
	total := 0
	for _, size := range sizes {
		total += size
	}
	n = min(n, total)
	out := make([][]int, len(sizes))
	first, next := 0, 0 // of the group; of those to pick
	for g, size := range sizes {
		for ; next < n && next*total/n < first+size; next++ {
			out[g] = append(out[g], next*total/n-first)
		}
		first += size
	}
	return out
}

// label is what a criterion is called in the question: its id may say anything.
func label(place int) string { return "c" + strconv.Itoa(place+1) }

// describe is a criterion on one line.
func describe(c criteria.Criterion) string {
	text := clean(c.Text)
	if c.Check != nil {
		check, _ := json.Marshal(c.Check) // is JSON by origin
		text = strings.TrimSpace(text + " (a program checks " + string(check) + ")")
	}
	return text
}
