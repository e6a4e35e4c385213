package amaris

import (
	"time"

	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// figures are a step's, beside those of scoring; p.mu is held.
//
//	amaris/version              of the rubrics that the step was scored by, mean over its groups
//	amaris/criteria             in them, likewise
//	amaris/staleness_versions   updates that are being made of steps before this one
//	amaris/staleness_steps      steps before this one that no update in force knows of
//	amaris/waiting_s            seconds that the step waited for updates when it was scored
//	amaris/waiting_sync_s       seconds that the training waited for them after the step before (execution sync)
//	amaris/updates              that came into force; they are what the next lines are about
//	amaris/ops/KIND             operations applied: create, update, delete, reweight, merge, split
//	amaris/dropped_ops          that were not valid
//	amaris/strategy/NAME        share of the updates: defensive, curriculum, maintenance
//	amaris/unanswered           updates that ended because a question got no usable answer
//	amaris/missing_analyses     completions without an analysis, likewise
//	amaris/seconds/analyze      that all analyses of these updates took
//	amaris/seconds/STAGE        that a stage of an update took, mean: summarize, query, retrieve, update (the paper's Table 4)
//	amaris/update_failures      failed tries so far in this process
//	amaris/memory_documents     in the memory, up to the last update in force
func (p *Provider) figures(next *ahead, waited time.Duration, scored []scoring.Group) map[string]float64 {
	m := map[string]float64{
		"amaris/waiting_s": waited.Seconds(), "amaris/waiting_sync_s": p.paused.Seconds(),
		"amaris/update_failures": p.failed, "amaris/memory_documents": float64(p.state.end.Documents),
	}
	for _, g := range scored {
		m["amaris/version"] += float64(g.Set.Version()) / float64(len(scored))
		m["amaris/criteria"] += float64(g.Set.Len()) / float64(len(scored))
	}
	stale := 0
	for _, j := range p.state.jobs {
		if j.Closes {
			stale++
		}
	}
	m["amaris/staleness_versions"] = float64(stale)
	if !p.options.Frozen {
		m["amaris/staleness_steps"] = float64(p.state.tick - p.state.last)
	}
	next.count(m)
	return m
}

// count adds what the updates that came into force did.
func (a *ahead) count(m map[string]float64) {
	for _, kind := range []string{OpCreate, OpUpdate, OpDelete, OpReweight, OpMerge, OpSplit} {
		m["amaris/ops/"+kind] = 0
	}
	m["amaris/dropped_ops"], m["amaris/unanswered"], m["amaris/missing_analyses"] = 0, 0, 0
	jobs := a.jobs
	if a.cold != nil {
		jobs = append(jobs[:len(jobs):len(jobs)], a.cold)
	}
	var changes []change
	analyzing := 0.0
	for _, j := range jobs {
		for _, analysis := range j.result.analyses {
			if analysis == nil {
				m["amaris/missing_analyses"]++
			}
		}
		analyzing += j.result.took
		changes = append(changes, j.result.changes...)
	}
	m["amaris/updates"] = float64(len(changes))
	if len(changes) == 0 {
		return
	}
	m["amaris/seconds/analyze"] = analyzing
	for _, name := range []string{Defensive, Curriculum, Maintenance} {
		m["amaris/strategy/"+name] = 0
	}
	for _, c := range changes {
		c.count(m, 1/float64(len(changes)))
	}
}

// count adds one update, which has a share in the means.
func (c change) count(m map[string]float64, share float64) {
	m["amaris/strategy/"+c.record.Strategy] += share
	m["amaris/seconds/summarize"] += c.took.summarize * share
	m["amaris/seconds/query"] += c.took.query * share
	m["amaris/seconds/retrieve"] += c.took.retrieve * share
	m["amaris/seconds/update"] += c.took.update * share
	m["amaris/dropped_ops"] += float64(len(c.record.Dropped))
	if c.record.Missing != "" {
		m["amaris/unanswered"]++
	}
	for _, o := range c.record.Ops {
		m["amaris/ops/"+o.Kind]++
	}
}
