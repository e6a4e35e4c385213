package amaris

import (
	"context"
	"fmt"
	"slices"
)

// kick has the unfinished jobs run in the background, unless that is on its way. How many there are is bounded: a step
// waits for all but those of the last max_staleness + update_interval steps.
func (p *Provider) kick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.driving || p.unfinished() == nil {
		return
	}
	p.driving = true
	p.running.Go(func() error {
		select {
		case p.turn <- struct{}{}:
			// A failure is counted with its job. The step that needs the job reports it.
			_ = p.drive(p.background, nil)
			<-p.turn
		case <-p.background.Done():
			p.rest()
		}
		return nil
	})
}

// rest tells that nothing drives in the background.
func (p *Provider) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.driving = false
}

// unfinished is the oldest job without a result; p.mu is held.
func (p *Provider) unfinished() *job {
	i := slices.IndexFunc(p.state.jobs, func(j *job) bool { return j.result == nil })
	if i < 0 {
		return nil
	}
	return p.state.jobs[i]
}

// drive runs jobs in order, up to and with last, or all of them (nil). The caller has the turn. The background's call ends with
// nothing driving.
func (p *Provider) drive(ctx context.Context, last *job) error {
	for {
		p.mu.Lock()
		j := p.unfinished()
		if j == nil || last != nil && last.result != nil {
			p.driving = p.driving && last != nil
			p.mu.Unlock()
			return nil
		}
		batch, from := p.before(j)
		p.mu.Unlock()
		found, err := p.workshop.improveAll(ctx, batch, func(scope string) rubric { return p.newest(j, scope) }, from)
		if err != nil {
			if last == nil {
				p.rest()
			}
			return p.fail(ctx, j, err)
		}
		p.mu.Lock()
		j.result = found
		close(j.done)
		p.mu.Unlock()
		if j == last {
			return nil
		}
	}
}

// before are job j with the open ones before it, and the end of the memory before it; p.mu is held.
func (p *Provider) before(j *job) (batch []*job, from mark) {
	from = p.state.end
	for _, other := range p.state.jobs {
		batch = append(batch, other)
		if other == j {
			break
		}
		if other.Closes {
			batch, from = nil, other.result.end
		}
	}
	return batch, from
}

// newest is a scope's rubric after all updates before job j.
func (p *Provider) newest(j *job, scope string) rubric {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, there := p.state.rubrics[scope]
	if !there {
		now = rubric{Set: j.Sets[scope]}
	}
	for _, other := range p.state.jobs {
		if other == j {
			break
		}
		if other.result == nil {
			continue
		}
		for _, c := range other.result.changes {
			if c.scope == scope {
				now = c.after
			}
		}
	}
	return now
}

// fail counts a failed try.
func (p *Provider) fail(ctx context.Context, j *job, err error) error {
	if ctx.Err() != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	j.failures++
	p.failed++
	if j.failures < p.options.MaxUpdateFailures {
		return nil
	}
	tries := j.failures
	j.failures = 0 // so that a run which goes on tries again
	return fmt.Errorf("%v failed %d times, the last time because: %w", j, tries, err)
}

// wait returns when job j has a result. If nobody works on it, it is worked on here.
func (p *Provider) wait(ctx context.Context, j *job) error {
	for {
		select {
		case <-j.done: // before all else: a finished job is no reason to wait for the turn
			return nil
		default:
		}
		select {
		case <-j.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case p.turn <- struct{}{}:
			err := p.drive(ctx, j)
			<-p.turn
			if err != nil {
				return err
			}
		}
	}
}

// finish runs what is unfinished and waits for it. A failure is left to the step that needs the job.
func (p *Provider) finish(ctx context.Context) {
	p.mu.Lock()
	jobs := slices.Clone(p.state.jobs)
	p.mu.Unlock()
	for _, j := range jobs {
		if p.wait(ctx, j) != nil {
			return
		}
	}
}
