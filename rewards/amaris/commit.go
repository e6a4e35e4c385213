package amaris

import (
	"maps"
	"time"

	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// commit writes what a step has changed to the log and makes it the state. After an error nothing has changed.
func (p *Provider) commit(step int, next *ahead, waited time.Duration, scored []scoring.Group) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := next.cold != nil && p.state.start != nil
	if err := p.journal.write(step, again, next.events(step, p.state.rubrics)); err != nil {
		return err
	}
	s := &p.state
	s.rubrics = next.rubrics
	if next.cold != nil {
		s.start, s.end = next.start, next.cold.result.end
	}
	if n := len(next.jobs); n > 0 {
		newest := next.jobs[n-1]
		s.jobs, s.last, s.end = s.jobs[n:], newest.Tick, newest.result.end
	}
	p.metrics = scoring.Metrics(scored)
	maps.Copy(p.metrics, p.figures(next, waited, scored))
	return nil
}

// Metrics implements rewards.Drawer: those of the training step that was scored last.
func (p *Provider) Metrics() map[string]float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.metrics)
}
