package rare

import (
	"maps"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// commit writes the step to the log and makes its rubrics the current ones. After an error nothing has changed.
func (p *Provider) commit(step int, visits []*visit, scored []scoring.Group) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var events []criteria.Event
	for _, v := range visits {
		events = append(events, v.events(step)...)
	}
	if err := p.journal.write(step == p.states.step, events); err != nil {
		return err
	}
	p.states.begin(step)
	for _, v := range visits { // of several visits of one rubric the last stays
		p.states.set(v.scope, v.start.follow(v))
	}
	p.metrics = scoring.Metrics(scored)
	maps.Copy(p.metrics, stepMetrics(visits))
	return nil
}

// Metrics implements rewards.Drawer: those of the training step that was scored last.
func (p *Provider) Metrics() map[string]float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.metrics)
}

// stepMetrics are a step's figures, beside those of scoring, which are about the rubrics after the step.
//
//	rare/saturated_frac          share of the criteria that all completions of their group met before any was replaced
//	rare/trigger_rate            share of the visits with a saturated criterion that could be replaced
//	rare/switches, kept          how many of these were replaced, and were not
//	rare/rejected_duplicates     proposals that repeated another criterion
//	rare/post_switch_mean        mean credit of the replacements on the completions that triggered them
//	rare/opens_headroom_frac     share of the replacements that some of these do not meet in full
//	rare/restores_variance_frac  share on which the completions of a group differ
//	rare/separation              as in Report
//
// The last four are there if a criterion was replaced.
func stepMetrics(visits []*visit) map[string]float64 {
	var made figures
	var all, saturated, triggered, kept, rejected float64
	for _, v := range visits {
		for k := range v.set.Len() {
			all++
			saturated += count(v.saturated(k))
		}
		triggered += count(len(v.asked) > 0)
		kept += float64(len(v.kept()))
		rejected += float64(len(v.rejected))
		if !v.last {
			continue
		}
		for _, w := range v.switches {
			made.add(w.credits, v.sizes())
		}
	}
	m := map[string]float64{"rare/switches": made.n, "rare/kept": kept, "rare/rejected_duplicates": rejected}
	if len(visits) > 0 {
		m["rare/saturated_frac"], m["rare/trigger_rate"] = saturated/all, triggered/float64(len(visits))
	}
	if made.n > 0 {
		m["rare/post_switch_mean"] = float64(made.mean())
		m["rare/opens_headroom_frac"] = float64(made.headroom())
		m["rare/restores_variance_frac"] = float64(made.variance())
		m["rare/separation"] = float64(made.separation())
	}
	return m
}
