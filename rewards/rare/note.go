package rare

import (
	"slices"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// visitKind is the kind of an event that tells of a visit without a switch; one with switches is a criteria.Update.
const visitKind = "visit"

// noteKey is where a visit's note stands in the Note of its event.
const noteKey = "rare"

// note is what the log says of a visit: enough to compute every figure of the paper from the log alone.
type note struct {
	Superseded bool          `json:"superseded,omitempty"` // a later group of the same step has the same prompt
	Groups     []groupNote   `json:"groups"`
	Credits    []creditNote  `json:"credits"` // by the rubric before the visit
	Retired    []creditNote  `json:"retired,omitempty"`
	Asked      []string      `json:"asked,omitempty"` // ids of the saturated criteria that could have been replaced
	Switches   []switchNote  `json:"switches,omitempty"`
	Kept       []refusalNote `json:"kept,omitempty"` // of those asked
}

type groupNote struct {
	Prompt      string `json:"prompt"`
	Completions int    `json:"completions"`
}

type creditNote struct {
	ID     string   `json:"id"`
	Groups evidence `json:"groups"`
}

type switchNote struct {
	Old     criteria.Criterion `json:"old"`
	New     criteria.Criterion `json:"new"`
	Why     string             `json:"why,omitempty"`
	Credits evidence           `json:"credits"` // of the new one, on the same completions
}

type refusalNote struct {
	ID       string `json:"id"`
	Why      string `json:"why"`
	Proposal string `json:"proposal,omitempty"` // that was rejected
}

// events are the log's lines for a visit. A rubric that does not last is told of in the note alone.
func (v *visit) events(step int) []criteria.Event {
	e := criteria.Event{
		Step: step, Scope: v.scope, Version: v.next.Version(), Kind: visitKind, Note: map[string]any{noteKey: v.note()},
	}
	if !v.last || len(v.switches) == 0 {
		e.Version = v.set.Version()
		return []criteria.Event{e}
	}
	e.Kind, e.Set = criteria.Update, &v.next
	for _, w := range v.switches {
		e.Ops = append(e.Ops, criteria.Op{Kind: "replace", Before: []string{w.old.ID}, After: []string{w.new.ID}, Reason: w.why})
	}
	if v.start != nil {
		return []criteria.Event{e}
	}
	return []criteria.Event{{Step: step, Kind: criteria.Init, Set: &v.set}, e}
}

func (v *visit) note() note {
	n := note{Superseded: !v.last, Credits: creditNotes(v.set.List(), v.verdicts), Kept: v.kept()}
	for _, g := range v.groups {
		n.Groups = append(n.Groups, groupNote{g.Prompt.ID, len(g.Completions)})
	}
	if old := v.start.retired(); len(old) > 0 && v.retired[0] != nil {
		n.Retired = creditNotes(old, v.retired)
	}
	for _, k := range v.asked {
		n.Asked = append(n.Asked, v.set.At(k).ID)
	}
	for _, w := range v.switches {
		n.Switches = append(n.Switches, switchNote{w.old, w.new, w.why, w.credits})
	}
	return n
}

func creditNotes(list []criteria.Criterion, verdicts [][]scoring.Verdict) []creditNote {
	out := make([]creditNote, len(list))
	for k, c := range list {
		out[k] = creditNote{c.ID, column(verdicts, k)}
	}
	return out
}

// kept are the places that were asked about and not switched, with the reason.
func (v *visit) kept() []refusalNote {
	var out []refusalNote
	for _, k := range v.asked {
		n := refusalNote{ID: v.set.At(k).ID, Why: v.silence}
		for _, r := range v.rejected {
			if r.place == k {
				n.Why, n.Proposal = "the proposal repeats "+r.like, r.text
			}
		}
		if !v.switched(k) {
			out = append(out, n)
		}
	}
	return out
}

func (v *visit) switched(place int) bool {
	return slices.ContainsFunc(v.switches, func(w swap) bool { return w.place == place })
}
