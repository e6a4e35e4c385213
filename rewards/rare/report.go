package rare

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// Report is what a run's rubric log tells of its rubrics' evolution: the figures of the paper's Tables 3 and 6. Shares are in
// [0,1], means are over switches. A visit is a group's look at its rubric (at task level that of all groups of the task in a
// step), a switch the replacement of one criterion; the switches of a visit that a later group of the same prompt and step
// superseded are left out, because they did not last.
//
// How the paper's words are read:
//
//   - Trigger rate: the share of visits that find a saturated criterion which the bounds let be replaced.
//   - Separation: Table 3 "standardizes each criterion separately". The replacement's credits become standard scores within
//     their group, and their mean absolute value counts, 0 where all are equal. The paper's means (0.66, 0.65, 0.57) fit: they are
//     0.844, 0.851 and 0.844 of its shares that restore variance, and where eight completions differ in two levels this value
//     is between 0.66 (one apart) and 1 (half and half).
//   - Later resaturation: the share of the replacements seen again that all completions of at least one later visit met in full,
//     while they stood in the rubric.
//   - Table 6 samples anew at two checkpoints; here the run's own later visits serve, those of the option retention for criteria
//     that do not stand in the rubric any more.
type Report struct {
	Visits     int    `json:"visits"`
	Rubrics    int    `json:"rubrics"`      // that were visited
	Triggered  int    `json:"triggered"`    // visits with a saturated criterion that could be replaced
	Trigger    Figure `json:"trigger_rate"` // Triggered / Visits
	Switches   int    `json:"switches"`
	Kept       int    `json:"kept"`                // saturated criteria that could be replaced and were not
	Duplicates int    `json:"rejected_duplicates"` // proposals that repeated another criterion, among Kept

	PostSwitchMean   Figure `json:"post_switch_mean"`  // mean credit of a replacement on the completions that triggered it
	OpensHeadroom    Figure `json:"opens_headroom"`    // share of replacements that some of these do not meet in full
	RestoresVariance Figure `json:"restores_variance"` // share on which the completions of some group differ
	Separation       Figure `json:"separation"`        // mean absolute standard score within the groups, each criterion by itself

	SeenLater   int    `json:"seen_later"`         // replacements that were scored at a later step
	Resaturated int    `json:"resaturated"`        // of these, that all completions of some later visit met in full
	Later       Figure `json:"later_resaturation"` // Resaturated / SeenLater

	Panels []Panel `json:"panels"`
}

// Panel is one row of Table 6: the same switches, looked at by the completions of one point in time.
type Panel struct {
	Name        string `json:"name"`
	Events      int    `json:"events"` // switches whose replacement was scored there
	NewMean     Figure `json:"new_mean"`
	NewHeadroom Figure `json:"new_headroom"`
	NewVariance Figure `json:"new_variance"`

	OldEvents          int    `json:"old_events"` // those of them whose replaced criterion was scored there too
	OldFullGroups      Figure `json:"old_full_groups"`
	OldMean            Figure `json:"old_mean"`
	OldFullCompletions Figure `json:"old_full_completions"`
}

// NewReport computes the report of a run from the events of its rubric log. Table 6 has a panel for the completions that
// triggered the switch, one for the first later visit that scored the replacement, one for the last, and one for each of steps:
// the last such visit up to that step.
func NewReport(events []criteria.Event, steps []int) (*Report, error) {
	h, err := readHistory(events)
	if err != nil {
		return nil, fmt.Errorf("rubric log: %w", err)
	}
	if len(h.visits) == 0 {
		return nil, errors.New("the rubric log tells of no visit by RARE: was the run's reward.kind rare?")
	}
	return h.report(steps), nil
}

// sighting is a visit as the log has it.
type sighting struct {
	step  int
	scope string
	note
}

// history is a run's visits in order, and for each scope its own.
type history struct {
	visits []sighting
	scopes map[string][]sighting
}

// readHistory takes the visits out of a log's events.
func readHistory(events []criteria.Event) (*history, error) {
	h := &history{scopes: map[string][]sighting{}}
	for _, e := range events {
		if e.Note[noteKey] == nil {
			continue
		}
		v := sighting{step: e.Step, scope: e.Scope}
		text, err := json.Marshal(e.Note[noteKey])
		if err == nil {
			err = json.Unmarshal(text, &v.note)
		}
		if err == nil {
			err = v.check()
		}
		if err != nil {
			return nil, fmt.Errorf("step %d, rubric of %q: %w", e.Step, e.Scope, err)
		}
		h.visits = append(h.visits, v)
		h.scopes[v.scope] = append(h.scopes[v.scope], v)
	}
	return h, nil
}

