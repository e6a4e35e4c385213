// Package health says in plain sentences what is wrong with a run. It is a function of the lines of metrics.jsonl alone, so that
// a run is diagnosed while it goes on and from its folder later, with the same result. docs/health.md has a section for each
// diagnosis, with the reason for its threshold.
package health

import (
	"fmt"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// Finding is the beginning or the end of something that is wrong.
type Finding struct {
	Step int    `json:"step"` // of the line of metrics that shows it
	Kind string `json:"kind"` // names the section of docs/health.md
	Ends bool   `json:"ends"` // it is over
	Text string `json:"text,omitempty"`
}

// Doc is where the finding is explained.
func (f Finding) Doc() string { return "docs/health.md#" + f.Kind }

// String is the finding as people read it.
func (f Finding) String() string {
	if f.Ends {
		return fmt.Sprintf("step %d: %s is over", f.Step, f.Kind)
	}
	return fmt.Sprintf("step %d: %s (%s)", f.Step, f.Text, f.Doc())
}

// check is one diagnosis: find says in a sentence what is wrong after the last line; "": nothing is.
type check struct {
	kind string
	find func(h *history) string
}

func checks() []check {
	return []check{
		{"reward-collapse", rewardCollapse},
		{"entropy-collapse", entropyCollapse},
		{"entropy-explosion", entropyExplosion},
		{"length-explosion", lengthExplosion},
		{"no-signal", noSignal},
		{"saturated-rubric", saturatedRubric},
		{"stale-rubric", staleRubric},
		{"judge-drift", judgeDrift},
		{"kl-runaway", klRunaway},
		{"off-policy-gap", offPolicyGap},
		{"adapter-unchanged", adapterUnchanged},
		{"disk-nearly-full", diskNearlyFull},
	}
}

// calm is how many windows of lines must be free of something before it is over, so that what comes and goes is told once.
const calm = 2

// Monitor diagnoses a run line by line. The zero value has seen no line.
type Monitor struct {
	history history
	active  map[string]int // kind -> lines in a row that are free of it
	texts   map[string]string
}

// Observe takes the next line of metrics and returns what begins and what ends with it. What goes on is not told again.
func (m *Monitor) Observe(r track.Record) []Finding {
	if !m.history.add(r) {
		return nil
	}
	if m.active == nil {
		m.active, m.texts = map[string]int{}, map[string]string{}
	}
	var out []Finding
	for _, c := range checks() {
		text := c.find(&m.history)
		free, known := m.active[c.kind]
		switch {
		case text != "":
			m.active[c.kind], m.texts[c.kind] = 0, text
			if !known {
				out = append(out, Finding{Step: r.Step, Kind: c.kind, Text: text})
			}
		case known && free+1 < calm*m.history.size:
			m.active[c.kind] = free + 1
		case known:
			delete(m.active, c.kind)
			out = append(out, Finding{Step: r.Step, Kind: c.kind, Ends: true})
		}
	}
	return out
}

// Active is what is wrong now, with the figures of the last line that showed it.
func (m *Monitor) Active() []Finding {
	var out []Finding
	for _, c := range checks() {
		if _, there := m.active[c.kind]; there {
			out = append(out, Finding{Step: m.history.step, Kind: c.kind, Text: m.texts[c.kind]})
		}
	}
	return out
}

// Diagnose is what Observe tells of a whole run.
func Diagnose(records []track.Record) []Finding {
	var m Monitor
	var out []Finding
	for _, r := range records {
		out = append(out, m.Observe(r)...)
	}
	return out
}
