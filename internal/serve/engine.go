package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rubicon-rl/rubicon/policy"
)

// engine is the goroutine that owns a model: it computes step after step, and between two steps what others ask of it.
type engine struct {
	model   *policy.Model
	session *policy.Session
	ops     chan func()
	stop    context.CancelFunc
	over    chan struct{}

	// Of the goroutine alone:
	calls map[*call]bool // that are being generated
	later []func() bool  // what waits for something; true: it is done
}

// errStopped is the error of what is asked after stop.
var errStopped = errors.New("the server is stopping")

func startEngine(m *policy.Model, o policy.SessionOptions) (*engine, error) {
	s, err := m.NewSession(o)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &engine{model: m, session: s, ops: make(chan func()), stop: stop, over: make(chan struct{}), calls: map[*call]bool{}}
	go e.run(ctx)
	return e, nil
}

// close ends the goroutine and what it still generates, and waits for it.
func (e *engine) close() {
	e.stop()
	<-e.over
}

func (e *engine) run(ctx context.Context) {
	defer close(e.over)
	defer e.session.Close()
	for ctx.Err() == nil {
		select {
		case op := <-e.ops:
			op()
			e.wake()
		default:
		}
		more, err := e.session.Step(ctx)
		if err != nil {
			e.fail(err)
		}
		e.wake()
		if more || err != nil {
			continue
		}
		select {
		case op := <-e.ops:
			op()
			e.wake()
		case <-ctx.Done():
		}
	}
	e.fail(errStopped)
}

// wake tries what waits.
func (e *engine) wake() {
	for i := 0; i < len(e.later); {
		if e.later[i]() {
			e.later = append(e.later[:i], e.later[i+1:]...)
			continue
		}
		i++
	}
}

// fail ends all calls with an error.
func (e *engine) fail(err error) {
	for c := range e.calls {
		e.session.Cancel(c.ticket)
		c.end(err)
	}
	clear(e.calls)
}

// do has f called by the goroutine, and waits for it.
func (e *engine) do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	return e.ask(ctx, done, func() { done <- f() })
}

// wait has f called by the goroutine, again and again until it is true.
func (e *engine) wait(ctx context.Context, f func() (bool, error)) error {
	done := make(chan error, 1)
	return e.ask(ctx, done, func() {
		e.later = append(e.later, func() bool {
			ok, err := f()
			if ok || err != nil {
				done <- err
			}
			return ok || err != nil
		})
	})
}

func (e *engine) ask(ctx context.Context, done chan error, op func()) error {
	select {
	case e.ops <- op:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.over:
		return errStopped
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-e.over:
		return errStopped
	}
}

// call is a request that is being generated.
type call struct {
	ticket *policy.Ticket
	left   int // samples that have not ended

	mu     sync.Mutex
	events []policy.Event
	hits   int // tokens of the prompt that were there already
	err    error
	news   chan struct{} // has one element when there is something new
}

// generate begins a request.
func (e *engine) generate(ctx context.Context, a policy.Asked) (*call, error) {
	c := &call{left: a.N, news: make(chan struct{}, 1)}
	a.Listen = func(ev policy.Event) {
		if ev.Finish != "" {
			if c.left--; c.left == 0 {
				delete(e.calls, c)
			}
		}
		c.hear(ev)
	}
	err := e.do(ctx, func() (err error) {
		if c.ticket, err = e.session.Add(a); err == nil {
			e.calls[c] = true
		}
		return err
	})
	if err != nil {
		e.cancel(c) // the caller may have left while it was taken in
	}
	return c, err
}

// cancel ends a call of which nobody wants to hear any more.
func (e *engine) cancel(c *call) {
	_ = e.do(context.Background(), func() error {
		if e.calls[c] {
			e.session.Cancel(c.ticket)
			delete(e.calls, c)
		}
		return nil
	})
}

func (c *call) hear(ev policy.Event) {
	c.mu.Lock()
	c.events = append(c.events, ev)
	c.hits = c.ticket.Cached()
	c.mu.Unlock()
	c.nudge()
}

func (c *call) end(err error) {
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	c.nudge()
}

func (c *call) nudge() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// cached is how many of the prompt's tokens were there already.
func (c *call) cached() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits
}

// next waits for events.
func (c *call) next(ctx context.Context) ([]policy.Event, error) {
	for {
		c.mu.Lock()
		events, err := c.events, c.err
		c.events = nil
		c.mu.Unlock()
		if len(events) > 0 || err != nil {
			return events, err
		}
		select {
		case <-c.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// embed returns the mean of the last hidden states of each of some texts, given as tokens.
func (e *engine) embed(ctx context.Context, texts [][]int32, adapter string) (vectors [][]float32, err error) {
	err = e.do(ctx, func() error {
		for _, ids := range texts {
			f := &policy.Forest{Segments: []policy.Segment{{Parent: policy.Root, Tokens: ids}}}
			p, err := e.model.Forward(f, policy.ForwardOptions{Adapter: adapter, Pool: []bool{true}})
			if err != nil {
				return fmt.Errorf("embed: %w", err)
			}
			vectors = append(vectors, p.Output.Pooled[0])
			p.Release()
		}
		return nil
	})
	return vectors, err
}

// score returns what the model says of each token of a text but the first.
func (e *engine) score(ctx context.Context, ids []int32, adapter string, top int) (scores []policy.TokenScore, err error) {
	err = e.do(ctx, func() (err error) {
		scores, err = e.model.ScoreTokens(ids, adapter, top)
		return err
	})
	return scores, err
}
