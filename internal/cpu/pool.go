package cpu

import (
	"sync"
	"sync/atomic"
	"time"
)

// task is work that several workers share. Each calls work once, with its own number, and takes what it does from a
// counter, so that a worker that comes late or not at all is not missed.
type task interface{ work(worker int) }

// pool is a fork-join pool. Worker 0 is the caller of run; the others spin for a while after the last task before
// they park, since waking a parked thread costs more than many a task does. A worker that the system has descheduled
// never holds the caller up: the caller does all the work that is left, closes the task, and waits only for those
// who have joined.
type pool struct {
	n      int
	spin   time.Duration
	_      [48]byte      // keep state on a cache line of its own
	state  atomic.Uint64 // generation<<16 | openBit | number of workers inside
	_      [56]byte
	task   task
	wake   []chan struct{}
	asleep []atomic.Bool
	done   atomic.Bool
	wg     sync.WaitGroup
	now    func() time.Time // the clock by which stalls are measured
	alone  time.Time        // until then the caller works alone
}

const (
	openBit    = 1 << 15
	insideMask = openBit - 1

	// patience is how often an idle worker looks for work before it lets others run, some 10 µs; lastPatience how often the
	// caller looks for a worker that has the last piece of a task. Where others want the processor, who lets them run is
	// away for milliseconds.
	patience     = 256
	lastPatience = 16 * patience

	// stall is a wait for a worker that means that the system has given its processor to somebody else. The caller then
	// works alone for backoff times as long: of a machine that is busy with other work it gets at least what one thread
	// would, but for one part in backoff.
	stall   = 500 * time.Microsecond
	backoff = 10
)

// newPool starts n-1 goroutines, which close ends.
func newPool(n int, spin time.Duration) *pool {
	p := &pool{n: n, spin: spin, now: time.Now, wake: make([]chan struct{}, n), asleep: make([]atomic.Bool, n)}
	for w := 1; w < n; w++ {
		p.wake[w] = make(chan struct{}, 1)
		p.wg.Add(1)
		go p.serve(w)
	}
	return p
}

// run calls t.work(0) and, in workers that are there in time, t.work(w). When it returns, nobody is in t.
func (p *pool) run(t task) {
	if p.n == 1 || !p.alone.IsZero() && p.stalled() {
		t.work(0)
		return
	}
	p.task = t
	p.state.Store((p.state.Load()>>16+1)<<16 | openBit)
	p.rouse()
	t.work(0)
	p.join()
	p.task = nil
}

// rouse wakes the workers that have parked.
func (p *pool) rouse() {
	for w := 1; w < p.n; w++ {
		if p.asleep[w].Load() && p.asleep[w].CompareAndSwap(true, false) {
			p.wake[w] <- struct{}{}
		}
	}
}

// join closes the task and waits for those inside.
func (p *pool) join() {
	for {
		s := p.state.Load()
		if p.state.CompareAndSwap(s, s&^openBit) {
			break
		}
	}
	var begun time.Time
	for i := 1; p.state.Load()&insideMask != 0; i++ {
		pause(1)
		if i == lastPatience {
			begun = p.now()
		}
		if i >= lastPatience && i%patience == 0 {
			yield() // the worker may be waiting for this processor
		}
	}
	if begun.IsZero() {
		return
	}
	end := p.now()
	if wait := end.Sub(begun); wait > stall {
		p.alone = end.Add(backoff * wait)
	}
}

// stalled reports whether the caller still has to work alone.
func (p *pool) stalled() bool {
	if p.now().Before(p.alone) {
		return true
	}
	p.alone = time.Time{}
	return false
}

// serve is a worker's life.
func (p *pool) serve(w int) {
	defer p.wg.Done()
	seen := uint64(0)
	idle := time.Now()
	for i := 1; !p.done.Load(); i++ {
		s := p.state.Load()
		if s>>16 != seen && s&openBit != 0 {
			if p.state.CompareAndSwap(s, s+1) {
				seen = s >> 16
				p.task.work(w)
				p.state.Add(^uint64(0))
				idle = time.Now()
			}
			continue
		}
		pause(1)
		if i%patience != 0 {
			continue
		}
		if yield(); time.Since(idle) > p.spin {
			p.park(w, seen)
			idle = time.Now()
		}
	}
}

// park sleeps until rouse, unless a task was opened in the meantime.
func (p *pool) park(w int, seen uint64) {
	p.asleep[w].Store(true)
	s := p.state.Load()
	fresh := s>>16 != seen && s&openBit != 0 || p.done.Load()
	if fresh && p.asleep[w].CompareAndSwap(true, false) {
		return
	}
	<-p.wake[w]
}

// close ends the workers and waits for them.
func (p *pool) close() {
	p.done.Store(true)
	p.rouse()
	p.wg.Wait()
}

// ranged is work on the items of a range.
type ranged interface {
	// do handles the items [i, j); it may use the scratch memory of worker w.
	do(w, i, j int)
}

// loop shares out the items [0, n) of a body in runs of chunk.
type loop struct {
	body     ranged
	n, chunk int
	next     atomic.Int64
}

func (l *loop) work(w int) {
	for {
		i := int(l.next.Add(int64(l.chunk))) - l.chunk
		if i >= l.n {
			return
		}
		l.body.do(w, i, min(i+l.chunk, l.n))
	}
}
