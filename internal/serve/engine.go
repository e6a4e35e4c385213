package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rubicon-rl/rubicon/policy"
)

// op is something that the engine is asked to do between two steps.
type op struct {
	do   func()
	long bool // it computes
}

// engine is the goroutine that owns a model: it computes step after step, and between two steps what others ask of it.
type engine struct {
	model   *policy.Model
	session *policy.Session
	ops     chan op
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
	e := &engine{model: m, session: s, ops: make(chan op), stop: stop, over: make(chan struct{}), calls: map[*call]bool{}}
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
		e.attend()
		e.wake()
		more, err := e.session.Step(ctx)
		if err != nil {
			e.fail(err)
		}
		e.wake()
		if more || err != nil {
			continue
		}
		select {
		case o := <-e.ops:
			o.do()
			e.wake()
		case <-ctx.Done():
		}
	}
	e.fail(errStopped)
}

// mostOps is how much that takes no time is done between two steps: who asks without end must not stop them.
const mostOps = 256

// attend does what is asked before the next step, at most one thing that takes a while.
func (e *engine) attend() {
	for range mostOps {
		select {
		case o := <-e.ops:
			o.do()
			if o.long {
				return
			}
		default:
			return
		}
	}
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
	return e.ask(ctx, done, op{do: func() { done <- f() }})
}

// value is do for what has a result, which a caller that has left is spared; long says that it takes a while.
func value[T any](ctx context.Context, e *engine, long bool, f func() (T, error)) (v T, err error) {
	result, done := make(chan T, 1), make(chan error, 1)
	err = e.ask(ctx, done, op{long: long, do: func() {
		v, err := f()
		result <- v
		done <- err
	}})
	if err != nil {
		return v, err
	}
	return <-result, nil
}

// wait has f called by the goroutine, again and again until it is true.
func (e *engine) wait(ctx context.Context, f func() (bool, error)) error {
	done := make(chan error, 1)
	return e.ask(ctx, done, op{do: func() {
		e.later = append(e.later, func() bool {
			ok, err := f()
			if ok || err != nil {
				done <- err
			}
			return ok || err != nil
		})
	}})
}

func (e *engine) ask(ctx context.Context, done chan error, o op) error {
	select {
	case e.ops <- o:
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
func (e *engine) embed(ctx context.Context, texts [][]int32, adapter string) ([][]float32, error) {
	return value(ctx, e, true, func() ([][]float32, error) {
		var vectors [][]float32
		for _, ids := range texts {
			f := &policy.Forest{Segments: []policy.Segment{{Parent: policy.Root, Tokens: ids}}}
			p, err := e.model.Forward(f, policy.ForwardOptions{Adapter: adapter, Pool: []bool{true}})
			if err != nil {
				return nil, fmt.Errorf("embed: %w", err)
			}
			vectors = append(vectors, p.Output.Pooled[0])
			p.Release()
		}
		return vectors, nil
	})
}

// score returns what the model says of each token of a text but the first.
func (e *engine) score(ctx context.Context, ids []int32, adapter string, top int) ([]policy.TokenScore, error) {
	return value(ctx, e, true, func() ([]policy.TokenScore, error) { return e.model.ScoreTokens(ids, adapter, top) })
}

// load is how busy the session is.
func (e *engine) load(ctx context.Context) (policy.SessionLoad, error) {
	return value(ctx, e, false, func() (policy.SessionLoad, error) { return e.session.Load(), nil })
}