// check refuses a note whose credits do not fit its groups.
func (n note) check() error {
	all := slices.Concat(n.Credits, n.Retired)
	for _, s := range n.Switches {
		if n.credits(s.Old.ID, false) == nil {
			return fmt.Errorf("criterion %s was replaced, but there are no credits of it", s.Old.ID)
		}
		all = append(all, creditNote{s.New.ID, s.Credits})
	}
	for _, c := range all {
		if len(c.Groups) != len(n.Groups) {
			return fmt.Errorf("criterion %s has the credits of %d groups, there are %d", c.ID, len(c.Groups), len(n.Groups))
		}
		for g, credits := range c.Groups {
			outside := func(x float64) bool { return !(x >= 0 && x <= 1) }
			if len(credits) > n.Groups[g].Completions || slices.ContainsFunc(credits, outside) {
				return fmt.Errorf("criterion %s has the credits %v for %d completions", c.ID, credits, n.Groups[g].Completions)
			}
		}
	}
	return nil
}

// sizes is the number of completions in each group.
func (n note) sizes() []int {
	out := make([]int, len(n.Groups))
	for i, g := range n.Groups {
		out[i] = g.Completions
	}
	return out
}

// credits of a criterion, by the rubric or, if old, also those of replaced ones; nil: it was not scored.
func (n note) credits(id string, old bool) evidence {
	list := n.Credits
	if old {
		list = slices.Concat(n.Credits, n.Retired)
	}
	for _, c := range list {
		if c.ID == id && len(slices.Concat(c.Groups...)) > 0 {
			return c.Groups
		}
	}
	return nil
}

// report computes all figures.
func (h *history) report(steps []int) *Report {
	r := &Report{Visits: len(h.visits), Rubrics: len(h.scopes)}
	var made figures
	for _, v := range h.visits {
		r.Triggered += int(count(len(v.Asked) > 0))
		r.Kept += len(v.Kept)
		for _, k := range v.Kept {
			r.Duplicates += int(count(k.Proposal != ""))
		}
		for _, s := range v.made() {
			made.add(s.Credits, v.sizes())
			h.follow(r, v, s)
		}
	}
	r.Switches = int(made.n)
	r.Trigger = Figure(float64(r.Triggered) / float64(r.Visits))
	r.PostSwitchMean, r.OpensHeadroom, r.RestoresVariance, r.Separation = made.mean(), made.headroom(), made.variance(), made.separation()
	r.Later = Figure(float64(r.Resaturated) / float64(r.SeenLater))
	r.Panels = h.panels(steps)
	return r
}

// made are the switches of a visit that lasted.
func (n note) made() []switchNote {
	if n.Superseded {
		return nil
	}
	return n.Switches
}

// follow counts what became of a replacement.
func (h *history) follow(r *Report, v sighting, s switchNote) {
	seen, full := false, false
	for _, later := range h.scopes[v.scope] {
		if e := later.credits(s.New.ID, false); e != nil { // its id is new, so that this is a later visit
			seen = true
			full = full || e.full(later.sizes())
		}
	}
	r.SeenLater += int(count(seen))
	r.Resaturated += int(count(full))
}

// panels are the rows of Table 6.
func (h *history) panels(steps []int) []Panel {
	first := func(later []sighting) *sighting { return &later[0] }
	last := func(later []sighting) *sighting { return &later[len(later)-1] }
	out := []Panel{h.trigger(), h.panel("next visit", first), h.panel("last visit", last)}
	for _, step := range steps {
		out = append(out, h.panel(fmt.Sprintf("step %d", step), func(later []sighting) *sighting {
			later = slices.DeleteFunc(slices.Clone(later), func(v sighting) bool { return v.step > step })
			if len(later) == 0 {
				return nil
			}
			return last(later)
		}))
	}
	return out
}

// trigger is the panel of the completions that triggered the switches.
func (h *history) trigger() Panel {
	var fresh, old figures
	for _, v := range h.visits {
		for _, s := range v.made() {
			fresh.add(s.Credits, v.sizes())
			old.add(v.credits(s.Old.ID, false), v.sizes())
		}
	}
	return panel("trigger", fresh, old)
}

// panel looks at every switch by the visit that choose picks among the later ones that scored its replacement.
func (h *history) panel(name string, choose func(later []sighting) *sighting) Panel {
	var fresh, old figures
	for _, v := range h.visits {
		for _, s := range v.made() {
			later := slices.DeleteFunc(slices.Clone(h.scopes[v.scope]), func(l sighting) bool {
				return l.credits(s.New.ID, true) == nil
			})
			if len(later) == 0 {
				continue
			}
			at := choose(later)
			if at == nil {
				continue
			}
			fresh.add(at.credits(s.New.ID, true), at.sizes())
			if e := at.credits(s.Old.ID, true); e != nil {
				old.add(e, at.sizes())
			}
		}
	}
	return panel(name, fresh, old)
}

func panel(name string, fresh, old figures) Panel {
	return Panel{
		Name: name, Events: int(fresh.n), NewMean: fresh.mean(), NewHeadroom: fresh.headroom(), NewVariance: fresh.variance(),
		OldEvents: int(old.n), OldFullGroups: old.fullGroups(), OldMean: old.mean(), OldFullCompletions: old.fullShare(),
	}
}
