package amaris

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// phases are the equal parts of a run that the paper compares (app. G).
const phases = 5

// What a reversal is (app. G): within so many steps, by at least so much weight.
const (
	reversalSteps  = 8
	reversalWeight = 0.5
)

// Report is what a run's rubric log says of its updates, in the form of the paper's Tables 16 to 22 and 25. Lists have one entry for
// each phase.
type Report struct {
	Steps       int                       `json:"steps"`
	Updates     int                       `json:"updates"`
	Strategies  map[string][]int          `json:"strategies"`      // Table 16
	Focuses     map[string]map[string]Row `json:"focuses"`         // Tables 17 to 19: strategy -> focus
	Composition map[string][]float64      `json:"composition"`     // Table 20: mean number of criteria that are no anchors, by category; global scope
	Ops         map[string]map[string]int `json:"ops_by_strategy"` // Tables 21 and 22: operation -> strategy
	Created     map[string]int            `json:"created"`         // Table 23: category of what was created
	Reversals   int                       `json:"reversals"`       // Table 25
	Components  []Component               `json:"components"`      // Table 4; NewReport leaves it to NewComponents
}

// Row are counts by phase.
type Row []int

// NewReport reads the events of a log. steps are those of the run; 0: those that the log knows of. Events of other providers are
// passed over.
func NewReport(events []criteria.Event, steps int) (Report, error) {
	var updates []logged
	sets := map[string]criteria.Set{}
	for _, e := range events {
		before := sets[e.Scope]
		if e.Set != nil {
			sets[e.Scope] = *e.Set
		}
		u := logged{Event: e, before: before, after: sets[e.Scope]}
		text, err := json.Marshal(e.Note)
		if err == nil {
			err = json.Unmarshal(text, &u.note)
		}
		if err != nil {
			return Report{}, fmt.Errorf("rubric log: step %d: note: %w", e.Step, err)
		}
		if e.Kind == criteria.Update && u.note.Strategy != "" {
			updates = append(updates, u)
			steps = max(steps, u.note.Step)
		}
		steps = max(steps, e.Step+1)
	}
	r := Report{
		Steps: steps, Updates: len(updates), Strategies: map[string][]int{}, Focuses: map[string]map[string]Row{},
		Composition: composition(events, steps), Ops: map[string]map[string]int{}, Created: map[string]int{},
	}
	for _, name := range []string{Defensive, Curriculum, Maintenance} {
		r.Strategies[name], r.Focuses[name] = make([]int, phases), map[string]Row{}
	}
	for _, u := range updates {
		r.add(u)
	}
	r.Reversals = reversals(updates)
	return r, nil
}

// logged is an update in the log, with the rubrics before and after it.
type logged struct {
	criteria.Event
	before, after criteria.Set
	note          struct {
		Strategy string `json:"strategy"`
		Focus    string `json:"focus"`
		Step     int    `json:"learnt_step"`
	}
}

func phase(step, steps int) int { return min(max(step, 0)*phases/max(steps, 1), phases-1) }

func (r *Report) add(u logged) {
	at := phase(u.note.Step-1, r.Steps)
	if r.Strategies[u.note.Strategy] == nil {
		r.Strategies[u.note.Strategy], r.Focuses[u.note.Strategy] = make([]int, phases), map[string]Row{}
	}
	r.Strategies[u.note.Strategy][at]++
	if u.note.Focus != "" {
		row := r.Focuses[u.note.Strategy][u.note.Focus]
		if row == nil {
			row = make(Row, phases)
			r.Focuses[u.note.Strategy][u.note.Focus] = row
		}
		row[at]++
	}
	for _, op := range u.Ops {
		if r.Ops[op.Kind] == nil {
			r.Ops[op.Kind] = map[string]int{}
		}
		r.Ops[op.Kind][u.note.Strategy]++
		if op.Kind != OpCreate {
			continue
		}
		for _, id := range op.After {
			c, _ := u.after.Find(id)
			r.Created[named(c.Category)]++
		}
	}
}

func named(category string) string {
	if category == "" {
		return "none"
	}
	return category
}

