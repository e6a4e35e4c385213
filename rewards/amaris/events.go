package amaris

import (
	"maps"
	"slices"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// event is what the rubric log says of a change that comes into force at a step.
func (c change) event(kind string, step int, j *job) criteria.Event {
	e := criteria.Event{Step: step, Scope: c.scope, Version: c.after.Set.Version(), Kind: kind, Note: c.about(j)}
	if kind == criteria.Init || c.before.Set.Version() != c.after.Set.Version() {
		e.Set = &c.after.Set
	}
	for _, o := range c.record.Ops {
		op := criteria.Op{Kind: o.Kind, Reason: o.Reason}
		op.Before, op.After = o.changed()
		e.Ops = append(e.Ops, op)
	}
	return e
}

// about is what else the log says of a change; what there is nothing to say of is left out.
func (c change) about(j *job) map[string]any {
	r := c.record
	evidence := []string{}
	if c.evidence != "" {
		evidence = append(evidence, c.evidence)
	}
	for _, h := range r.History {
		evidence = append(evidence, h.Document)
	}
	note := map[string]any{"strategy": r.Strategy, "learnt_step": j.Step, "evidence": evidence}
	for key, text := range map[string]string{
		"wanted": r.Asked, "focus": r.Focus, "reasoning": r.Reasoning, "lesson": r.Lesson, "missing": r.Missing,
	} {
		if text != "" {
			note[key] = text
		}
	}
	if len(r.History) > 0 {
		note["history"] = r.History
	}
	if len(r.Queries) > 0 {
		note["queries"] = r.Queries
	}
	if len(r.Dropped) > 0 {
		note["dropped"] = r.Dropped
	}
	return note
}

// events are what the log is told of a step: the updates that came into force, and the scopes that have a rubric now.
func (a *ahead) events(step int, before map[string]rubric) []criteria.Event {
	var out []criteria.Event
	for _, j := range a.jobs {
		if j.Closes {
			for _, c := range j.result.changes {
				out = append(out, c.event(criteria.Update, step, j))
			}
		}
	}
	if a.cold != nil {
		return append(out, a.cold.result.changes[0].event(criteria.Init, step, a.cold))
	}
	for _, scope := range slices.Sorted(maps.Keys(a.rubrics)) {
		if _, there := before[scope]; !there {
			set := a.rubrics[scope].Set
			out = append(out, criteria.Event{Step: step, Kind: criteria.Init, Set: &set})
		}
	}
	return out
}
