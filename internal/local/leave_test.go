package local

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/llm"
	"github.com/rubicon-rl/rubicon/policy"
)

// stuck is a constraint that allows everything, and holds the model up at the first token.
type stuck struct {
	begun, resume chan struct{}
	once          sync.Once
}

func newStuck() *stuck { return &stuck{begun: make(chan struct{}), resume: make(chan struct{})} }

func (s *stuck) Least() int            { return 1 }
func (s *stuck) Begin() policy.Matcher { return s }
func (s *stuck) Accept(int32)          {}

func (s *stuck) Mask(allowed []uint64, _ int) error {
	s.once.Do(func() {
		close(s.begun)
		<-s.resume
	})
	for i := range allowed[:len(allowed)-1] {
		allowed[i] = ^uint64(0)
	}
	return nil
}

// held has a job done that s holds up, and returns its error.
func held(t *testing.T, x *Transport, s *stuck) func(ctx context.Context) error {
	t.Helper()
	m, err := x.bound()
	must(t, err)
	j, err := x.prepare(m, question("Tell me everything."))
	must(t, err)
	j.request.Constraint = s
	return func(ctx context.Context) error {
		_, err := x.await(ctx, j)
		return err
	}
}

// waitFor gives way until n calls are in the queue.
func (t *Transport) waitFor(n int) {
	for {
		t.mu.Lock()
		have := len(t.queue)
		t.mu.Unlock()
		if have == n {
			return
		}
		runtime.Gosched()
	}
}

// A caller that is gone does not wait for the model, and leaves the others their replies.
func TestCallersMayLeave(t *testing.T) {
	x := open(t, tiny())
	var lock, wg = &sync.Mutex{}, &sync.WaitGroup{}
	x.Lock = lock
	alone := complete(t, x, question("Tell me more."))
	lock.Lock() // the owner computes
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Complete(gone, question("Now?")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v from a call whose caller was gone", err)
	}
	s := newStuck()
	leaving, cancel := context.WithCancel(t.Context())
	await := held(t, x, s)
	left := make(chan error, 1)
	var stays *llm.Reply
	wg.Go(func() { left <- await(leaving) })
	wg.Go(func() { stays = complete(t, x, question("Tell me more.")) })
	x.waitFor(2)
	lock.Unlock()
	<-s.begun
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) { // while the model is stuck
		t.Errorf("the one who left got %v", err)
	}
	close(s.resume)
	wg.Wait()
	if !reflect.DeepEqual(stays, alone) {
		t.Errorf("the one who stayed got %+v, want %+v", stays, alone)
	}
}

// When all callers are gone the computation is stopped, and the last one leaves a model that is free.
func TestNothingGoesOnWithoutCallers(t *testing.T) {
	x := open(t, tiny())
	lock := &sync.Mutex{}
	x.Lock = lock
	s := newStuck()
	leaving, cancel := context.WithCancel(t.Context())
	await := held(t, x, s)
	left := make(chan error, 1)
	go func() { left <- await(leaving) }()
	<-s.begun
	x.mu.Lock()
	stop := x.batch.cancel
	x.batch.cancel = func() { stop(); close(s.resume) }
	x.mu.Unlock()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if !lock.TryLock() {
		t.Error("the model is not free")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.batch != nil || len(x.queue) > 0 {
		t.Errorf("batch %v and queue %v are left", x.batch, x.queue)
	}
}