// composition averages over the steps of each phase how many criteria of each category the global rubric had.
func composition(events []criteria.Event, steps int) map[string][]float64 {
	out, length := map[string][]float64{}, make([]float64, phases)
	var set criteria.Set
	next := 0
	for step := range steps {
		for ; next < len(events) && events[next].Step <= step; next++ {
			if e := events[next]; e.Set != nil && e.Scope == criteria.Global {
				set = *e.Set
			}
		}
		at := phase(step, steps)
		length[at]++
		for _, c := range set.All() {
			if c.Anchor {
				continue
			}
			if out[named(c.Category)] == nil {
				out[named(c.Category)] = make([]float64, phases)
			}
			out[named(c.Category)][at]++
		}
	}
	for _, row := range out {
		for i := range row {
			row[i] /= max(length[i], 1)
		}
	}
	return out
}

// reversals counts what was done and undone within reversalSteps: a weight that moved back by at least reversalWeight, a new criterion
// that was deleted or merged, a deleted one whose text came back.
func reversals(updates []logged) int {
	n := 0
	type move struct {
		step int
		by   float64
	}
	moved, made, gone := map[string]move{}, map[string]int{}, map[string]int{}
	recent := func(step, before int) bool { return step-before <= reversalSteps }
	for _, u := range updates {
		step := u.note.Step
		key := func(what string) string { return u.Scope + "\x00" + what }
		for _, change := range criteria.Diff(u.before, u.after) {
			switch change.Kind {
			case criteria.Reweighted:
				by := change.After.Weight - change.Before.Weight
				if last, there := moved[key(change.ID)]; there && recent(step, last.step) && last.by*by < 0 && math.Abs(by) >= reversalWeight {
					n++
				}
				moved[key(change.ID)] = move{step, by}
			case criteria.Removed:
				if at, there := made[key(change.ID)]; there && recent(step, at) {
					n++
				}
				gone[key(bare(change.Before.Text))] = step
			case criteria.Added:
				if at, there := gone[key(bare(change.After.Text))]; there && recent(step, at) {
					n++
				}
				made[key(change.ID)] = step
			}
		}
	}
	return n
}

// Print writes the report as Markdown tables.
func (r Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d updates in %d steps, %d reversals\n", r.Updates, r.Steps, r.Reversals)
	head := "|"
	for i := range phases {
		from, to := (i*r.Steps+phases-1)/phases+1, ((i+1)*r.Steps+phases-1)/phases
		if from > to { // fewer steps than phases
			head += " - |"
			continue
		}
		head += fmt.Sprintf(" %d-%d |", from, to)
	}
	rule := "\n|---|" + strings.Repeat("---|", phases) + "\n"
	fmt.Fprintf(&b, "\n| strategy %s%s", head, rule)
	for _, name := range []string{Defensive, Curriculum, Maintenance} {
		row(&b, name, r.Strategies[name])
	}
	for _, name := range []string{Defensive, Curriculum, Maintenance} {
		fmt.Fprintf(&b, "\n| %s: focus %s%s", name, head, rule)
		for _, focus := range slices.Sorted(maps.Keys(r.Focuses[name])) {
			row(&b, focus, r.Focuses[name][focus])
		}
	}
	fmt.Fprintf(&b, "\n| criteria %s%s", head, rule)
	for _, category := range slices.Sorted(maps.Keys(r.Composition)) {
		row(&b, category, r.Composition[category])
	}
	b.WriteString("\n| operation | defensive | curriculum | maintenance |\n|---|---|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(r.Ops)) {
		row(&b, kind, []int{r.Ops[kind][Defensive], r.Ops[kind][Curriculum], r.Ops[kind][Maintenance]})
	}
	if len(r.Components) > 0 {
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	if err != nil || len(r.Components) == 0 {
		return err
	}
	return printComponents(w, r.Components)
}

func row[T int | float64](b *strings.Builder, name string, values []T) {
	fmt.Fprintf(b, "| %s |", name)
	for _, v := range values {
		fmt.Fprintf(b, " %.4g |", float64(v))
	}
	b.WriteString("\n")
}
