package llm

import (
	"context"
	"sync"
)

// flights lets those who ask the same thing at the same time share one answer.
type flights struct {
	mu    sync.Mutex
	under map[key]*flight
}

// flight is an answer that is being asked for.
type flight struct {
	done   chan struct{} // closed when the rest is there
	answer string
	err    error
	landed bool // false: who asked has left, and someone else has to ask
}

// share runs ask, unless another does so for the same key: then it waits for that one's answer, and mine is false. It
// returns promptly when ctx ends.
func (f *flights) share(ctx context.Context, k key, ask func() (string, error)) (answer string, mine bool, err error) {
	for {
		f.mu.Lock()
		other := f.under[k]
		if other == nil {
			break
		}
		f.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return "", false, ctx.Err()
		}
		if other.landed {
			return other.answer, false, other.err
		}
	}
	own := &flight{done: make(chan struct{})}
	if f.under == nil {
		f.under = map[key]*flight{}
	}
	f.under[k] = own
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.under, k)
		f.mu.Unlock()
		close(own.done)
	}()
	own.answer, own.err = ask()
	own.landed = own.err == nil || ctx.Err() == nil
	return own.answer, true, own.err
}
